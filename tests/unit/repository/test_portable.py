"""What needs no fabric works everywhere: an ordinary user, no Linux, nothing but `pip install .`

See tests/other_system.py for what is taken away.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.captures import every_vector, pcap
from tests.other_system import OF_LINUX
from tests.unit.recorded import record_run

ROOT = Path(__file__).parents[3]
OF_THE_KERNEL = {
    "mrc_testbed.hosts.forker",
    "mrc_testbed.hosts.gateway.tun",
    "mrc_testbed.hosts.launch",
    *(f"mrc_testbed.testbed.app.{name}" for name in ("attach", "execute", "shell", "standby")),
    *(
        f"mrc_testbed.testbed.fabric.{name}"
        for name in (
            *(
                "batch",
                "cables",
                "counters",
                "delay",
                "fabric",
                "fabric_counts",
                "footprint",
                "forker",
                "libbpf",
                "limits",
                "live",
                "mininet_parts",
                "misled",
                "node_shell",
                "nodes",
                "overlay",
                "path_order",
                "port_program",
                "prober",
                "processes",
                "prompt",
                "switch_reading",
            ),
            "bgp.watch",
            *("readback", "readback_queues", "readback_text", "running", "sandbox", "tap", "trials"),
        )
    ),
    *(
        f"mrc_testbed.testbed.runner.{name}"
        for name in ("daemon", "exec_server", "fidelity", "kernel_taps", "kernel_world")
    ),
    "mrc_testbed.testbed.interop.kernel",
    # The server of the live view gets files through Unix sockets.
    *(
        f"mrc_testbed.testbed.web.{name}"
        for name in ("__main__", "channel", "rpc", "server", "server_process", "supervisor_end")
    ),
}
"""Modules that only Linux can import. Whatever a command needs that builds no fabric is not among them."""
SCENARIO = """\
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 8, compute: 100ms, allreduce: 256KiB}}]
faults:
  - {link-down: "h0:p0-t0-0", at: 500ms, for: 500ms}
capture:
  - {links: "h0:p0-t0-0", around: all}
"""
COMMANDS = {
    "validate {root}/scenarios/quickstart.yaml": (0, "quickstart.yaml: ok: quickstart, takes about 30 s"),
    "validate quickstart --set fabric.plains=2": (2, "plains"),
    "schema": (0, '"$schema"'),
    "plan --planes 1,8 --json {here}/plan.json": (0, "plan.json"),
    "topo show quickstart": (0, "p0-t1-0"),
    "scenarios copy quickstart {here}/mine.yaml": (0, "mine.yaml: copied from quickstart"),
    "results {here}/results": (0, "2 runs"),
    "report {run}": (0, "report.html"),
    "compare {run} {again} --out {here}/results": (0, "compare.html"),
    "decode {here}/every.pcap": (0, "SACK"),
    "results rm --out {here}/results {again} --yes": (0, "removed 1 run"),
    "clean --out {here}/results": (0, "nothing to clean"),
    "run {here}/small.yaml --virtual --out {here}/virtual": (0, "PASS  small  8 steps"),
    "run quickstart": (4, "or `--virtual`, which needs neither Linux nor root"),
    "doctor": (4, "No fabric can be built here: Linux missing."),
    "shell quickstart": (4, "Linux is missing"),
    "shell quickstart --set world=virtual -c 'h0 trace h5'": (0, "4  h5"),
}
"""Commands, with the exit status of each and a part of what it prints."""


SYSTEMS = ("win32", "darwin")


def elsewhere(system: str, *arguments: str) -> Any:
    """What tests/other_system.py prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.other_system", system, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.nightly(keep=1)
def test_commands_without_a_fabric_work_on_any_system(tmp_path: Path, system: str) -> None:
    """All in one process a system, since what takes time is to start."""
    run, again = (record_run(tmp_path / "results" / f"2026080{day}T000000Z-small") for day in (1, 2))
    (tmp_path / "small.yaml").write_text(SCENARIO)
    pcap(tmp_path / "every.pcap", every_vector())
    places = {"here": tmp_path, "root": ROOT, "run": run, "again": again}
    answers = elsewhere(system, *(command.format(**places) for command in COMMANDS))
    for (command, (status, told)), (ended, said) in zip(COMMANDS.items(), answers, strict=True):
        assert ended == status, (command, said)
        assert told in said, command


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.nightly(keep=1)
def test_only_what_builds_fabrics_needs_linux(system: str) -> None:
    refused = elsewhere(system, "--imports")
    assert {name: why for name, why in refused.items() if name not in OF_THE_KERNEL} == {}
    assert system == "darwin" or refused.keys() == OF_THE_KERNEL


def test_packages_of_linux_are_installed_on_linux_alone() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    marked = {line for line in wanted if line.endswith("; sys_platform == 'linux'")}
    assert {line for line in wanted if line.startswith(tuple(OF_LINUX))} <= marked
    assert len(marked) >= len(OF_LINUX)
