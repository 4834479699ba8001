// SPDX-License-Identifier: LGPL-2.1-or-later
/* octavoctl xml: what libvirt is told about a vGPU, from the templates in libvirt-xml/ */
#include <stdio.h>

#include "tools/client.h"
#include "tools/hostdev.xml.h"
#include "tools/nodedev.xml.h"
#include "tools/octavoctl.h"
#include "tools/output.h"

/* libvirt's name of a PCI device: "pci_0000_01_00_0"; the caller's. */
static char *xml_parent(const char *address)
{
	g_autofree char *name = g_strconcat("pci_", address, NULL);

	return g_strdelimit(g_steal_pointer(&name), ":.", '_');
}

static char *xml_fill(const struct octavoctl *ctl, GVariant *vgpu)
{
	GString *text = g_string_new(ctl->nodedev ? xml_nodedev : xml_hostdev);
	g_autofree char *parent = xml_parent(record_string(vgpu, "gpu_address"));

	/* libvirt's own default for display is off; ramfb shows firmware, but excludes hot-plug */
	g_string_replace(text, "@DISPLAY@", ctl->display ? "on" : "off", 0);
	g_string_replace(text, "@PARENT@", parent, 0);
	g_string_replace(text, "@TYPE@", record_string(vgpu, "type"), 0);
	g_string_replace(text, "@UUID@", record_string(vgpu, "uuid"), 0);
	return g_string_free(text, FALSE);
}

int xml_show(struct octavoctl *ctl, GError **error)
{
	g_autoptr(GVariant) vgpu = client_vgpu(ctl->bus, ctl->argv[0], error);
	g_autofree char *text = NULL;

	if (!vgpu)
		return 1;
	if (ctl->nodedev && ctl->display) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_USAGE,
			    "--display says how a VM has the vGPU, --nodedev what it is: give one of them");
		return 1;
	}
	text = xml_fill(ctl, vgpu);
	if (ctl->json) {
		g_autoptr(GVariant) record = g_variant_ref_sink(
			g_variant_new_parsed("{'uuid': <%s>, 'xml': <%s>}", record_string(vgpu, "uuid"), text));

		output_json(record);
		return 0;
	}
	fputs(text, stdout);
	return 0;
}
