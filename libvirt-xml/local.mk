# SPDX-License-Identifier: LGPL-2.1-or-later
# hostdev and nodedev are templates, which octavoctl xml fills too; their examples are made of them.
libvirtxmldir = $(docdir)/libvirt-xml
libvirtxml_templates = libvirt-xml/hostdev.xml.in libvirt-xml/nodedev.xml.in
libvirtxml_filled = libvirt-xml/hostdev.xml libvirt-xml/nodedev.xml
dist_libvirtxml_DATA = \
	libvirt-xml/README.md \
	libvirt-xml/domain-console.xml \
	libvirt-xml/domain-headless.xml \
	libvirt-xml/domain-hotplug.xml \
	libvirt-xml/domain-memlock.xml \
	libvirt-xml/domain-two.xml
nodist_libvirtxml_DATA = $(libvirtxml_filled)
EXTRA_DIST += $(libvirtxml_templates)
CLEANFILES += $(libvirtxml_filled)

$(libvirtxml_filled): %.xml: %.xml.in $(top_srcdir)/libvirt-xml/local.mk
	$(AM_V_GEN)$(MKDIR_P) libvirt-xml && $(SED) \
		-e 's/[@]DISPLAY[@]/off/' \
		-e 's/[@]PARENT[@]/pci_0000_01_00_0/' \
		-e 's/[@]TYPE[@]/amdgpu-octavo_1_4/' \
		-e 's/[@]UUID[@]/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001/' $< >$@.tmp && mv $@.tmp $@
