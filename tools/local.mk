# SPDX-License-Identifier: LGPL-2.1-or-later
# octavoctl. What a test can have without a bus is a library.
tools_cppflags = $(AM_CPPFLAGS) -DG_LOG_DOMAIN=\"octavoctl\"
tools_cflags = $(AM_CFLAGS) $(GLIB_CFLAGS) $(JSON_CFLAGS)

noinst_LTLIBRARIES += liboctavo-tools.la
liboctavo_tools_la_SOURCES = \
	tools/client.c tools/client.h \
	tools/doctor.c tools/doctor.h \
	tools/kvm.c tools/kvm.h \
	tools/nova.c tools/nova.h \
	tools/output.c tools/output.h
liboctavo_tools_la_CPPFLAGS = $(tools_cppflags)
liboctavo_tools_la_CFLAGS = $(tools_cflags)
liboctavo_tools_la_LIBADD = $(GLIB_LIBS) $(JSON_LIBS)

bin_PROGRAMS += octavoctl
octavoctl_SOURCES = \
	tools/change.c \
	tools/events.c \
	tools/examine.c tools/examine.h \
	tools/octavoctl.c tools/octavoctl.h \
	tools/query.c \
	tools/top.c \
	tools/xml.c
nodist_octavoctl_SOURCES = tools/hostdev.xml.h tools/nodedev.xml.h
octavoctl_CPPFLAGS = $(tools_cppflags)
octavoctl_CFLAGS = $(tools_cflags)
octavoctl_LDADD = liboctavo-tools.la $(GLIB_LIBS) $(JSON_LIBS)

# The templates as C strings: xml_hostdev, xml_nodedev
tools_templates = tools/hostdev.xml.h tools/nodedev.xml.h
BUILT_SOURCES += $(tools_templates)
CLEANFILES += $(tools_templates)
tools/octavoctl-xml.$(OBJEXT): $(tools_templates)
$(tools_templates): tools/%.xml.h: libvirt-xml/%.xml.in $(top_srcdir)/tools/local.mk
	$(AM_V_GEN)$(MKDIR_P) tools && { echo 'static const char xml_$*[] =' && \
		$(SED) -e 's/["\\]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< && echo ';'; } >$@.tmp && mv $@.tmp $@

schemadir = $(pkgdatadir)
dist_schema_DATA = tools/schema/octavoctl.schema.json

bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = tools/completion/_octavoctl
EXTRA_DIST += tools/completion/octavoctl.bash
# bash looks for a file of the command's own name
install-data-hook: install-bash-completion
install-bash-completion:
	$(MKDIR_P) $(DESTDIR)$(bashcompletiondir)
	$(INSTALL_DATA) $(srcdir)/tools/completion/octavoctl.bash $(DESTDIR)$(bashcompletiondir)/octavoctl
uninstall-hook: uninstall-bash-completion
uninstall-bash-completion:
	rm -f $(DESTDIR)$(bashcompletiondir)/octavoctl
.PHONY: install-bash-completion uninstall-bash-completion
