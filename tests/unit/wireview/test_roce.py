"""Packets of the RoCE-like transport, as its endpoints make them, read by tshark's own dissector and by us."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.hosts.common.bth import CLASS_CONTROL
from mrc_testbed.hosts.rc import wire
from mrc_testbed.testbed.wireview import roce
from mrc_testbed.testbed.wireview.decode import decode
from mrc_testbed.testbed.wireview.names import RC_OPCODES
from mrc_testbed.testbed.wireview.select import PacketFilter
from mrc_testbed.topos import plain
from tests.captures import ETHERNET, ipv6, pcap, udp
from tests.sim.rcnet import RcNet
from tests.sim.simnet import T, pattern
from tests.tshark import tshark

pytestmark = pytest.mark.slow

FIELDS = {
    "infiniband.bth.opcode": "opcode",
    "infiniband.bth.destqp": "qp",
    "infiniband.bth.psn": "psn",
    "infiniband.bth.a": "ack_request",
    "infiniband.reth.va": "address",
    "infiniband.reth.r_key": "rkey",
    "infiniband.reth.dmalen": "write_bytes",
    "infiniband.aeth.syndrome": "syndrome",
    "infiniband.aeth.msn": "message",
    "infiniband.immdt": "immediate",
}
"""Field of tshark's dissector -> key of ours."""
OPCODES = {name: opcode for opcode, name in RC_OPCODES.items()}
SYNDROMES = {"ACK": 0x1F, "NAK_SEQUENCE": 0x60}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes of every kind, two losses, and marks."""
    net = RcNet(congestion_control="dcqcn", payload_bytes=256)
    frames = []

    def keep(src, token, traffic_class, packet):
        dst = token[0]
        segment = udp(packet, 0xC000 | 0x100)
        addresses = plain.host_address(0, src, 0), plain.host_address(0, dst, 0)
        frames.append(ETHERNET + ipv6(*addresses, 17, len(segment), traffic_class, 0) + segment)

    net.taps.append(keep)
    net.worsen(ce=True, src=0, loss=0.1)
    flow = net.join()
    for number, size in enumerate((700, 255, 3, 2000)):
        flow.write(pattern(size), offset=number * 4096, wr_id=number, immediate=number + 7 if number % 2 else None)
        flow.write(pattern(size), offset=number * 4096, wr_id=number, immediate=None if number % 2 else number)
    net.run(lambda: len(net.completed()) == 8, within=500 * T)
    for frame in said_by_failover():
        keep(0, (1,), CLASS_CONTROL, frame)
    path = tmp_path_factory.mktemp("roce") / "roce.pcap"
    return pcap(path, frames)


def said_by_failover() -> Iterator[bytes]:
    """A READ, its answer, and a message of recovery."""
    buffer = memoryview(bytearray(100))
    yield bytes(buffer[: wire.emit_read(buffer, 0x12, 3, 1, 0xAABBCCDD)])
    yield bytes(buffer[: wire.emit_flags(buffer, 0x12, 3, 77, bytes(range(64)))])
    yield bytes(buffer[: wire.emit_message(buffer, 0x12, 3, 24)])


def number(text: str) -> int:
    """What tshark prints of a field: decimal, 0x, or eight digits of bytes (ImmDt, which it has twice)."""
    first = text.split(",")[0]
    return int(first, 16) if "," in text else int(first, 0)


def decoded(capture: Path, out: pytest.CaptureFixture[str]) -> tuple[list[dict], dict]:
    decode(capture, PacketFilter(), None, machine=True, fields=False)
    *rows, last = map(json.loads, out.readouterr().out.splitlines())
    return rows, last["summary"]


def test_tsharks_own_dissector_reads_what_we_mean(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [word for field in FIELDS for word in ("-e", field)]
    rows = [line.split("|") for line in tshark(capture, "-T", "fields", "-E", "separator=|", *asked).splitlines()]
    theirs = [{key: number(text) for key, text in zip(FIELDS.values(), row, strict=True) if text} for row in rows]
    ours, _ = decoded(capture, capsys)
    assert len(theirs) == len(ours)
    for one, other in zip(theirs, ours, strict=True):
        meant = {key: value for key, value in other.items() if key in FIELDS.values()} | {
            "opcode": OPCODES[other["type"]]
        }
        if "syndrome" in meant:
            meant["syndrome"] = SYNDROMES[meant["syndrome"]]
        assert {key: one[key] for key in meant} == meant
    ours_alone = {wire.PLANE_PROBE, wire.PLANE_ANSWER}
    assert {row["opcode"] for row in theirs} == set(OPCODES.values()) - ours_alone
    assert {row["syndrome"] for row in theirs if "syndrome" in row} == set(SYNDROMES.values())


def test_malformed_is_what_tshark_says_of_none(capture: Path) -> None:
    assert (
        tshark(capture, "-Y", "_ws.malformed || infiniband.bth.tver != 0", "-T", "fields", "-e", "frame.number") == ""
    )


@pytest.mark.parametrize("opcode", [wire.PLANE_PROBE, wire.PLANE_ANSWER])
def test_what_asks_for_a_plane_names_its_qp(opcode: int) -> None:
    buffer = memoryview(bytearray(64))
    view = buffer[: wire.emit_plane_packet(buffer, opcode, 0x12)]
    assert roce.refusal_of(view, 0, with_icrc=False) is None
    assert roce.values_of(view, 0) == {"qp": 0x12}


def test_decode_counts_and_shows_them(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, summary = decoded(capture, capsys)
    assert summary["not_mrc"] == {}
    assert summary["packets"] == len(rows)
    (way,) = summary["paths"]
    assert way == f":{0xC100}"
    assert {row["class"] for row in rows} == {"roce", "control"}
    decode(capture, PacketFilter(), None, machine=False, fields=False)
    text = capsys.readouterr().out
    assert "RC_WRITE_FIRST    qp 0x10 psn" in text
    assert "NAK_SEQUENCE msn" in text
    naks = sum(row.get("syndrome") == "NAK_SEQUENCE" for row in rows)
    assert summary["nacks"] == {"NAK_SEQUENCE": naks}
    assert (summary["retransmitted"], summary["paths"][way]["retransmitted"]) == (None, None)
    assert "retransmissions  not told by RoCE" in text
    assert f"NACKs            {naks} NAK_SEQUENCE" in text
    assert "CNP               qp 0x10 slow down" in text


@pytest.mark.parametrize(
    ("reth", "immediate"), [((0x7F0012345678, 5, 4104), None), (None, 0x42)], ids=["selective", "go-back-n"]
)
def test_the_address_of_selective_recovery_is_no_immediate(
    reth: tuple[int, int, int] | None, immediate: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    buffer = memoryview(bytearray(5000))
    payload = memoryview(b"\xff" * 40 if reth is None else bytes(8))
    size = wire.emit_data(buffer, wire.WRITE_LAST_IMM, 5, 77, reth, payload, 0x42)
    segment = udp(bytes(buffer[:size]))
    path = tmp_path / "last.pcap"
    pcap(path, [ETHERNET + ipv6("fd00:1::1", "fd00:1::2", 17, len(segment), 0, 0) + segment])
    (row,), _ = decoded(path, capsys)
    assert row.get("immediate") == immediate


def test_data_that_the_capture_cut_is_shown_with_its_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    buffer = memoryview(bytearray(5000))
    size = wire.emit_data(buffer, wire.WRITE_MIDDLE, 5, 77, None, memoryview(bytes(4096)), None)
    segment = udp(bytes(buffer[:size]))
    whole = ETHERNET + ipv6("fd00:1::1", "fd00:1::2", 17, len(segment), 0, 0) + segment
    path = tmp_path / "cut.pcap"
    pcap(path, [whole], snap=160)
    (row,), _ = decoded(path, capsys)
    assert (row["type"], row["psn"], row["payload_bytes"]) == ("RC_WRITE_MIDDLE", 77, 4096)
    broken = bytes(buffer[:10]), bytes([wire.CNP, 0, 0, 0]) * 6, bytes([wire.ACKNOWLEDGE, 1]) + bytes(18)
    pcap(path, [ETHERNET + ipv6("::1", "::2", 17, 8 + len(each), 0, 0) + udp(each) for each in broken])
    rows, summary = decoded(path, capsys)
    assert rows == []
    assert sum(summary["not_mrc"].values()) == 3
