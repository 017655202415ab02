"""The Wireshark dissector in real tshark on captures made by hand: every type, trimmed, cut, on other ports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scapy.packet import Packet

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.wireview.decode import dissector_path
from mrc_testbed.testbed.wireview.layers import BTH
from mrc_testbed.testbed.wireview.names import MARKS, NACK_REASONS, OPCODES, OPERATIONS, SYNDROMES
from mrc_testbed.topos import usid
from tests.captures import THREE_TIERS, TRIMMED_CLASS, every_vector, frame, pcap
from tests.tshark import dissected, parsed, readable_by_all, run_as_nobody, tshark
from tests.vectors import VECTORS

pytestmark = pytest.mark.slow

HEADERS = 14 + 40 + 40 + 8


BY_SCAPY = {
    "mrc.pad": "pad",
    "mrc.version": "version",
    "mrc.pkey": "pkey",
    "mrc.ts": "ts",
    "mrc.psn": "psn",
    "mrc.tsr": "tsr",
    "mrc.ftype": "ftype",
    "mrc.payload": "data",
    "mrc.padding": "padding",
    "mrc.icrc": "icrc",
    "mrc.spdcid": "spdcid",
    "mrc.dpdcid": "dpdcid",
    "mrc.vendor": "vendor",
    "mrc.cc_type": "cc_type",
    "mrc.sack.mark": "m",
    "mrc.sack.probe_answer": "pr",
    "mrc.sack.trigger_offset": "offset_or_probe",
    "mrc.sack.ports_down": "ports_down",
    "mrc.sack.received_units": "received",
    "mrc.endpoint.op": "op",
    "mrc.endpoint.ports_up": "port_mask",
    "mrc.endpoint.mark": "m",
    "mrc.ack.syndrome": "syndrome",
}
"""Fields that hosts/mrc/wire.py does not name, or not in these words -> fields of the scapy layers."""


def long_packet() -> bytes:
    buffer = memoryview(bytearray(5000))
    fields = (bth.WRITE_ONLY_IMM, 0x10, wire.TIMESTAMP | 9, 1, 1, 2, 3, 4, 4096)
    return bytes(buffer[: wire.emit_data(buffer, *fields, memoryview(bytes(4096)), 0x77)])


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return pcap(tmp_path / "all.pcap", every_vector())


def test_tshark_reads_every_type_as_wire_does(capture):
    seen, expected = dissected(capture), parsed(capture)
    assert len(seen) == len(expected) == len(VECTORS)
    for name, one, other in zip(VECTORS, seen, expected, strict=True):
        assert one == other, name


def test_tshark_reads_all_other_fields_as_scapy_does(capture):
    asked = [word for field in BY_SCAPY for word in ("-e", field)]
    rows = tshark(capture, "-T", "fields", "-E", "separator=|", *asked).splitlines()
    seen = set()
    for vector, row in zip(VECTORS.values(), rows, strict=True):
        packet: Packet = BTH(vector.packet)
        known = {}
        while packet:
            known |= packet.fields
            packet = packet.payload
        for field, text in zip(BY_SCAPY, row.split("|"), strict=True):
            if text:
                value = known[BY_SCAPY[field]]
                assert text == value.hex() if isinstance(value, bytes) else number(text) == value, (field, text, value)
                seen.add(field)
    assert seen == set(BY_SCAPY)


def number(text: str) -> int:
    """Flags are 0 and 1 in tshark 4.0, words since 4.2."""
    return {"True": 1, "False": 0}[text] if text in ("True", "False") else int(text, 0)


def test_linked_into_the_plugins_it_names_codes_as_we_do(tmp_path):
    with readable_by_all() as home:
        plugins = home / ".local/lib/wireshark/plugins"
        plugins.mkdir(parents=True)
        shutil.copy(dissector_path(), home)
        (plugins / "mrc.lua").symlink_to(home / dissector_path().name)
        with (tmp_path / "values").open("w+") as output:  # as a text it takes 300 MB
            run_as_nobody(home, "-G", "values", stdout=output)
            output.seek(0)
            listed = [line.rstrip("\n").split("\t") for line in output if line.startswith("V\tmrc.")]
    named = {(field, int(code, 0)): name for _, field, code, name in listed}
    ours = {
        "mrc.opcode": OPCODES,
        "mrc.nack.reason": NACK_REASONS,
        "mrc.sack.mark": MARKS,
        "mrc.endpoint.mark": MARKS,
        "mrc.endpoint.op": OPERATIONS,
        "mrc.ack.syndrome": SYNDROMES,
    }
    assert named == {(field, code): name for field, names in ours.items() for code, name in names.items()}


def test_linked_and_named_it_is_loaded_once(capture):
    with readable_by_all() as home:
        plugins = home / ".local/lib/wireshark/plugins"
        plugins.mkdir(parents=True)
        script = Path(shutil.copy(dissector_path(), home))
        (plugins / "mrc.lua").symlink_to(script)
        done = run_as_nobody(home, "-X", f"lua_script:{script}", "-r", "-", "-Y", "mrc", stdin=capture)
    assert "lua" not in done.stderr.lower()
    assert len(done.stdout.splitlines()) == len(VECTORS)


def test_nothing_is_malformed(capture):
    assert tshark(capture, "-Y", "_ws.malformed || _ws.lua.error || mrc.short") == ""


def test_the_info_column_reads_like_a_sentence(capture):
    lines = tshark(capture, "-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info").splitlines()
    info = dict(zip(VECTORS, lines, strict=True))
    go = "EV 1/2  > p1-t0-0 p1-t1-2 p1-t0-3 down1"
    assert info["write middle, retransmitted"] == f"MRC\tWRITE_MIDDLE PSN 16777215 msg 7 RTX  {go}"
    assert info["sack"] == f"MRC\tSACK cack 65 +2..3 +64 for PSN 63 on 3/2 SKIP_ONCE RTX  {go}"
    assert info["nack"] == f"MRC\tNACK PSN 65 TRIMMED_LASTHOP on 3/2 RTX  {go}"
    assert info["endpoint response"] == f"MRC\tENDPOINT_RESPONSE EV_PROBE id 48879 for 3/2  {go}"


@pytest.mark.parametrize(
    ("display_filter", "names"),
    [
        ("mrc.psn == 65 && mrc.opcode == 0xdd", ["nack"]),
        ("mrc.nack.reason == 2", ["nack"]),
        ("mrc.sack.bitmap == 0x8000000000000006", ["sack"]),
        ("mrc.sack.mark == 2", ["sack, answer to a probe"]),
        ("mrc.rtx == 1 && mrc.opcode <= 0xcb", ["write middle, retransmitted", "write only with immediate"]),
        ("mrc.of_ev.plane == 3 && mrc.of_ev.uplink == 2", ["endpoint response", "sack", "nack"]),
        ("mrc.ev.plane == 1 && mrc.ev.uplink == 2", [*VECTORS]),
        ('mrc.path contains "p1-t1-2"', [*VECTORS]),
        ("mrc.endpoint.op == 0", ["port status update"]),
        ("mrc.ack.syndrome == 0x62", ["transport nak"]),
    ],
)
@pytest.mark.nightly(keep=3)
def test_every_field_filters(display_filter, names, capture):
    numbers = tshark(capture, "-Y", display_filter, "-T", "fields", "-e", "frame.number").split()
    assert [list(VECTORS)[int(number) - 1] for number in numbers] == names


def test_every_tier_that_is_still_to_go_is_named(tmp_path):
    path = pcap(tmp_path / "three.pcap", [frame(VECTORS["nack"].packet, outer=THREE_TIERS, path=usid.PathId(1, 7))])
    assert dissected(path) == parsed(path)
    info = tshark(path, "-T", "fields", "-e", "_ws.col.Info").strip()
    assert info.endswith("EV 1/7  > p1-t0-0 p1-t1-1 p1-t2-3 p1-t1-5 p1-t0-7 down1")


def test_a_trimmed_packet_is_said_so_with_what_is_gone(tmp_path):
    packet = long_packet()
    path = pcap(
        tmp_path / "trim.pcap",
        [
            *(frame(packet, TRIMMED_CLASS, keep=keep) for keep in (40, 36)),
            frame(packet, TRIMMED_CLASS, keep=40, corrected=True),
            frame(packet),
        ],
    )
    assert dissected(path) == parsed(path)
    shown = tshark(path, "-T", "fields", "-e", "mrc.trimmed.bytes", "-e", "_ws.col.Info").splitlines()
    assert [line.split("  EV")[0] for line in shown] == [
        "4100\tWRITE_ONLY_IMM PSN 9 msg 1 imm 0x77 TRIMMED",
        "4104\tWRITE_ONLY_IMM PSN 9 msg 1 TRIMMED",
        "\tWRITE_ONLY_IMM PSN 9 msg 1 imm 0x77 TRIMMED",
        "\tWRITE_ONLY_IMM PSN 9 msg 1 imm 0x77",
    ]


@pytest.mark.parametrize("snap", [HEADERS, HEADERS + 1, HEADERS + 12, HEADERS + 35, HEADERS + 36, HEADERS + 42, 170])
@pytest.mark.nightly(keep=2)
def test_a_snapshot_length_breaks_nothing(snap, tmp_path):
    path = pcap(tmp_path / "snap.pcap", [frame(long_packet()), *every_vector()], snap=snap)
    assert tshark(path, "-Y", "_ws.lua.error") == ""
    assert tshark(path, "-Y", "mrc.trimmed == 1") == ""


def test_another_port_is_known_by_its_look_and_other_roce_is_left_alone(tmp_path):
    packet = VECTORS["write only"].packet
    frames = [frame(packet, destination=4971), frame(b"\x04" + packet[1:]), frame(bytes(40), destination=4971)]
    protocols = tshark(pcap(tmp_path / "odd.pcap", frames), "-T", "fields", "-e", "_ws.col.Protocol").split()
    assert protocols[0] == "MRC"
    assert "MRC" not in protocols[1:]


def test_without_encapsulation_there_is_no_path(tmp_path):
    path = pcap(tmp_path / "plain.pcap", [frame(VECTORS["nack"].packet, outer=None)])
    assert dissected(path) == parsed(path)
    assert tshark(path, "-Y", "mrc.path") == ""
