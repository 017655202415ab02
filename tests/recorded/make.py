"""Record again what this machine's iproute2, tshark and kernel say. As root, in the folder of the project:

    .venv/bin/python -m tests.recorded.make

It writes tests/recorded/iproute2-VERSION/ and tests/recorded/tshark-VERSION/; to have the versions of a distribution,
run it there. Addresses, names and numbers come from the plan, so two versions differ in form only.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from socket import AF_INET6, IPPROTO_IPV6, IPV6_TCLASS, SOCK_DGRAM, socket
from typing import Any

from mrc_testbed.testbed.fabric import batch, capabilities, counters, readback
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of, open_of, run_isolated
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.routes import Routing
from tests.captures import CONTROL_CLASS, DATA_CLASS, every_vector, pcap
from tests.recorded import FOLDER, PLAN, PLANS, SHAPE, single
from tests.tshark import fields_text

SLOW, SLOW_BPS = "h1:p0-t0-0", 2_500_000
HALVED, HALVED_BPS = "h0:p1-t0-0", 12_345_678
_NODE_FILES = ("net/dev", "net/snmp6", "schedstat")
_MACHINE_FILES = ("/proc/pressure/cpu", "/proc/net/softnet_stat")


class Recorder:
    """Takes the place of batch.query and keeps what went through it."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._answers: dict[str, dict[str, dict[str, str]]] = {}

    def query(
        self, command: list[str], pids: Mapping[str, int], stdin: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        if command == readback.IP_JSON:
            assert stdin is not None
            return {node: self._one_by_one(stdin[node], {node: pid}) for node, pid in pids.items()}
        answers = batch.query(command, pids, stdin)
        kept = self._answers.setdefault(" ".join(command), {})
        kept |= {node: {"stdin": (stdin or {}).get(node, ""), "stdout": text} for node, text in answers.items()}
        return answers

    def _one_by_one(self, lines: str, pid: Mapping[str, int]) -> str:
        return "".join(text for line in lines.splitlines() for text in self.query(single(line), pid).values())

    def write(self, path: Path) -> None:
        """Ask everything that the testbed asks, and keep it with what should be the answer."""
        for module in (readback, counters):
            module.query = self.query  # type: ignore[attr-defined]
        self._fabric.verify()
        self._fabric.queues()
        self.query(["ip", "-6", "route", "show"], self._fabric.pids)
        kept = {"state": _state(self._fabric), "answers": self._answers, "proc": _proc(self._fabric.pids)}
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _state(fabric: Fabric) -> dict[str, Any]:
    expected, options = fabric._expected(), fabric.options
    return {
        "sid_device": options.sid_device,
        "delay": options.delay,
        "switch_ports": options.switch_ports,
        "routing": fabric.plan.routing,
        "hash_seed": options.hash_seed,
        "rates_bps": dict(expected.rates_bps),
        "programs": dict(expected.programs),
        "down": sorted([port.node, port.name] for port in expected.down),
        "off": sorted(expected.off),
    }


def _proc(pids: Mapping[str, int]) -> dict[str, dict[str, str]]:
    found = {"machine": {name: Path(name).read_text(encoding="ascii") for name in _MACHINE_FILES}}
    for node, pid in pids.items():
        found[node] = {}
        for name in _NODE_FILES:
            with open(open_of(pid, node, name), encoding="ascii") as file:
                found[node][name] = file.read()
    return found


def _flood(fabric: Fabric) -> None:
    """More than the slowed port can queue, in both of its classes, to a port of h1 where nobody listens."""
    h0, h1 = fabric.plan.hosts[:2]
    path = next(path for path in fabric.plan.paths(h0, h1) if path.id.plane == 0)
    with network_of(fabric.pids["h0"], "h0"), socket(AF_INET6, SOCK_DGRAM) as sender:
        for traffic_class, packets in ((DATA_CLASS, 200), (CONTROL_CLASS, 100)):
            sender.setsockopt(IPPROTO_IPV6, IPV6_TCLASS, traffic_class)
            for _ in range(packets):
                with suppress(ConnectionRefusedError):
                    sender.sendto(bytes(4000), (path.inner, 9))
    time.sleep(2)


def _plain(folder: Path, options: FabricOptions) -> int:
    fabric = Fabric.build(PLAN, options)
    fabric.set_rate(SLOW, SLOW_BPS)
    _flood(fabric)
    Recorder(fabric).write(folder / "plain.json")
    return 0


def _programmed(folder: Path, options: FabricOptions) -> int:
    fabric = Fabric.build(PLAN, options)
    Recorder(fabric).write(folder / "program.json")
    fabric.set_rate(HALVED, HALVED_BPS)
    fabric.prepare_faults(PLAN.node_names)
    fabric.ports_down([PLAN.link_by_name["h0:p0-t0-0"].far])
    fabric.switch_off("p1-t0-0")
    Recorder(fabric).write(folder / "broken.json")
    return 0


def _choosing(folder: Path, options: FabricOptions) -> int:
    """Switches that choose the path: whole; then without carrier at one port, and with one that is down itself."""
    plan = PLANS[Routing.ECMP_STATIC]
    fabric = Fabric.build(plan, options)
    Recorder(fabric).write(folder / "ecmp.json")
    fabric.prepare_faults(plan.node_names)
    fabric.ports_down([plan.link_by_name["p0-t0-0:p0-t1-1"].far, plan.link_by_name["p0-t0-1:p0-t1-0"].near])
    fabric.switch_off("p1-t1-0")
    Recorder(fabric).write(folder / "ecmp-broken.json")
    return 0


def _folder(tool: list[str], name: str) -> Path:
    """By the first two numbers of the version, such as `iproute2-6.1`."""
    said = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+\.\d+)\.", said)
    assert found, f"no version in what {tool[0]} says: {said}"
    folder = FOLDER / f"{name}-{found[1]}"
    folder.mkdir(exist_ok=True)
    return folder


def _dissect(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        text = fields_text(pcap(Path(scratch) / "vectors.pcap", every_vector()))
    (folder / "vectors.txt").write_text(text, encoding="utf-8")


def main() -> None:
    found = capabilities.probe()
    capabilities.require(found)
    chosen = capabilities.choose(found, SHAPE)
    folder = _folder(["ip", "-V"], "iproute2")
    for make, ports in ((_plain, "plain shaper"), (_programmed, "port program"), (_choosing, "port program")):
        options = replace(chosen, switch_ports=ports)  # type: ignore[arg-type]
        status = run_isolated(lambda make=make, options=options: make(folder, options))  # type: ignore[misc]
        assert status == 0, f"the sandbox ended with status {status}"
    _dissect(_folder(["tshark", "--version"], "tshark"))


if __name__ == "__main__":
    main()
