"""The port program comes and goes: what stays in the kernel, and what is said where it cannot be had."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric import capabilities, port_object, port_program, trials
from mrc_testbed.testbed.fabric.capabilities import PORT_PROGRAM
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.emu.conftest import isolated
from tests.emu.port_stage import options as options
from tests.emu.port_stage import run
from tests.emu.runs import Run, wait_for
from tests.port_cases import SMALL


def programs_at(pid: int, port: str) -> list[int]:
    """Kernel ids of the programs at a port in the network namespace of a process. Ids are not used twice."""
    ids = []
    for hook in ("ingress", "egress"):
        ask = ["nsenter", f"--net=/proc/{pid}/ns/net", "tc", "-j", "filter", "show", "dev", port, hook]
        answer = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        ids += [row["options"]["prog"]["id"] for row in json.loads(answer) if "options" in row]
    return ids


def alive(ids: list[int]) -> list[int]:
    """Which of these programs the kernel still holds, for whatever reason."""
    library = ctypes.CDLL("libbpf.so.1", use_errno=True)
    found = []
    for number in ids:
        descriptor = library.bpf_prog_get_fd_by_id(number)
        if descriptor >= 0:
            os.close(descriptor)
            found.append(number)
    return found


def test_nothing_stays_in_the_kernel(options: FabricOptions, tmp_path: Path) -> None:
    note = tmp_path / "ids"

    def body(fabric: Fabric) -> None:
        ids = programs_at(fabric.pids["p0-t0-0"], "up0")
        assert alive(ids) == ids
        note.write_text(json.dumps(ids), encoding="utf-8")

    run(body, options)
    ids = json.loads(note.read_text(encoding="utf-8"))
    assert len(ids) == 2
    wait_for(lambda: not alive(ids), "the programs to be gone")


@pytest.mark.timeout(120)
def test_kill_9_leaves_no_program(tmp_path: Path, options: FabricOptions) -> None:
    killed = Run(tmp_path, steps=500)
    killed.wait_until_step(1)
    (switch,) = killed.pids("mininet:p0-t0-0")
    ids = programs_at(switch, "up0")
    assert len(ids) == 2
    assert alive(ids) == ids
    supervisor = max(killed.pids("mrc-testbed run"))
    os.kill(supervisor, 9)
    killed.process.communicate(timeout=30)
    wait_for(lambda: not killed.pids(), "the processes to be gone")
    wait_for(lambda: not alive(ids), "the programs to be gone")


def test_without_compiler_and_cache_switches_are_plain_shapers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(port_object, "_COMPILER", "no-such-clang")

    def body() -> None:
        found = trials.probe_kernel()
        mine: Any = next(entry for entry in found if entry.name == PORT_PROGRAM)
        assert (mine.present, mine.needed) == (False, False)
        assert mine.detail == "clang is missing and the port program has not been compiled before"
        assert "apt-get install clang" in mine.fix
        assert capabilities.choose(found, SMALL).switch_ports == "plain shaper"

    isolated(body)


def test_what_the_verifier_refuses_is_one_readable_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unchecked = "data + bytes > (void *)(long)skb->data_end"
    for file in port_object.SOURCE.parent.iterdir():
        source = file.read_text(encoding="utf-8")
        assert (unchecked in source) is (file.name == "packets.h")
        (tmp_path / file.name).write_text(source.replace(unchecked, "!data"), encoding="utf-8")
    monkeypatch.setattr(port_object, "SOURCE", tmp_path / port_object.SOURCE.name)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    def body() -> None:
        with pytest.raises(FabricError) as refused:
            port_program.load(1, FabricOptions("dummy", "none"))
        said = str(refused.value)
        assert said.startswith("fabric: load the port program: the kernel refused it: ")
        assert said.endswith("outside of the packet")
        assert "\n" not in said

    isolated(body)
