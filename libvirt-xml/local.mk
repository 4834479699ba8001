# SPDX-License-Identifier: LGPL-2.1-or-later
libvirtxmldir = $(docdir)/libvirt-xml
dist_libvirtxml_DATA = \
	libvirt-xml/README.md \
	libvirt-xml/domain-console.xml \
	libvirt-xml/domain-headless.xml \
	libvirt-xml/domain-two.xml \
	libvirt-xml/hostdev.xml \
	libvirt-xml/nodedev.xml
