#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""nova-driver.py inventory FILE...          what Nova's libvirt driver offers of this host's vGPUs
   nova-driver.py tenants DIR WORDS FILE... servers with vGPUs by that driver, in DIR

FILE... is nova.conf in parts. The driver is Nova's own and speaks to this host's libvirt; what it
would fetch from its database is made by Nova's own unit tests' helper, and its view of placement is
its ProviderTree. `inventory` prints a line "GPU CLASS TOTAL" for each GPU."""
import json
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import nova.monkey_patch  # noqa: F401  before anything else, as nova-compute does

import libvirt

import nova.conf
import nova.privsep
from nova import config, context, exception, objects
from nova.compute import provider_tree
from nova.network import model as network_model
from nova.tests.unit import fake_instance
from nova.virt.libvirt import blockinfo, config as vconfig, driver as libvirt_driver
from oslo_log import log

CONF = nova.conf.CONF
MDEVS = Path("/sys/bus/mdev/devices")


def note(text):
    print(f"# {text}", flush=True)


def configure(files):
    """What nova-compute does at its start before its driver, without message bus and database"""
    words = [word for file in files for word in ("--config-file", file)]
    config.parse_args(["nova-compute", *words], configure_db=False, init_rpc=False)
    log.setup(CONF, "nova")
    nova.conf.neutron.register_dynamic_opts(CONF)
    # this process is root already: no helper with privileges
    nova.privsep.sys_admin_pctxt.set_client_mode(False)
    objects.register_all()
    # what is read from and noted in the database: that there are no servers, and that libvirt is there
    mock.patch.object(objects.InstanceList, "get_by_host",
                      return_value=objects.InstanceList(objects=[])).start()
    mock.patch.object(libvirt_driver.LibvirtDriver, "_set_host_enabled").start()


def start():
    driver = libvirt_driver.LibvirtDriver(None)
    driver.init_host("lab")
    return driver


class Cloud:
    """The compute node as placement knows it."""

    def __init__(self, driver):
        self.driver = driver
        self.node = driver._host.get_hostname()
        self.tree = provider_tree.ProviderTree()
        self.tree.new_root(self.node, "83b8f4f2-509f-382f-3c1e-e6bfe0fa3001")

    def inventory(self):
        """{GPU's libvirt name: (resource class, total)}"""
        self.driver.update_provider_tree(self.tree, self.node)
        found = {}
        for name in self.tree.get_provider_uuids():
            provider = self.tree.data(name)
            if provider.name.startswith(self.node + "_pci_"):
                for resource, record in provider.inventory.items():
                    found[provider.name[len(self.node) + 1:]] = (resource, record["total"])
        return found

    def allocation(self, gpu, count):
        """What placement would hand over for a server that got COUNT of GPU"""
        provider = self.tree.data(f"{self.node}_{gpu}")
        (resource,) = provider.inventory
        return {provider.uuid: {"resources": {resource: count}}}


def inventory(files):
    configure(files)
    for gpu, (resource, total) in sorted(Cloud(start()).inventory().items()):
        print(gpu, resource, total)


class Server:
    """One server of a tenant"""

    def __init__(self, driver, number, words):
        self.driver = driver
        self.context = context.get_admin_context()
        flavor = objects.Flavor(
            id=1, name="gpu.quarter", flavorid="1", memory_mb=768, vcpus=1, root_gb=1, ephemeral_gb=0,
            swap=0, rxtx_factor=1.0, vcpu_weight=1, disabled=False, is_public=True,
            extra_specs={"resources:VGPU": "1"}, projects=[])
        self.instance = fake_instance.fake_instance_obj(
            self.context, id=number, display_name=f"tenant{number}", host="lab", node="lab",
            image_ref="83b8f4f2-509f-382f-3c1e-e6bfe0fa3002", kernel_id="lab", ramdisk_id="lab",
            root_device_name="/dev/vda", config_drive="", flavor=flavor, root_gb=1,
            expected_attrs=["metadata", "system_metadata", "pci_devices", "pci_requests",
                            "numa_topology", "vcpu_model", "trusted_certs", "resources",
                            "device_metadata"])
        self.image = objects.ImageMeta.from_dict({
            "id": self.instance.image_ref, "disk_format": "qcow2", "container_format": "bare",
            "properties": {"hw_machine_type": "q35", "hw_video_model": "vga",
                           "os_command_line": words}})
        self.network = network_model.NetworkInfo([])
        self.folder = Path(CONF.instances_path, self.instance.uuid)

    def prepare(self, guest):
        """Files that Nova would have fetched as images: the lab's guest"""
        self.folder.mkdir(parents=True)
        for name, file in (("kernel", "vmlinux-6.12"), ("ramdisk", "initrd-6.12.cpio")):
            (self.folder / name).write_bytes(Path(guest, file).read_bytes())
        disk = Path("/dev/disk/by-id/virtio-guest").resolve()
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", disk,
                        self.folder / "disk"], check=True)

    def boot(self, mdevs):
        disks = blockinfo.get_disk_info(CONF.libvirt.virt_type, self.instance, self.image)
        self.driver._ensure_console_log_for_instance(self.instance)
        xml = self.driver._get_guest_xml(self.context, self.instance, self.network, disks,
                                         self.image, mdevs=mdevs)
        self.driver._create_guest(self.context, xml, self.instance)
        return xml

    def wait_until_up(self, seconds):
        log, end = self.folder / "console.log", time.monotonic() + seconds
        while b"guest is up" not in (log.read_bytes() if log.exists() else b""):
            assert time.monotonic() < end, f"the server is not up within {seconds} s: see {log}"
            time.sleep(0.2)

    def delete(self):
        self.driver._destroy(self.instance)
        self.driver._undefine_domain(self.instance)


def is_open(uuid):
    shown = subprocess.run(["octavoctl", "--json", "show", uuid], check=True, capture_output=True)
    return json.loads(shown.stdout)["state"] == "open"


def tenants(folder, words, files):
    configure(files)
    driver = start()
    cloud = Cloud(driver)

    note("the types that Nova's driver sees")
    devices = driver._get_mdev_capable_devices()
    for device in devices:
        free = sorted(type_["availableInstances"] for type_ in device["types"].values())
        note(f"{device['dev_id']}: {device['types']}")
        assert free == [2, 4, 8], f"free of each type on {device['dev_id']}: {free}"
    assert len(devices) == 2, f"GPUs with types: {devices}"
    gpu = devices[0]["dev_id"]
    (quarter,) = [type_ for type_ in devices[0]["types"] if type_.endswith("octavo_1_4")]

    note("its inventory of an empty host")
    inventories = cloud.inventory()
    assert inventories == {device["dev_id"]: ("VGPU", 4) for device in devices}, inventories

    note("a server: it creates the vGPU, makes it persistent and starts it with the host")
    (first,) = driver._allocate_mdevs(cloud.allocation(gpu, 1))
    assert (MDEVS / first / "mdev_type").resolve().name == quarter
    defined = subprocess.run(["mdevctl", "list", "-d"], check=True, capture_output=True, text=True).stdout
    (line,) = [line for line in defined.splitlines() if line.startswith(first)]
    assert line.split()[2] == quarter and "auto" in line, line
    one = Server(driver, 1, words)
    one.prepare(folder)
    xml = one.boot([first])
    domain = vconfig.LibvirtConfigGuest()
    domain.parse_str(xml)
    hostdevs = [d for d in domain.devices if isinstance(d, vconfig.LibvirtConfigGuestHostdevMDEV)]
    assert [d.uuid for d in hostdevs] == [first], xml
    assert is_open(first), "the vGPU is not open although its server runs"
    one.wait_until_up(480)
    note("the server is up")

    note("inventory: what exists and what still fits")
    inventories = cloud.inventory()
    assert inventories[gpu] == ("VGPU", 4), inventories

    note("another server gets another one; that of a deleted server is handed on")
    (second,) = driver._allocate_mdevs(cloud.allocation(gpu, 1))
    assert second != first
    assert driver._get_all_assigned_mediated_devices() == {first: one.instance.uuid}
    one.delete()
    end = time.monotonic() + 30
    while is_open(first):
        assert time.monotonic() < end, "the vGPU stays open after its server"
        time.sleep(0.1)
    both = driver._allocate_mdevs(cloud.allocation(gpu, 2))
    assert set(both) == {first, second}, f"{both} instead of those that were free"

    note("all of a GPU, and one more")
    four = driver._allocate_mdevs(cloud.allocation(gpu, 4))
    assert len(set(four)) == 4 and {first, second} <= set(four), four
    assert cloud.inventory()[gpu] == ("VGPU", 4)
    try:
        driver._allocate_mdevs(cloud.allocation(gpu, 5))
    except exception.ComputeResourcesUnavailable as error:
        note(f"a fifth: {error}")
    else:
        raise AssertionError("Nova got five quarters of one GPU")

    note("nova-compute starts again: it starts those that are defined and not there")
    for uuid in four[1:]:
        subprocess.run(["mdevctl", "stop", "-u", uuid], check=True)
    # libvirt hears of it by and by; what it lists without being asked for a state is all it knows
    end = time.monotonic() + 60
    stopped = libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_INACTIVE
    while len(inactive := driver._host.list_all_devices(flags=stopped)) != 3:
        assert time.monotonic() < end, f"inactive for libvirt: {[device.name() for device in inactive]}"
        time.sleep(0.1)
    start()
    missing = [uuid for uuid in four if not (MDEVS / uuid).exists()]
    assert not missing, f"not started: {missing}"


if __name__ == "__main__":
    if sys.argv[1] == "inventory":
        inventory(sys.argv[2:])
    else:
        tenants(sys.argv[2], sys.argv[3], sys.argv[4:])
