"""tools/test-stock: what needs neither QEMU nor a mirror. The rest of it is tried by `make test-stock` itself."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.repository.developer_tools import loaded

DEPENDS = """kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz
kernel/net/9p/9pnet.ko.xz:
kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz
kernel/fs/netfs/netfs.ko.xz:
kernel/fs/overlayfs/overlay.ko.xz:
kernel/drivers/net/dummy.ko.xz:
"""
RUNS = """PASS  stock-quickstart  6 steps, P100 3.29 s
PASS  stock-quickstart  6 steps, P100 3.54 s

2 runs: 2 pass, in /tmp/results
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("test-stock")


def test_the_initramfs_has_what_its_modules_need_and_no_others(tool: ModuleType) -> None:
    """virtio_pci is built into this kernel."""
    names = {Path(name).name for name in tool.needed_modules(DEPENDS)}
    assert names == {"9p.ko.xz", "9pnet.ko.xz", "9pnet_virtio.ko.xz", "netfs.ko.xz", "overlay.ko.xz"}


@pytest.mark.parametrize(
    ("flags", "device", "accelerator"),
    [("fpu vmx sse", True, "kvm"), ("fpu svm", True, "kvm"), ("fpu svm", False, "tcg"), ("fpu svm_lock", True, "tcg")],
)
def test_kvm_is_used_where_the_processor_has_it(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, device: bool, accelerator: str
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n", encoding="ascii")
    monkeypatch.setattr(tool, "CPUS", tmp_path / "cpuinfo")
    monkeypatch.setattr(tool, "KVM", tmp_path / ("cpuinfo" if device else "kvm"))
    assert tool.accelerator().split(",")[0] == accelerator


@pytest.mark.parametrize(
    ("status", "part", "result"),
    [
        (0, "tests", "PASS"),
        (1, "tests", "FAIL"),
        (3, "quickstart", "INCONCLUSIVE"),
        (3, "tests", "FAIL"),
        (None, "quickstart", "NOT RUN"),
    ],
)
def test_result(tool: ModuleType, status: int | None, part: str, result: str) -> None:
    assert tool.result_of(status, part) == result


def test_what_runs_came_to_is_one_line(tool: ModuleType) -> None:
    assert tool.ended_as("quickstart", RUNS) == "2 runs: 2 pass"
    assert tool.ended_as("quickstart", "Error: no such file\n") == "Error: no such file"
    assert tool.ended_as("tests", "=== 61 passed, 2 inconclusive in 401.10s (0:06:41) ===\n").startswith("61 passed")


ANSWERS = """#!/bin/sh
for word; do case $word in *mount_tag=shared) shared=${word#*path=}; shared=${shared%%,*} ;; esac; done
cp "$shared/command" "$shared/output"
echo 3 >"$shared/status"
"""
HANGS = "#!/bin/sh\nexec sleep 60\n"


@pytest.fixture
def kernel(tool: ModuleType, tmp_path: Path) -> Any:
    (tmp_path / "kernel/boot").mkdir(parents=True)
    (tmp_path / "kernel/boot/vmlinuz-6.1.0-50-amd64").touch()
    return tool.Kernel(tmp_path / "kernel")


@pytest.mark.parametrize(("program", "status"), [(ANSWERS, 3), (HANGS, None)], ids=["answers", "hangs"])
def test_what_a_machine_leaves_is_its_result(
    tool: ModuleType, kernel: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, status: int | None
) -> None:
    (tmp_path / "qemu").write_text(program, encoding="ascii")
    (tmp_path / "qemu").chmod(0o755)
    monkeypatch.setattr(tool, "QEMU", str(tmp_path / "qemu"))
    assert kernel.version == "6.1.0-50-amd64"
    ended, output = tool.boot(kernel, tmp_path / "shared", "make it", 0.01)
    assert ended == status
    assert ("bash -c 'make it'" in output) is (status is not None)


def refusal(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        tool.check_machine()
    assert stop.value.code == 4
    return capsys.readouterr().err


def test_what_the_machine_lacks_is_one_line(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in refusal(tool, capsys)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(tool, capsys) == "test-stock: needs qemu-system-x86_64: apt-get install qemu-system-x86\n"
    for name in ("qemu-system-x86_64", "apt-get", "dpkg-deb"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(tool, "KEYRING", tmp_path / "keys")
    assert "apt-get install debian-archive-keyring" in refusal(tool, capsys)
