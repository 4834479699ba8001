# SPDX-License-Identifier: LGPL-2.1-or-later
# octavod. What needs no bus and no main loop of its own is a library, so that tests can have it.
daemon_cppflags = $(AM_CPPFLAGS) \
	-DG_LOG_USE_STRUCTURED \
	-DG_LOG_DOMAIN=\"octavod\" \
	-DOCTAVO_CONF=\"$(sysconfdir)/octavo/octavo.conf\" \
	-DOCTAVO_PKGLIBEXECDIR=\"$(pkglibexecdir)\"
daemon_cflags = $(AM_CFLAGS) $(GLIB_CFLAGS)

noinst_LTLIBRARIES += liboctavo-daemon.la liboctavo-dbus.la liboctavo-endpoint.la
liboctavo_daemon_la_SOURCES = \
	daemon/backoff.c daemon/backoff.h \
	daemon/collect.c daemon/collect.h \
	daemon/conf.c daemon/conf.h \
	daemon/control.c daemon/control.h \
	daemon/device.c daemon/device.h \
	daemon/gpu.c daemon/gpu.h \
	daemon/ident.c daemon/ident.h \
	daemon/keep.c daemon/keep.h \
	daemon/manager.c daemon/manager.h \
	daemon/mdev.c daemon/mdev.h \
	daemon/metrics.c daemon/metrics.h \
	daemon/opener.c daemon/opener.h \
	daemon/paths.h \
	daemon/probe.c daemon/probe.h \
	daemon/share.c daemon/share.h \
	daemon/snapshot.c daemon/snapshot.h \
	daemon/status.c daemon/status.h \
	daemon/uevent.c daemon/uevent.h \
	daemon/unit.c daemon/unit.h \
	daemon/vgpu.c daemon/vgpu.h \
	daemon/worker.c daemon/worker.h
liboctavo_daemon_la_CPPFLAGS = $(daemon_cppflags)
liboctavo_daemon_la_CFLAGS = $(daemon_cflags) $(JSON_CFLAGS) $(PCIACCESS_CFLAGS) $(SYSTEMD_CFLAGS)
liboctavo_daemon_la_LIBADD = liboctavo-arbiter.la $(GLIB_LIBS) $(JSON_LIBS) $(PCIACCESS_LIBS) \
	$(SYSTEMD_LIBS)

# The HTTP server and its page
liboctavo_endpoint_la_SOURCES = daemon/endpoint.c daemon/endpoint.h
nodist_liboctavo_endpoint_la_SOURCES = daemon/page-resource.c daemon/page-resource.h
liboctavo_endpoint_la_CPPFLAGS = $(daemon_cppflags)
liboctavo_endpoint_la_CFLAGS = $(daemon_cflags) $(SOUP_CFLAGS)
liboctavo_endpoint_la_LIBADD = liboctavo-daemon.la $(SOUP_LIBS)

# Generated code is not ours to warn about
nodist_liboctavo_dbus_la_SOURCES = daemon/octavo-dbus.c daemon/octavo-dbus.h
liboctavo_dbus_la_CFLAGS = $(daemon_cflags) -w
liboctavo_dbus_la_LIBADD = $(GLIB_LIBS)

sbin_PROGRAMS += octavod
octavod_SOURCES = \
	daemon/access.c daemon/access.h \
	daemon/bus.c daemon/bus.h \
	daemon/main.c
nodist_octavod_SOURCES = daemon/octavo-dbus.h
octavod_CPPFLAGS = $(daemon_cppflags)
octavod_CFLAGS = $(daemon_cflags) $(SYSTEMD_CFLAGS)
octavod_LDADD = liboctavo-endpoint.la liboctavo-daemon.la liboctavo-dbus.la $(GLIB_LIBS) $(SYSTEMD_LIBS)

daemon/octavo-dbus.h: daemon/org.octavo1.xml
	$(AM_V_GEN)$(MKDIR_P) daemon && $(GDBUS_CODEGEN) --interface-prefix org.octavo1. \
		--c-namespace Octavo --c-generate-object-manager --c-generate-autocleanup all \
		--header --output $@ $(srcdir)/daemon/org.octavo1.xml
daemon/octavo-dbus.c: daemon/org.octavo1.xml daemon/octavo-dbus.h
	$(AM_V_GEN)$(GDBUS_CODEGEN) --interface-prefix org.octavo1. \
		--c-namespace Octavo --c-generate-object-manager --c-generate-autocleanup all \
		--body --output $@ $(srcdir)/daemon/org.octavo1.xml
BUILT_SOURCES += daemon/octavo-dbus.h

page_files = daemon/page/page.gresource.xml daemon/page/status.html
page_compile = $(AM_V_GEN)$(MKDIR_P) daemon && $(GLIB_COMPILE_RESOURCES) --internal \
	--c-name page --sourcedir=$(srcdir)/daemon/page --target=$@
daemon/page-resource.h: $(page_files)
	$(page_compile) --generate-header $(srcdir)/daemon/page/page.gresource.xml
daemon/page-resource.c: $(page_files) daemon/page-resource.h
	$(page_compile) --generate-source $(srcdir)/daemon/page/page.gresource.xml
BUILT_SOURCES += daemon/page-resource.h
CLEANFILES += daemon/page-resource.c daemon/page-resource.h
EXTRA_DIST += $(page_files)
CLEANFILES += daemon/octavo-dbus.c daemon/octavo-dbus.h

dbusinterfacesdir = $(datadir)/dbus-1/interfaces
dist_dbusinterfaces_DATA = daemon/org.octavo1.xml

# What the distribution's managers read
systemdsystemunit_DATA += daemon/octavod.service daemon/octavo-vgpu@.service
dbuspolicy_DATA += daemon/org.octavo1.conf
udevrules_DATA += daemon/60-octavo.rules
modulesload_DATA += daemon/octavo.conf
sysusersdir = $(prefix)/lib/sysusers.d
sysusers_DATA = daemon/sysusers/octavo.conf
polkitactionsdir = $(datadir)/polkit-1/actions
polkitactions_DATA = daemon/org.octavo1.policy
polkitrulesdir = $(datadir)/polkit-1/rules.d
polkitrules_DATA = daemon/octavo.rules
octavoconfdir = $(sysconfdir)/octavo
dist_octavoconf_DATA = daemon/etc/octavo.conf

daemon/octavod.service: daemon/octavod.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) daemon && sed -e 's|@sbindir[@]|$(sbindir)|g' \
		$(srcdir)/daemon/octavod.service.in > $@
daemon/octavo-vgpu@.service: daemon/octavo-vgpu@.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) daemon && sed -e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' \
		'$(srcdir)/daemon/octavo-vgpu@.service.in' > '$@'
CLEANFILES += daemon/octavod.service daemon/octavo-vgpu@.service
EXTRA_DIST += \
	daemon/octavod.service.in daemon/octavo-vgpu@.service.in \
	$(dbuspolicy_DATA) $(udevrules_DATA) $(modulesload_DATA) $(sysusers_DATA) \
	$(polkitactions_DATA) $(polkitrules_DATA)
