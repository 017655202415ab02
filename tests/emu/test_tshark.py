"""Real packets of the fabric, captured on a T1 port while a link flaps, in real tshark with our dissector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.emu.test_wire import CapturedRun, run_in_sandbox
from tests.tshark import dissected, parsed, tshark

FLAP = """
name: tshark
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}
workload:
  - train: {hosts: all, steps: 4, compute: 10ms, allreduce: 1MiB}
faults:
  - {at: 150ms, link-flap: ["p0-t0-0:p0-t1-0", "p1-t0-0:p1-t1-0"], period: 300ms, count: 2}
"""
"""One T1 of each plane is lost to h0: what was on its way is sent again, half of it over the port of T1_PORT."""


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_tshark_reads_a_flap_on_a_t1_port_as_wire_does(
    tmp_path: Path, machine: list[Capability], options: FabricOptions
) -> None:
    capture = tmp_path / "t1.pcap"
    run_in_sandbox(tmp_path, machine, options, lambda job, recorder: CapturedRun(job, recorder, capture), FLAP)
    seen, expected = dissected(capture), parsed(capture)
    assert len(seen) == len(expected) > 200
    for number, (one, other) in enumerate(zip(seen, expected, strict=True)):
        assert one == other, f"MRC packet {number}"
    assert {packet["opcode"] for packet in seen} >= {bth.WRITE_MIDDLE, bth.WRITE_LAST_IMM, wire.SACK}
    assert {(packet["ev"], packet["mrc.from"], packet["mrc.to"]) for packet in seen} == {("1/1", "h0", "h1")}
    assert {packet["mrc.path"] for packet in seen} == {"p1-t0-1 down0"}
    assert tshark(capture, "-Y", "_ws.malformed || _ws.lua.error || mrc.short") == ""
    again = [packet for packet in seen if packet["rtx"] and packet["opcode"] <= wire.LAST_DATA_OPCODE]
    counters = json.loads((tmp_path / "counters.json").read_text(encoding="utf-8"))["hosts"]["h0"]["counters"]
    assert 0 < len(again) <= counters["retransmitted"]
