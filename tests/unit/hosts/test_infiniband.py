"""The files that programs find of their NIC."""

import os

import pytest

from mrc_testbed.hosts import infiniband

NIC = {"device": "mlx5_0", "gid_index": 3, "ipv4": "10.64.0.17", "netdev": "mrc0"}


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    """A machine with three classes. Mounts are noted, and what one hides is put aside."""
    classes = tmp_path / "class"
    for name in ("net", "infiniband", "block"):
        (classes / name).mkdir(parents=True)
    (classes / "infiniband" / "of_the_machine").mkdir()
    monkeypatch.setattr(infiniband, "CLASSES", classes)
    made = []

    def mount(source, target, kind, flags):
        made.append((source, target, kind, flags))
        if kind == "tmpfs":
            os.rename(target, tmp_path / "hidden")
            os.mkdir(target)

    infiniband.own_nic(NIC, mount)
    return classes, made


def text(classes, name):
    content = (classes / "infiniband" / "mlx5_0" / name).read_text()
    assert content.endswith("\n")
    return content[:-1]


def test_the_gid_table(mounts):
    classes, _ = mounts
    assert text(classes, "ports/1/gids/3") == "0000:0000:0000:0000:0000:ffff:0a40:0011"
    for index in (0, 1, 2):
        assert text(classes, f"ports/1/gids/{index}") == "0000:0000:0000:0000:0000:0000:0000:0000"
    assert text(classes, "ports/1/gid_attrs/types/3") == "RoCE v2"
    assert text(classes, "ports/1/gid_attrs/ndevs/3") == "mrc0"
    types = classes / "infiniband" / "mlx5_0" / "ports" / "1" / "gid_attrs" / "types"
    assert [each.name for each in types.iterdir()] == ["3"]


def test_the_port_is_active_and_is_of_ethernet(mounts):
    classes, _ = mounts
    assert text(classes, "ports/1/state") == "4: ACTIVE"
    assert text(classes, "ports/1/phys_state") == "5: LinkUp"
    assert text(classes, "ports/1/link_layer") == "Ethernet"
    assert text(classes, "node_type") == "1: CA"
    assert [each.name for each in (classes / "infiniband" / "mlx5_0" / "ports").iterdir()] == ["1"]


def test_the_device_has_a_place_on_a_bus(mounts):
    """Programs resolve it, and take its name for bus, device and function."""
    classes, _ = mounts
    place = (classes / "infiniband" / "mlx5_0" / "device").resolve(strict=True)
    assert place.name == "0000:01:00.0"
    assert place.is_dir()


def test_the_other_classes_of_the_machine_stand_beside_it(mounts):
    classes, made = mounts
    assert made[0] == ("tmpfs", str(classes), "tmpfs", 0)
    bound = {target: source for source, target, kind, _ in made[1:] if kind is None}
    assert {os.path.basename(target) for target in bound} == {"net", "block"}
    for target, source in bound.items():
        assert source.startswith("/proc/self/fd/")
        assert source.endswith("/" + os.path.basename(target))


def test_it_is_the_only_nic(mounts):
    """One of the machine is not a program's; and what is bound from the kernel cannot be written."""
    classes, _ = mounts
    assert [each.name for each in (classes / "infiniband").iterdir()] == ["mlx5_0"]


def test_no_descriptor_stays_open(mounts):
    links = [
        os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if name.isdigit() and os.path.lexists(f"/proc/self/fd/{name}")
    ]
    assert not [link for link in links if link.endswith("/hidden") or link.endswith("/class")]
