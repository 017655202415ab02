"""What really passes a T1 port, seen by tcpdump: uSIDs shifted, the EV in flow label and source port."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address
from pathlib import Path

import pytest
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.phases import Phases, RunJob
from mrc_testbed.testbed.runner.progress import Silent
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos import usid
from tests.emu.conftest import isolated

SCENARIO = """
name: wire
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload:
  - train: {hosts: all, steps: 2, compute: 10ms, allreduce: 1MiB}
"""
T1_PORT = ("p1-t1-1", "down1")
"""Towards group 1 in plane 1: packets of h0 to h1 over uplink 1 leave the T1 here."""
DSCP_DATA = 4
ECT0 = 2


class CapturedRun(Phases):
    """A run with tcpdump on one port from the barrier on."""

    def __init__(self, job: RunJob, recorder: Recorder, capture: Path) -> None:
        super().__init__(job, recorder, Silent())
        self.capture = capture

    def barrier(self) -> int:
        node, port = T1_PORT
        self.fabric.node(node).cmd(
            f"tcpdump -i {port} -Q out -U -w {shlex.quote(str(self.capture))} not ip6 multicast 2>/dev/null &"
        )
        while not (self.capture.exists() and self.capture.stat().st_size >= 24):
            time.sleep(0.01)
        return super().barrier()

    def tear_down(self) -> None:
        self.fabric.node(T1_PORT[0]).cmd("kill %1; wait")
        super().tear_down()


def run_in_sandbox(
    tmp_path: Path,
    machine: list[Capability],
    options: FabricOptions,
    make: Callable[[RunJob, Recorder], Phases],
    text: str = SCENARIO,
) -> Scenario:
    scenario = load_scenario_text(text)
    (tmp_path / "logs").mkdir()

    def body() -> None:
        recorder = Recorder(tmp_path)
        make(RunJob(scenario, tmp_path, KernelWorld(machine, options)), recorder).run_all()
        recorder.close()

    isolated(body)
    return scenario


@pytest.mark.timeout(120)
def test_a_t1_port_shows_usid_in_ipv6_and_the_ev(
    tmp_path: Path, machine: list[Capability], options: FabricOptions
) -> None:
    capture = tmp_path / "t1.pcap"
    run_in_sandbox(tmp_path, machine, options, lambda job, recorder: CapturedRun(job, recorder, capture))
    packets = [packet for packet in rdpcap(str(capture)) if IPv6 in packet]
    assert len(packets) > 100
    data = 0
    for packet in packets:
        outer = packet[IPv6]
        assert outer.nh == 41, "IPv6 in IPv6, no routing header"
        inner, udp = outer.payload, outer.payload[UDP]
        # T0src and T1 have been shifted out: what is left is the T0 of group 1 and the host's downlink.
        left = usid.split_container(outer.dst)
        assert left == [usid.usid(usid.TIER_T0, 1, 1), usid.usid(usid.TIER_HOST, 1, 0)]
        host, path = usid.split_inner(inner.dst)
        assert (host, path) == (1, usid.PathId(plane=1, uplink=1))
        value = inner.fl << 16 | udp.sport
        assert usid.split_ev(value) == (path, 0xC000), "EV[31:16] is the flow label, EV[15:0] the UDP source port"
        assert outer.fl == inner.fl, "the kernel copies the flow label outside"
        assert outer.tc == inner.tc, "and the traffic class"
        assert IPv6Address(inner.src) == IPv6Address(usid.plain_address(0))
        assert (udp.dport, udp.chksum) == (4791, 0)
        data += len(udp.payload) > 4096 and inner.tc == DSCP_DATA << 2 | ECT0
    assert data > 50


@pytest.mark.timeout(120)
def test_one_qp_uses_every_plane_equally_and_every_uplink(
    tmp_path: Path, machine: list[Capability], options: FabricOptions
) -> None:
    scenario = run_in_sandbox(tmp_path, machine, options, lambda job, recorder: Phases(job, recorder, Silent()))
    counters = json.loads((tmp_path / "counters.json").read_text(encoding="utf-8"))
    for host, peer in (("h0", "h1"), ("h1", "h0")):
        sent = counters["hosts"][host]["counters"]["data_sent"]
        paths = {tuple(map(int, key.split("/"))): n for key, n in counters["hosts"][host]["paths"][peer].items()}
        assert sum(paths.values()) == sent > 400
        planes = Counter[int]()
        for (plane, _), packets in paths.items():
            planes[plane] += packets
        assert max(planes.values()) - min(planes.values()) <= 1
        assert set(paths) == {(plane, up) for plane in range(2) for up in range(2)}
        assert min(paths.values()) > 0.8 * sent / len(paths)
        # The kernel's own count agrees; what is not data are SACKs, acknowledgements and probes, all of them short.
        ports = {row[2]: int(row[6]) for row in last_samples(tmp_path) if row[1] == host}
        assert set(ports) == {"port0", "port1"}
        assert max(ports.values()) < 1.05 * min(ports.values())
    assert scenario.name == "wire"


def last_samples(folder: Path) -> list[list[str]]:
    rows = [line.split(",") for line in (folder / "samples.csv").read_text(encoding="utf-8").splitlines()[1:]]
    return [row for row in rows if row[0] == rows[-1][0]]
