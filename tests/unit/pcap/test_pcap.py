"""From the rings that a run wrote to files that people open: packets whole and in order, comments where they belong."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scapy.utils import RawPcapNgReader

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.app.judge import judge_folder
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.pcap import pcapng
from mrc_testbed.testbed.pcap.annotate import annotate
from mrc_testbed.testbed.pcap.convert import write_captures
from mrc_testbed.testbed.pcap.index import CaptureFile, read_index
from mrc_testbed.testbed.pcap.link_events import LinkEvent, link_events
from mrc_testbed.testbed.pcap.raw import About, FrameKind, RawCapture, frame_header, raw_name
from mrc_testbed.testbed.report.capture_facts import capture_line
from mrc_testbed.testbed.report.summary import summary_text
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.decode import decode
from mrc_testbed.testbed.wireview.select import PacketFilter
from tests import documented
from tests.captures import frame
from tests.examples import examples
from tests.rings import WALL_AHEAD_NS, Passing, RingFile, block
from tests.unit.checks.test_folder import LINK, PLAN, RunFolder, at, ev, fault

ABOUT = About(LINK, "p0-t0-0", "up1", 160, 1 << 20)
SNAP_BYTES = 160


def data(psn: int) -> bytes:
    """A full data packet as a capture keeps it."""
    buffer = memoryview(bytearray(4200))
    size = wire.emit_data(buffer, bth.WRITE_MIDDLE, 0x10, psn, 0, 1, 2, 3, 4, 4096, memoryview(bytes(4096)), None)
    return frame(bytes(buffer[:size]))[:SNAP_BYTES]


def passing(seconds: float, psn: int = 1, outgoing: bool = True) -> Passing:
    return Passing(at(seconds), data(psn), outgoing, 4238)


def ring() -> RingFile:
    """A window around the cut of the hand-made run: a packet each way every 0.1 s, and none while the link is down."""
    times = [number / 10 for number in range(34, 52) if not 35 < number < 46]
    packets = [passing(second + shift, 1 + n, bool(shift)) for n, second in enumerate(times) for shift in (0, 0.01)]
    return RingFile(ABOUT).mark(FrameKind.BEGIN, at(3.35)).packets(packets).mark(FrameKind.END, at(5.2))


def captured(folder: Path, content: RingFile, run: RunFolder | None = None) -> Path:
    """The pcapng file that is made of a ring in a run folder."""
    (run or RunFolder()).write(folder)
    path = content.write(folder / "pcap" / raw_name(content_link(content)))
    write_captures(load_record(folder))
    assert not path.exists(), "the ring has been used"
    return path.with_suffix(".pcapng")


def content_link(content: RingFile) -> str:
    return str(json.loads(content.content.split(b"\n", 1)[0])["link"])


def comments(path: Path) -> dict[int, list[str]]:
    """By the number of the packet, as our own reader sees them."""
    return {number: list(record.comments) for number, record in enumerate(CaptureReader(path)) if record.comments}


def test_a_file_has_every_packet_with_time_direction_and_length(tmp_path: Path) -> None:
    path = captured(tmp_path, ring())
    assert path.name == "p0-t0-0_p0-t1-1.pcapng"
    reader = RawPcapNgReader(str(path))
    read: list[tuple[bytes, Any]] = list(reader)
    assert len(read) == 16
    content, about = read[1]
    assert (content, about.wirelen, about.linktype) == (data(1), 4238, 1)
    assert about.tsresol == 10**9
    assert (about.tshigh << 32 | about.tslow) == at(3.41) + WALL_AHEAD_NS
    sides = Counter((entry.ifname, entry.direction) for _, entry in read)
    assert sides == {(b"p0-t0-0->p0-t1-1", pcapng.OUTBOUND): 8, (b"p0-t1-1->p0-t0-0", pcapng.INBOUND): 8}
    records = list(CaptureReader(path))
    assert [record.time_ns for record in records] == sorted(record.time_ns for record in records)


def test_the_story_stands_on_the_nearest_packets(tmp_path: Path) -> None:
    told = comments(captured(tmp_path, ring()))
    assert told[2] == [f"3.5010 s: fault cut begins: link-down {LINK} (this link) [1.000 ms after this packet]"]
    after = told[3]
    assert after[0].startswith(
        "3.6000 s: EV 0/1 to h2 retired by h0: its first lost packet left 50.0 ms before [90.000"
    )
    assert after[1].startswith("3.6500 s: EV 0/1 to h1 retired by h3")
    assert told[4][0] == f"4.5020 s: fault cut has healed: link-down {LINK} (this link) [98.000 ms before this packet]"
    assert [text for texts in told.values() for text in texts if "back in use" in text] == [
        "4.7000 s: EV 0/1 to h2 back in use at h0 [at this packet]",
        "4.8000 s: EV 0/1 to h1 back in use at h3 [at this packet]",
    ]


def test_a_file_says_what_it_is_and_what_is_beside_it(tmp_path: Path) -> None:
    text = CaptureReader(captured(tmp_path, ring())).comment
    assert f"scenario small, seed 1, link {LINK}" in text
    assert "A link goes down." in text
    assert "Captured: 3.4 to 5.2 s." in text
    assert "16 packets; none lost by the capture." in text
    assert "Beside the captured packets:\n0.0000 s: the workload begins\n8.3000 s: the workload is done" in text


def test_losses_are_told_in_the_packet_the_preface_the_index_and_the_summary(tmp_path: Path) -> None:
    content = RingFile(ABOUT).mark(FrameKind.BEGIN, at(1)).packets([passing(1.1)]).packets([passing(1.2)], lost=7)
    path = captured(tmp_path, content.mark(FrameKind.END, at(2), lost=5))
    assert b"\x04\x00\x08\x00\x07\x00\x00\x00\x00\x00\x00\x00" in path.read_bytes(), "epb_dropcount"
    assert "2 packets; 12 more were LOST by the capture." in CaptureReader(path).comment
    (file,) = read_index(tmp_path)
    assert (file.packets, file.lost, file.full, file.damage) == (2, 12, False, "")
    assert "2 packets" in capture_line(tmp_path)
    assert "12 LOST by the capture" in capture_line(tmp_path)


def test_a_capture_that_reached_its_size_says_so(tmp_path: Path) -> None:
    content = RingFile(ABOUT).mark(FrameKind.BEGIN, at(3)).packets([passing(3.1)]).mark(FrameKind.FULL, at(3.2))
    path = captured(tmp_path, content)
    assert "ENDED EARLY: 1MiB were written" in CaptureReader(path).comment
    assert f"{LINK} ended at its size" in capture_line(tmp_path)
    assert comments(path) == {}, "the cut came later and is no part of what was captured"
    assert "3.5010 s: fault cut begins" in CaptureReader(path).comment


@pytest.mark.parametrize(("late_s", "words"), [(0.094, "began 94 ms late"), (0.001, "began 1 ms late"), (0.0009, "")])
def test_a_window_that_began_late_is_told_and_a_timer_is_none(tmp_path: Path, late_s: float, words: str) -> None:
    content = RingFile(ABOUT).mark(FrameKind.DUE, at(1)).mark(FrameKind.BEGIN, at(1 + late_s))
    content.mark(FrameKind.END, at(2)).mark(FrameKind.DUE, at(3)).mark(FrameKind.BEGIN, at(3.0001)).mark(
        FrameKind.END, at(4)
    )
    path = captured(tmp_path, content)
    (file,) = read_index(tmp_path)
    assert file.late_ns == at(1 + late_s) - at(1)
    story, line = CaptureReader(path).comment, capture_line(tmp_path)
    assert "Captured: 1.1 to 2.0 s, 3.0 to 4.0 s." in story or late_s < 0.05
    assert "late" not in story + line if not words else f"a window {words}." in story and f"{LINK} {words}" in line


def test_a_window_that_listens_before_the_start_has_nothing_from_before_it(tmp_path: Path) -> None:
    content = RingFile(ABOUT).mark(FrameKind.DUE, at(0)).mark(FrameKind.BEGIN, at(-0.2))
    content.packets([passing(-0.1), passing(0), passing(0.1)]).mark(FrameKind.END, at(5))
    path = captured(tmp_path, content)
    assert "Captured: 0.0 to 5.0 s." in CaptureReader(path).comment
    assert [each.time_ns for each in CaptureReader(path)] == [at(0) + WALL_AHEAD_NS, at(0.1) + WALL_AHEAD_NS]
    assert read_index(tmp_path)[0].late_ns == 0


def test_a_file_without_a_packet_tells_its_story_in_the_preface(tmp_path: Path) -> None:
    path = captured(tmp_path, RingFile(ABOUT).mark(FrameKind.BEGIN, at(3)).mark(FrameKind.END, at(5)))
    assert list(CaptureReader(path)) == []
    assert "Beside the captured packets:\n3.5010 s: fault cut begins" in CaptureReader(path).comment


def test_packets_and_events_meet_when_the_wall_clock_is_set_in_between(tmp_path: Path) -> None:
    content = RingFile(ABOUT).mark(FrameKind.BEGIN, at(3.4)).packets([passing(3.45), passing(3.5)])
    content.packets([passing(4.51), passing(4.6)], ahead_ns=WALL_AHEAD_NS - 3600 * 10**9).mark(FrameKind.END, at(4.65))
    told = comments(captured(tmp_path, content))
    assert told[1][0].startswith("3.5010 s: fault cut begins")
    assert told[2][-1].startswith("4.5020 s: fault cut has healed")


def test_only_what_crosses_the_link_is_told(tmp_path: Path) -> None:
    run = RunFolder()
    run.events += [
        ev("h0", "h2", 1, 0, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55),
        ev("h0", "h2", 0, 1, 3.7, "GOOD", "SKIP"),
        ev("h0", "h2", 0, 1, 4.0, "GOOD", "DENIED"),
        ev("h0", "h2", 0, 1, 4.1, "DENIED", "ASSUMED_BAD"),
        {"event": "qp_error", "t_ns": at(5), "host": "h1", "qp": "h1->h3/0", "peer": "h3", "reason": "retries"},
    ]
    record = load_record(run.write(tmp_path))
    texts = [text for _, text in link_events(record, PLAN.link_by_name[LINK])]
    assert [text for text in texts if "EV 1/0" in text or "SKIP" in text] == []
    assert "EV 0/1 to h2 denied at h0" in texts
    assert "EV 0/1 to h2 allowed again at h0, on probation" in texts
    assert "a QP of h1 to h3 FAILED: retries" in texts
    other = [text for _, text in link_events(record, PLAN.link_by_name["p1-t0-1:p1-t1-1"])]
    assert any(text == f"fault cut begins: link-down {LINK}" for text in other), "faults of the run, not of this link"
    assert not any(text.startswith("EV") for text in other)


def test_a_nic_port_is_told_of_by_its_own_host_and_by_peers(tmp_path: Path) -> None:
    run = RunFolder()
    run.events += [
        {"event": "port_state", "t_ns": at(3.5), "host": "h0", "peer": None, "plane": 0, "state": "DOWN"},
        {"event": "port_state", "t_ns": at(3.53), "host": "h2", "peer": "h0", "plane": 0, "state": "DOWN"},
        {"event": "port_state", "t_ns": at(3.54), "host": "h2", "peer": "h0", "plane": 1, "state": "DOWN"},
        {"event": "port_state", "t_ns": at(3.55), "host": "h1", "peer": None, "plane": 0, "state": "DOWN"},
    ]
    texts = [text for _, text in link_events(load_record(run.write(tmp_path)), PLAN.link_by_name["h0:p0-t0-0"])]
    assert [text for text in texts if "port" in text] == [
        "h0 sees its own port in plane 0 DOWN",
        "h2 considers the port of h0 in plane 0 DOWN",
    ]


def test_occurrences_are_counted_for_people(tmp_path: Path) -> None:
    flap = RunFolder().scenario.replace("link-down", "link-flap").replace("for: 1s", "period: 500ms, count: 3")
    run = RunFolder(scenario=flap)
    run.history[2:6] = [fault("inject", "ok", 3.5), fault("heal", "ok", 3.7, cycle=2)]
    texts = [text for _, text in link_events(load_record(run.write(tmp_path)), PLAN.link_by_name[LINK])]
    assert f"fault cut, cycle 1 of 3, begins: link-flap {LINK} (this link)" in texts
    assert f"fault cut, cycle 3 of 3, has healed: link-flap {LINK} (this link)" in texts


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), max_size=20), st.lists(st.integers(0, 10**9), max_size=20))
def test_every_comment_is_placed_once_and_on_a_nearest_packet(times_ns: list[int], moments_ns: list[int]) -> None:
    times_ns.sort()
    events = [LinkEvent(t_ns, f"event {number}") for number, t_ns in enumerate(sorted(moments_ns))]
    at_packets, homeless = annotate(events, times_ns, 0)
    told = {text.split(": ")[1].split(" [")[0]: n for n, texts in at_packets.items() for text in texts}
    assert len(homeless) == (0 if times_ns else len(events))
    assert len(told) + len(homeless) == len(events)
    for number, (t_ns, _) in enumerate(events):
        if times_ns:
            assert abs(times_ns[told[f"event {number}"]] - t_ns) == min(abs(each - t_ns) for each in times_ns)


@settings(deadline=None)
@given(st.data())
def test_a_ring_cut_anywhere_gives_what_was_whole(
    tmp_path_factory: pytest.TempPathFactory, drawn: st.DataObject
) -> None:
    packets = [passing(number / 10, number) for number in range(6)]
    content = (
        RingFile(ABOUT)
        .mark(FrameKind.BEGIN, at(0))
        .packets(packets[:3])
        .packets(packets[3:])
        .mark(FrameKind.END, at(1))
    )
    whole, head = content.content, content.content.index(b"\n") + 1
    end = drawn.draw(st.integers(head, len(whole)))
    content.content = whole[:end]
    raw = RawCapture(content.write(tmp_path_factory.mktemp("ring") / "cut.ring"))
    seen = [bytes(each.packet.frame) for each in raw]
    assert seen == [packet.frame for packet in packets[: len(seen)]]
    assert len(seen) == 6 or end < len(whole)
    # After a whole frame a file that was cut looks like one of a run that was killed then.
    boundaries = {head, head + 32, head + 32 + 32 + (len(whole) - head - 128) // 2, len(whole) - 32, len(whole)}
    assert bool(raw.damage) == (end not in boundaries)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_a_spoilt_block_is_damage_and_no_exception(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    content = RingFile(ABOUT).mark(FrameKind.BEGIN, at(0)).packets([passing(0.1)])
    content.content += noise
    raw = RawCapture(content.write(tmp_path_factory.mktemp("ring") / "spoilt.ring"))
    frames = [bytes(each.packet.frame) for each in raw]
    assert frames[0] == data(1)


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=100))
def test_whatever_a_ring_holds_it_is_converted_or_refused(
    tmp_path_factory: pytest.TempPathFactory, monotonic_ns: int, wall_ns: int, noise: bytes
) -> None:
    folder = tmp_path_factory.mktemp("run")
    whole = block([passing(0.1)])
    content = RingFile(ABOUT).mark(FrameKind.BEGIN, at(0))
    content.content += frame_header(FrameKind.BLOCK, len(whole), 0, (monotonic_ns, wall_ns)) + whole + noise
    RunFolder().write(folder)
    path = content.write(folder / "pcap" / raw_name(LINK))
    with suppress(RunError):
        write_captures(load_record(folder))
    assert path.exists() != bool(read_index(folder))


@pytest.mark.parametrize("spoilt", [{"snap_bytes": -1}, {"snap_bytes": "many"}, {"link": [LINK]}, {"link": {}}, {}])
def test_a_damaged_ring_takes_no_verdict_away(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    RunFolder().write(tmp_path)
    content, whole = RingFile(replace(ABOUT, **spoilt)), block([passing(0.1)])
    clocks = (at(0.1), at(0.1) + WALL_AHEAD_NS) if spoilt else (1 << 62, -(1 << 62))
    content.content += frame_header(FrameKind.BLOCK, len(whole), 0, clocks) + whole
    path = content.write(tmp_path / "pcap" / raw_name(LINK))
    shown = StringIO()
    judge_folder(tmp_path, Console(file=shown, width=300), quiet=True)
    assert (tmp_path / "verdict.json").exists()
    assert f"warning: cannot make a capture of {path}: it is damaged: " in shown.getvalue()
    assert path.exists()


def test_a_torn_capture_is_made_readable_and_says_that_it_is_torn(tmp_path: Path) -> None:
    content = ring()
    content.content = content.content[:-200]
    path = captured(tmp_path, content)
    assert len(list(CaptureReader(path))) == 15
    assert "the capture was CUT OFF: a block ends within a packet" in CaptureReader(path).comment
    assert f"{LINK} cut off" in capture_line(tmp_path)


def test_what_is_no_ring_is_refused_and_stays_and_costs_no_other(tmp_path: Path) -> None:
    RunFolder().write(tmp_path)
    ring().write(tmp_path / "pcap" / raw_name(LINK))
    broken, empty = tmp_path / "pcap" / "a.ring", tmp_path / "pcap" / "b.ring"
    broken.write_bytes(b"{")
    empty.write_bytes(b"")
    foreign = RingFile(replace(ABOUT, link="p9-t0-0:p9-t1-1")).write(tmp_path / "pcap" / "c.ring")
    with pytest.raises(RunError) as caught:
        write_captures(load_record(tmp_path))
    assert str(caught.value).count("not a ring capture") == 2
    assert "this fabric has no link 'p9-t0-0:p9-t1-1'" in str(caught.value)
    assert all(path.exists() for path in (broken, empty, foreign))
    assert [file.link for file in read_index(tmp_path)] == [LINK]


def test_done_again_nothing_changes(tmp_path: Path) -> None:
    path = captured(tmp_path, ring())
    before, index = path.read_bytes(), read_index(tmp_path)
    write_captures(load_record(tmp_path))
    assert (path.read_bytes(), read_index(tmp_path)) == (before, index)


def test_a_run_that_captured_nothing_has_no_line_and_no_folder(tmp_path: Path) -> None:
    write_captures(load_record(RunFolder().write(tmp_path)))
    assert not (tmp_path / "pcap").exists()
    assert capture_line(tmp_path) == ""


def test_decode_shows_comments_at_their_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = captured(tmp_path, ring())
    decode(path, PacketFilter(), None, machine=False, fields=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# mrc-testbed, scenario small")
    number = next(n for n, line in enumerate(lines) if "fault cut begins" in line)
    assert lines[number].startswith("# 3.5010 s: ")
    assert "WRITE_MIDDLE" in lines[number - 1]
    assert "psn 2 " in lines[number - 1]
    decode(path, PacketFilter(psns=(2, 2)), None, machine=True, fields=False)
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(each.get("comments", ())) for each in objects] == [1, 2, 0]
    assert "scenario small" in objects[-1]["summary"]["comment"]
    decode(path, PacketFilter(), 0, machine=False, fields=False)
    assert "#" not in capsys.readouterr().out


@settings(deadline=None)
@given(st.text(), st.lists(st.text(), max_size=3), st.binary(max_size=64), st.integers(0, (1 << 64) - 1))
def test_whatever_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, about: str, told: list[str], content: bytes, time_ns: int
) -> None:
    path = tmp_path_factory.mktemp("pcapng") / "a.pcapng"
    blocks = [pcapng.section(about), pcapng.interface("a->b", "", 160)]
    blocks += [
        pcapng.packet(0, time_ns, content, len(content) + 9, pcapng.INBOUND, told),
        pcapng.statistics(0, 1, 1, 0),
    ]
    path.write_bytes(b"".join(blocks))
    capture = CaptureReader(path)
    (record,) = capture
    assert (record.time_ns, record.frame, record.wire_bytes) == (time_ns, content, len(content) + 9)
    assert (list(record.comments), capture.comment, capture.damage) == (told, about, "")


def test_a_capture_that_cannot_be_made_costs_no_verdict(tmp_path: Path) -> None:
    RunFolder().write(tmp_path)
    (tmp_path / "pcap").mkdir()
    (tmp_path / "pcap" / "broken.ring").write_bytes(b"{")
    shown = StringIO()
    judge_folder(tmp_path, Console(file=shown, width=200), quiet=True)
    assert (tmp_path / "verdict.json").exists()
    assert f"warning: {tmp_path}/pcap/broken.ring: not a ring capture" in shown.getvalue()


def test_the_summary_has_a_line_about_captures(tmp_path: Path) -> None:
    captured(tmp_path, ring())
    record = load_record(tmp_path)
    assert "captures   1 file in pcap/, 16 packets, 0.0 MB, none lost" in summary_text(judge(record), record)


def test_the_index_is_as_documented(tmp_path: Path) -> None:
    captured(tmp_path, ring())
    types = {"str": "text", "int": "int", "bool": "flag"}
    said = documented.keys("pcap/captures.json")
    assert said == [(f"files[].{each.name}", types[str(each.type)]) for each in fields(CaptureFile)]
    (written,) = json.loads((tmp_path / "pcap" / "captures.json").read_text(encoding="utf-8"))["files"]
    assert list(written) == [key.removeprefix("files[].") for key, _ in said]
