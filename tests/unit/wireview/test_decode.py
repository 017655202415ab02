"""`mrc-testbed decode` on captures made by hand: what it shows, selects, counts, and how it takes bad input."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.decode import decode, dissector_help, dissector_path
from mrc_testbed.testbed.wireview.runs import runs, runs_text
from mrc_testbed.testbed.wireview.select import PacketFilter, selection
from mrc_testbed.topos import usid
from mrc_testbed.topos.export import plan_as_dict
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests.captures import CONTROL_CLASS, THREE_TIERS, TRIMMED_CLASS, frame, pcap, pcapng
from tests.vectors import VECTORS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
TO_GO = "> p1-t0-0 p1-t1-2 p1-t0-3 down1"
LINES = {
    "write first": f"data        WRITE_FIRST       qp 0x123 psn 16777214 msg 772 8 B  {TO_GO}",
    "write middle, retransmitted": f"data        WRITE_MIDDLE      qp 0x123 psn 16777215 msg 7 4 B RTX  {TO_GO}",
    "write last with immediate": f"data        WRITE_LAST_IMM    qp 0x10 psn 5 msg 9 3 B imm 0x1020304  {TO_GO}",
    "write only, without time stamp": f"data        WRITE_ONLY        qp 0x10 psn 7 msg 11 4 B  {TO_GO}",
    "write last with immediate, without time stamp": "data        WRITE_LAST_IMM    qp 0x10 psn 8 msg 12 3 B"
    f" imm 0x1020304 ACKREQ  {TO_GO}",
    "transport ack": f"control     TRANSPORT_ACK     qp 0x123 psn 65 ACK msg 9  {TO_GO}",
    "transport nak": f"control     TRANSPORT_ACK     qp 0x123 psn 65 NAK_REMOTE_ACCESS msg 65535  {TO_GO}",
    "port status update": f"control     ENDPOINT_REQUEST  PORT_STATUS id 7 ports up 1 3-4  {TO_GO}",
    "endpoint response": f"control     ENDPOINT_RESPONSE EV_PROBE id 48879 ports up 1-4 for 3/2 SKIP_ONCE  {TO_GO}",
    "sack": "control     SACK              qp 0x123 cack 65 +2..3 +64 for psn 63 on 3/2 SKIP_ONCE ports down 1 3 RTX"
    f"  {TO_GO}",
    "sack, answer to a probe": "control     SACK              qp 0x123 cack 16777215 -64 probe 7 ALWAYS_SKIP"
    f" penalty 127  {TO_GO}",
    "nack": f"control     NACK              qp 0x123 psn 65 TRIMMED_LASTHOP on 3/2 RTX  {TO_GO}",
    "reliability probe": f"control     PROBE             qp 0x123 probe 7  {TO_GO}",
}


def data_packet(psn: int, payload: int = 4096, rtx: bool = False, seal: bool = False) -> bytes:
    buffer = memoryview(bytearray(payload + 64))
    bits = psn | wire.TIMESTAMP | (wire.RETRANSMISSION if rtx else 0)
    size = wire.emit_data(
        buffer, bth.WRITE_MIDDLE, 0x10, bits, 0, 1, 2, 3, 4, 1 << 20, memoryview(bytes(payload)), None
    )
    if seal:
        bth.seal(buffer, size)
    return bytes(buffer[:size])


def every_type() -> list[bytes]:
    return [frame(v.packet, CONTROL_CLASS if v.packet[0] > wire.LAST_DATA_OPCODE else 18) for v in VECTORS.values()]


def shown(capsys, path: Path, wanted: PacketFilter | None = None, limit=None, machine=False, fields=False) -> list[str]:
    decode(path, wanted or PacketFilter(), limit, machine, fields)
    return capsys.readouterr().out.splitlines()


def json_of(capsys, path: Path, **options) -> tuple[list[dict], dict]:
    *packets, last = [json.loads(text) for text in shown(capsys, path, machine=True, **options)]
    return packets, last["summary"]


def json_or_refusal(capsys, path: Path) -> tuple[list[dict], dict]:
    """Nothing, where the file is so damaged that it is no capture; any other error passes through."""
    try:
        return json_of(capsys, path)
    except UsageError:
        return [], {}


@pytest.mark.parametrize("name", LINES)
def test_each_type_has_its_line(name, tmp_path, capsys):
    path = pcap(tmp_path / "all.pcap", every_type())
    at = list(VECTORS).index(name)
    lines = shown(capsys, path)
    assert lines[1 + at] == f"   0.{at:03}000    h0 -> h5    1/2   {LINES[name]}"


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_pcap_and_pcapng_say_the_same(write, tmp_path, capsys):
    packets, summary = json_of(capsys, write(tmp_path / "all", every_type()))
    assert [packet["time_ns"] for packet in packets] == [100_000_000_000 + i * 1_000_000 for i in range(len(VECTORS))]
    assert summary["packets"] == len(VECTORS)
    assert summary["damage"] == ""
    assert packets[0]["still_to_go"] == ["p1-t0-0", "p1-t1-2", "p1-t0-3", "down1"]


def test_gzip_is_read_too(tmp_path, capsys):
    path = pcap(tmp_path / "all.pcap", every_type())
    packed = tmp_path / "all.pcap.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert shown(capsys, packed) == shown(capsys, path)


def test_json_carries_every_value_of_a_sack(tmp_path, capsys):
    packets, _ = json_of(capsys, pcap(tmp_path / "sack.pcap", [frame(VECTORS["sack"].packet, CONTROL_CLASS)]))
    assert packets == [
        {
            "time_ns": 100_000_000_000, "from": "h0", "to": "h5", "class": "control", "type": "SACK", "ev": "1/2",
            "still_to_go": ["p1-t0-0", "p1-t1-2", "p1-t0-3", "down1"], "not_captured_bytes": 0, "qp": 0x123,
            "cack": 65, "trigger": 63, "of_ev": "3/2", "mark": "SKIP_ONCE", "rtx": True, "sack_offset": 1,
            "bitmap": "0x8000000000000006", "received": [[67, 68], [129, 129]], "ports_down": [[1, 1], [3, 3]],
            "mpr": 8, "timestamp": 0x1234, "out_of_order": 3, "penalty": 0, "restore_cwnd": False,
            "received_bytes": 0xABCD << 8,
        }
    ]  # fmt: skip


def test_a_trimmed_packet_keeps_its_headers_and_says_what_it_was(tmp_path, capsys):
    path = pcap(tmp_path / "trim.pcap", [frame(data_packet(9), TRIMMED_CLASS, keep=36), frame(data_packet(10))])
    packets, summary = json_of(capsys, path)
    assert [(p["psn"], p["class"], p["trimmed"], p["payload_bytes"]) for p in packets] == [
        (9, "trimmed", True, 4096),
        (10, "data", False, 4096),
    ]
    assert (summary["trimmed"], summary["not_mrc"]) == (1, {})


def test_a_trimmed_packet_with_corrected_lengths_is_known_by_its_dscp(tmp_path, capsys):
    path = pcap(tmp_path / "trim.pcap", [frame(data_packet(9), TRIMMED_CLASS, keep=36, corrected=True)])
    packets, summary = json_of(capsys, path)
    assert [(p["psn"], p["class"], p["trimmed"], p["payload_bytes"]) for p in packets] == [(9, "trimmed", True, 0)]
    assert (summary["trimmed"], summary["not_mrc"]) == (1, {})


def test_a_snapshot_length_is_not_a_trim(tmp_path, capsys):
    path = pcap(tmp_path / "snap.pcap", [frame(data_packet(9)), frame(VECTORS["sack"].packet, CONTROL_CLASS)], snap=160)
    packets, summary = json_of(capsys, path)
    assert [(p["type"], p.get("trimmed"), p["not_captured_bytes"]) for p in packets] == [
        ("WRITE_MIDDLE", False, 14 + 40 + 40 + 8 + 36 + 4096 + 4 - 160),
        ("SACK", None, 0),
    ]
    assert summary["trimmed"] == 0


@pytest.mark.parametrize("snap", [*range(1, 160, 7), 137, 138])
def test_any_snapshot_length_is_read(snap, tmp_path, capsys):
    packets, summary = json_of(capsys, pcap(tmp_path / "snap.pcap", [frame(data_packet(9)), *every_type()], snap=snap))
    short = summary["not_mrc"].get("cut within its headers", 0)
    assert len(packets) + short == 1 + len(VECTORS)
    assert not short or snap < 14 + 40 + 40 + 8 + 52


def test_without_encapsulation_there_is_nothing_to_go(tmp_path, capsys):
    lines = shown(capsys, pcap(tmp_path / "plain.pcap", [frame(VECTORS["nack"].packet, outer=None)]))
    assert lines[1].endswith("NACK              qp 0x123 psn 65 TRIMMED_LASTHOP on 3/2 RTX")


def test_every_tier_that_is_still_to_go_is_named(tmp_path, capsys):
    """A whole container of three tiers, and what is left of one behind the T1 that leads down."""
    left = usid.container(usid.split_container(THREE_TIERS)[4:])
    packets = [frame(VECTORS["nack"].packet, outer=outer, path=usid.PathId(1, 7)) for outer in (THREE_TIERS, left)]
    shown = json_of(capsys, pcap(tmp_path / "three.pcap", packets))[0]
    assert [packet["ev"] for packet in shown] == ["1/7", "1/7"]
    assert shown[0]["still_to_go"] == ["p1-t0-0", "p1-t1-1", "p1-t2-3", "p1-t1-5", "p1-t0-7", "down1"]
    assert shown[1]["still_to_go"] == ["p1-t0-7", "down1"]


def test_in_the_folder_of_a_run_of_three_tiers_the_switches_of_an_ev_are_named(tmp_path, capsys):
    """h0 -> h5 on EV 1/3, past its first T0: the uSIDs that are left do not say where it was before."""
    shape = Shape(2, Clos3(2, 2, 2, 4, 2), 25_000_000, 20_000_000)
    plan = build_plan(shape)
    (tmp_path / "plan.json").write_text(json.dumps(plan_as_dict(plan)))
    (tmp_path / "pcap").mkdir()
    path = next(one for one in plan.paths(plan.hosts[0], plan.hosts[5]) if one.id == usid.PathId(1, 3))
    left = usid.container(usid.split_container(path.outer)[3:])
    file = pcap(tmp_path / "pcap" / "t2.pcap", [frame(data_packet(9), outer=left, path=path.id)] * 2)
    way = ["p1-t0-0", "p1-t1-1", "p1-t2-3", "p1-t1-3", "p1-t0-2"]
    assert [packet["way"] for packet in json_of(capsys, file)[0]] == [way, way]
    assert shown(capsys, file)[-1].split() == ["1/3", "2", *way]
    hashed = pcap(tmp_path / "pcap" / "hashed.pcap", [frame(data_packet(9), outer=None, path=path.id)])
    assert json_of(capsys, hashed)[0][0]["way"] == [], "an EV that switches hash names no way"
    for family in ("", '"family": {"clos9": {}}', '"family": {"clos3": {"pods": 0}}'):
        (tmp_path / "plan.json").write_text(f'{{"shape": {{{family}}}}}')
        assert "way" not in json_of(capsys, file)[0][0]
    (tmp_path / "plan.json").write_text(json.dumps(plan_as_dict(build_plan(clos2_shape(2, 2, 4, 4, 25_000_000, 0)))))
    assert "way" not in json_of(capsys, file)[0][0], "over two tiers the EV says it"


def test_ce_marks_show(tmp_path, capsys):
    packets, _ = json_of(capsys, pcap(tmp_path / "ce.pcap", [frame(data_packet(9), 4 << 2 | 3)]))
    assert packets[0]["class"] == "data+CE"


def test_foreign_packets_are_counted_by_reason(tmp_path, capsys):
    good = data_packet(1, seal=True)
    broken = bytearray(data_packet(2, seal=True))
    broken[60] ^= 1
    whole = frame(good)
    path = pcap(
        tmp_path / "odd.pcap",
        [
            whole,
            frame(bytes(broken)),
            frame(b"\x04" + good[1:]),
            frame(good[:1] + b"\x01" + good[2:]),
            frame(b"\xdc" + good[1:]),
            frame(good[:19] + b"\2" + good[20:]),
            frame(b"\xca"),
            frame(good, destination=53),
            frame(b"x" + good[1:], destination=53),
            frame(good[:2] + b"\0\0" + good[4:], destination=53),
            frame(b"\xdc" + good[1:], destination=53),
            whole[:12] + b"\x08\x06" + bytes(28),
            whole[:54],
            whole[:20] + b"\x3a" + whole[21:],
            b"",
        ],
    )
    packets, summary = json_of(capsys, path)
    assert [(packet["psn"], packet.get("marks")) for packet in packets] == [
        (1, None),
        (2, ["wrong ICRC"]),
        (1, ["UDP port 53"]),
    ]
    assert summary["marks"] == {"wrong ICRC": 1, "UDP port 53": 1}
    assert summary["not_mrc"] == {
        "to port 4791, an opcode of another transport": 1,
        "to port 4791, transport version not 0": 1,
        "MRC, not as long as its opcode says": 1,
        "MRC data, no TSETH where TS says so": 1,
        "to port 4791, shorter than a BTH": 1,
        "UDP, not to port 4791, and no MRC by its look": 3,
        "not IPv6": 1,
        "cut within its headers": 2,
        "IPv6, not UDP": 1,
    }


def test_another_link_type_is_one_reason(tmp_path, capsys):
    _, summary = json_of(capsys, pcap(tmp_path / "usb.pcap", every_type(), link_type=189))
    assert summary["not_mrc"] == {"a link type other than Ethernet, raw IP and that of `tcpdump -i any`": len(VECTORS)}


@pytest.mark.parametrize(
    ("link_type", "head"),
    [
        (113, b"\0\x04\0\x01\0\x06\x02\0\0\0\0\xff\0\0\x86\xdd"),
        (276, b"\x86\xdd\0\0\0\0\0\x03\0\x01\x04\x06\x02\0\0\0\0\xff\0\0"),
        (101, b""),
        (229, b""),
    ],
    ids=["SLL", "SLL2", "raw", "IPv6"],
)
def test_what_tcpdump_writes_of_any_interface_is_read(link_type, head, tmp_path, capsys):
    ethernet, _ = json_of(capsys, pcap(tmp_path / "one.pcap", every_type()))
    other = pcap(tmp_path / "any.pcap", [head + one[14:] for one in every_type()], link_type=link_type)
    found, summary = json_of(capsys, other)
    assert found == ethernet
    assert not summary["not_mrc"]
    note = "captured on any interface: a packet counts at each interface that it passed"
    assert (note in shown(capsys, other, limit=0)) == (link_type in (113, 276))
    for cut in (0, 3, len(head) + 20):
        short = pcap(tmp_path / "short.pcap", [(head + every_type()[0][14:])[:cut]], link_type=link_type)
        assert json_of(capsys, short)[1]["packets"] == 0


def test_marks_are_shown_and_counted(tmp_path, capsys):
    broken = bytearray(data_packet(2, seal=True))
    broken[60] ^= 1
    path = pcap(tmp_path / "odd.pcap", [frame(bytes(broken)), frame(data_packet(3, seal=True), destination=4792)])
    lines = shown(capsys, path)
    assert "(wrong ICRC)" in lines[1]
    assert "(UDP port 4792)" in lines[2]
    assert lines[-1] == "marked           1 wrong ICRC, 1 UDP port 4792"


def test_the_summary_counts_by_type_and_path(tmp_path, capsys):
    other = usid.PathId(plane=0, uplink=1)
    frames = [frame(data_packet(1)), frame(data_packet(2), path=other), frame(data_packet(1, rtx=True), path=other)]
    frames += [frame(VECTORS[name].packet, CONTROL_CLASS) for name in ("sack", "nack", "nack")]
    path = pcap(tmp_path / "mix.pcap", frames)
    assert shown(capsys, path, limit=0) == [
        "6 packets in 0.005 s",
        "         3  WRITE_MIDDLE",
        "         2  NACK",
        "         1  SACK",
        "",
        "plane/uplink      data     rtx  control",
        "0/1                  2       1        0",
        "1/2                  1       0        3",
        "",
        "retransmissions  1 of 3 data packets",
        "trimmed          0",
        "NACKs            2 TRIMMED_LASTHOP",
    ]
    _, summary = json_of(capsys, path)
    assert summary["paths"]["0/1"] == {"data": 2, "retransmitted": 1, "control": 0}


def test_limit_prints_fewer_and_counts_all(tmp_path, capsys):
    lines = shown(capsys, pcap(tmp_path / "all.pcap", every_type()), limit=2)
    assert lines[3] == f"... and {len(VECTORS) - 2} more"
    assert lines[5].startswith(f"{len(VECTORS)} packets")


def test_a_psn_selects_its_packet_its_nack_and_its_sack(tmp_path, capsys):
    path = pcap(tmp_path / "all.pcap", [frame(data_packet(65)), frame(data_packet(66)), *every_type()])
    assert [p["type"] for p in json_of(capsys, path, wanted=selection("65", None))[0]] == [
        "WRITE_MIDDLE", "TRANSPORT_ACK", "TRANSPORT_ACK", "NACK",
    ]  # fmt: skip
    assert [p["type"] for p in json_of(capsys, path, wanted=selection("60-64", None))[0]] == ["SACK"]


def test_an_ev_selects_what_is_on_it_and_about_it(tmp_path, capsys):
    path = pcap(tmp_path / "all.pcap", every_type())
    assert [p["type"] for p in json_of(capsys, path, wanted=selection(None, "3/2"))[0]] == [
        "ENDPOINT_RESPONSE", "SACK", "NACK",
    ]  # fmt: skip
    assert len(json_of(capsys, path, wanted=selection(None, "1/2"))[0]) == len(VECTORS)


@pytest.mark.parametrize(
    ("psn", "ev"), [("x", None), ("1-", None), ("-1", None), ("9" * 5000, None), (None, "1"), (None, "1/x")]
)
def test_bad_selections_are_one_clear_line(psn, ev):
    with pytest.raises(UsageError, match="must be"):
        selection(psn, ev)


def test_a_range_that_holds_no_psn_is_refused():
    with pytest.raises(UsageError, match="write the smaller one first, 41-60"):
        selection("60-41", None)


def test_fields_shows_every_header_by_scapy(tmp_path, capsys):
    text = "\n".join(shown(capsys, pcap(tmp_path / "sack.pcap", [frame(VECTORS["sack"].packet)]), fields=True))
    for part in ("MRC BTH", "MRC SETH", "MRC CC_STATE", "MRC ICRC", "m         = SKIP_ONCE", "ev_plane  = 3"):
        assert part in text


def test_fields_shows_what_wire_refuses(tmp_path, capsys):
    packet = VECTORS["write only"].packet
    frames = [frame(b"\x04" + packet[1:]), frame(packet[:20]), frame(b"\xca"), frame(b"")]
    text = "\n".join(shown(capsys, pcap(tmp_path / "odd.pcap", frames), fields=True))
    assert "not read: to port 4791, an opcode of another transport\n###[ MRC BTH ]###\n  opcode    = 0x4" in text
    assert text.count("not read: to port 4791, shorter than a BTH") == 2


def test_a_pipe_is_read(tmp_path):
    path = pcap(tmp_path / "all.pcap", every_type())
    with path.open("rb") as file:
        reading = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
        done = subprocess.run(
            [sys.executable, "-m", "mrc_testbed", "decode", "/dev/stdin", "--limit", "0"],
            cwd=ROOT, stdin=reading.stdout, capture_output=True, text=True,
        )  # fmt: skip
        reading.wait()
    assert done.stdout.startswith(f"{len(VECTORS)} packets")
    assert "damaged" not in done.stdout


def test_an_srh_is_stepped_over(tmp_path, capsys):
    whole = frame(VECTORS["nack"].packet, CONTROL_CLASS)
    srh = bytes([41, 2, 4, 0]) + bytes(20)
    length = int.from_bytes(whole[18:20], "big") + len(srh)
    routed = whole[:18] + length.to_bytes(2, "big") + bytes([43]) + whole[21:54] + srh + whole[54:]
    packets, _ = json_of(capsys, pcap(tmp_path / "srh.pcap", [routed]))
    assert [(p["type"], p["to"]) for p in packets] == [("NACK", "h5")]


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_a_file_cut_anywhere_is_read_up_to_there(write, tmp_path, capsys):
    whole = write(tmp_path / "whole", every_type()[:3]).read_bytes()
    path = tmp_path / "cut"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        packets, summary = json_or_refusal(capsys, path)
        assert len(packets) + sum(summary.get("not_mrc", {}).values()) <= 3
        assert summary or size < 80


def test_a_cut_file_is_called_damaged(tmp_path, capsys):
    for write in (pcap, pcapng):
        path = write(tmp_path / "whole", every_type())
        path.write_bytes(path.read_bytes()[:-5])
        assert shown(capsys, path)[-1].startswith("the file is damaged: ")


def test_no_bytes_make_it_fail(tmp_path, capsys):
    chance = random.Random(5)
    for write in (pcap, pcapng):
        whole = write(tmp_path / "whole", every_type()).read_bytes()
        path = tmp_path / "changed"
        for _ in range(150):
            changed = bytearray(whole)
            for _ in range(chance.choice([1, 5, 40])):
                changed[chance.randrange(24, len(changed))] = chance.randrange(256)
            path.write_bytes(changed)
            json_or_refusal(capsys, path)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "No such file"), (b"", "not a capture"), (b"name: x\n", "not a capture")]
)
def test_a_bad_file_is_one_line_and_exit_2(content, message, tmp_path):
    path = tmp_path / "no.pcap"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        CaptureReader(path)
    done = command("decode", str(path))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith(f"mrc-testbed: {path}: ")


def test_a_folder_is_no_capture(tmp_path):
    with pytest.raises(UsageError, match="directory"):
        CaptureReader(tmp_path)


def test_the_command_shows_a_capture_and_the_dissector(tmp_path):
    done = command("decode", str(pcap(tmp_path / "all.pcap", every_type())), "--limit", "1", "--ev", "1/2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "WRITE_FIRST" in done.stdout
    assert command("decode", "--dissector").stdout == dissector_help() + "\n"
    assert command("decode").returncode == 2


def test_the_dissector_is_in_the_package():
    assert dissector_path().read_text(encoding="utf-8").startswith("-- Wireshark dissector for MRC")
    assert f"-X lua_script:{dissector_path()}" in dissector_help()


@pytest.mark.parametrize(
    ("mask", "pairs", "text"),
    [
        (0, [], "none"),
        (1, [(0, 0)], "0"),
        (0b1011_0110, [(1, 2), (4, 5), (7, 7)], "1-2 4-5 7"),
        ((1 << 64) - 1, [(0, 63)], "0-63"),
    ],
)
def test_runs(mask, pairs, text):
    assert runs(mask) == pairs
    assert runs_text(pairs) == text


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mrc_testbed", *arguments], cwd=ROOT, capture_output=True, text=True)
