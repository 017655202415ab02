"""The same link captured on the kernel and in virtual time: the same headers, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.pcap.index import read_index
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.record import Record
from tests.emu.runs import Run

NIC, CORE = "h0:p0-t0-0", "p0-t0-0:p0-t1-1"
SCENARIO = f"""
name: worlds
fabric: {{planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}}
workload:
  - train: {{steps: STEPS, compute: 20ms, allreduce: 1MiB}}
mapper: {{}}
capture:
  - {{links: ["{NIC}", "{CORE}"], around: run}}
"""
ETHERNET, IPV6, UDP = 14, 40, 8


def headers(record: Record) -> bytes:
    """Up to UDP, without what depends on the single packet: traffic class and lengths."""
    found = bytearray(record.frame[: _payload_at(record)])
    for at in range(ETHERNET, len(found) - UDP, IPV6):
        found[at : at + 2] = bytes([found[at] & 0xF0, found[at + 1] & 0xF])
        found[at + 4 : at + 6] = b"\0\0"
    found[-4:-2] = b"\0\0"
    return bytes(found)


def _payload_at(record: Record) -> int:
    tunnelled = record.frame[ETHERNET + 6] == 41
    return ETHERNET + IPV6 * (1 + tunnelled) + UDP


def classes(record: Record) -> Iterator[tuple[int, int, int]]:
    """Opcode, traffic class of each IPv6 header without ECN, and how much of the frame its length leaves out."""
    frame, end = record.frame, _payload_at(record)
    for at in range(ETHERNET, end - UDP, IPV6):
        length = int.from_bytes(frame[at + 4 : at + 6], "big")
        word = int.from_bytes(frame[at : at + 2], "big")
        yield frame[end], word >> 4 & 0xFF & ~bth.ECN_MASK, record.wire_bytes - length


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("transport", "opcodes"),
    [("mrc", {bth.WRITE_MIDDLE, wire.SACK}), ("roce", {rc.WRITE_MIDDLE, rc.ACKNOWLEDGE})],
)
@pytest.mark.nightly
def test_frames_of_both_worlds_have_the_same_headers(transport: str, opcodes: set[int], tmp_path: Path) -> None:
    chosen = f"transport: {transport}\n"
    runs = [
        Run(tmp_path / world, steps=4, scenario=SCENARIO + chosen, options=options)
        for world, options in (("kernel", ()), ("virtual", ("--virtual",)))
    ]
    for each in runs:
        each.finish()
    kernel, virtual = (
        {made.link: list(CaptureReader(each.folder / "pcap" / made.file)) for made in read_index(each.folder)}
        for each in runs
    )
    for link in (NIC, CORE):
        assert {headers(one) for one in kernel[link]} == {headers(one) for one in virtual[link]}
        found = [{told for one in each[link] for told in classes(one)} for each in (kernel, virtual)]
        common = {told for told in found[0] ^ found[1] if told[0] in opcodes}
        assert not common
        assert opcodes <= {opcode for opcode, _, _ in found[0]}
