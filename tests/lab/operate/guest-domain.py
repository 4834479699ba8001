#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""guest-domain.py EXAMPLE NAME DIR KERNEL INITRD WORDS [UUID...]: an example of libvirt-xml/ as a
domain that boots the lab's guest, on standard output. What the example says of vGPUs, controllers,
graphics and limits stays; system, disk and memory become the guest's, its agent's channels are in
DIR, and the vGPUs are those given, in order."""
import sys
import xml.etree.ElementTree as tree

MEMORY_MIB = "768"

example, name, folder, kernel, initrd, words, *uuids = sys.argv[1:]
domain = tree.parse(example).getroot()
devices = domain.find("devices")
domain.find("name").text = name
domain.find("memory").text = MEMORY_MIB
domain.find("vcpu").text = "1"
system = domain.find("os")
system.remove(system.find("boot"))
for tag, text in (("kernel", kernel), ("initrd", initrd), ("cmdline", words)):
    tree.SubElement(system, tag).text = text
tree.SubElement(domain.find("cpu"), "feature", policy="disable", name="svm")
# As guest-start does: what an emulated host is slow with and no guest here needs
tree.SubElement(domain.find("features"), "smm", state="off")
tree.SubElement(devices, "controller", type="usb", model="none")
tree.SubElement(devices, "memballoon", model="none")

devices.remove(devices.find("disk"))
disk = tree.SubElement(devices, "disk", type="block", device="disk")
tree.SubElement(disk, "driver", name="qemu", type="raw")
tree.SubElement(disk, "source", dev="/dev/disk/by-id/virtio-guest")
tree.SubElement(disk, "target", dev="vda", bus="virtio")
tree.SubElement(disk, "readonly")
for serial in devices.findall("serial"):
    devices.remove(serial)
serial = tree.SubElement(devices, "serial", type="file")
tree.SubElement(serial, "source", path=f"{folder}/console.log")
for port in range(4):
    channel = tree.SubElement(devices, "channel", type="unix")
    tree.SubElement(channel, "source", mode="bind", path=f"{folder}/lab{port}")
    tree.SubElement(channel, "target", type="virtio", name=f"lab{port}")
hostdevs = devices.findall("hostdev")
assert len(hostdevs) == len(uuids), f"{example} has {len(hostdevs)} vGPUs, {len(uuids)} were given"
for hostdev, uuid in zip(hostdevs, uuids):
    hostdev.find("source/address").set("uuid", uuid)
tree.ElementTree(domain).write(sys.stdout, encoding="unicode")
