// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl xml: the part of a libvirt domain that gives it a vGPU */
#include <stdio.h>

#include "tools/client.h"
#include "tools/octavoctl.h"
#include "tools/output.h"

int xml_hostdev(struct octavoctl *ctl, GError **error)
{
	g_autoptr(GVariant) vgpu = client_vgpu(ctl->bus, ctl->argv[0], error);

	if (!vgpu)
		return 1;
	/* libvirt's own default for display is off; ramfb shows firmware, but excludes hot-plug */
	printf("<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci' display='%s'>\n"
	       "  <source>\n"
	       "    <address uuid='%s'/>\n"
	       "  </source>\n"
	       "</hostdev>\n",
	       ctl->display ? "on" : "off", record_string(vgpu, "uuid"));
	return 0;
}
