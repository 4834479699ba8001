# SPDX-License-Identifier: LGPL-2.1-or-later
dist_man_MANS += \
	docs/man/octavo-run.1 \
	docs/man/octavo-sim.1 \
	docs/man/octavo-vgpu.8 \
	docs/man/octavo.conf.5 \
	docs/man/octavoctl.1 \
	docs/man/octavod.8 \
	docs/man/org.octavo1.5
dist_doc_DATA += \
	docs/abi.md \
	docs/architecture.md \
	docs/comparison.md \
	docs/doorbell.md \
	docs/install.md \
	docs/kubevirt.md \
	docs/monitoring.md \
	docs/openstack.md \
	docs/operations.md \
	docs/performance.md \
	docs/scheduler.md \
	docs/security.md
include libvirt-xml/local.mk
