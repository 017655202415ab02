"""`run --dry-run`: what a run would do, told without doing any of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.calls import Call

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a process nor a namespace, nor a user who is root."""

    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError(f"a dry run does {arguments}")

    for name in ("fork", "posix_spawn", "execve", "unshare"):
        if hasattr(os, name):
            monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    monkeypatch.setattr("mrc_testbed.testbed.fabric.capabilities.probe", refuse)


@on_linux
@pytest.mark.usefixtures("nothing_starts")
def test_a_run_on_the_kernel_is_told(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("run", str(SMALL), "--dry-run")
    assert ended.status == 0
    head, *lines = ended.out.splitlines()
    assert head.startswith("small, seed 11: on this kernel, in namespaces of its own, about ")
    told = {line.split()[0]: line for line in lines}
    assert told["links"].endswith("24 pairs of veth devices")
    assert "for 4 hosts, 12 switches" in told["namespaces"]
    assert "results/<UTC>-small/" in told["writes"]
    faults = [line.split(maxsplit=1)[1] for line in lines if line.startswith("  fault")]
    assert faults[0] == "at 100 ms for 500 ms: link-loss h1:p0-t0-0"
    assert len(faults) == 6
    assert not list(tmp_path.iterdir())


@on_linux
@pytest.mark.usefixtures("nothing_starts")
def test_every_cell_as_json(call: Call) -> None:
    ended = call("run", str(SMALL), "--matrix", "fabric.planes=2,3", "--dry-run", "--json", "-")
    one, two = json.loads(ended.out)
    assert (one["links"], two["links"]) == (24, 36)
    assert two["ip"]["route"] > one["ip"]["route"] > 0
    assert one["needs"]["memory_mib"] == 4 * 27 + 143
    assert one["faults"][0] == {
        "fault": "link-loss-1",
        "kind": "link-loss",
        "targets": ["h1:p0-t0-0"],
        "begin_ns": 100_000_000,
        "end_ns": 600_000_000,
    }


@pytest.mark.usefixtures("nothing_starts")
def test_virtual_time_touches_no_kernel(call: Call) -> None:
    ended = call("run", str(SMALL), "--virtual", "--dry-run")
    assert ended.status == 0
    assert "in virtual time" in ended.out
    assert not [word for word in ("namespaces", "tc ", "root") if word in ended.out.partition("\n")[2]]


def test_mistakes_are_those_of_validate(call: Call, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\nfabric: {plains: 2}\nworkload: []\n")
    told, checked = call("run", str(broken), "--dry-run"), call("validate", str(broken))
    assert (told.status, told.out) == (2, "")
    assert told.said[0] == checked.said[0]
