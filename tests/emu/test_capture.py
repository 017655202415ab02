"""Captures on the real kernel: a cut link's file in real tshark, what a killed run leaves, taps on ports that fall."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.fabric.tap import FLUSH_S, Tap
from mrc_testbed.testbed.pcap.index import CaptureFile, read_index
from mrc_testbed.testbed.switching.ring import packets_of
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.topos.nodes import Interface
from tests.documented import undocumented
from tests.emu.conftest import isolated
from tests.emu.runs import Run, wait_for
from tests.tshark import dissected, parsed, tshark

CUT = "p0-t0-0:p0-t1-0"
PORT = "h0:p0-t0-0"
SCENARIO = f"""
name: cut
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 25mbit, rtt: 20ms}}
workload:
  - train: {{steps: STEPS, compute: 20ms, allreduce: 1MiB}}
faults:
  - {{at: 1s, link-down: "{CUT}", for: 600ms, name: cut}}
capture:
  - {{links: "{CUT}", around: cut, before: 500ms, after: 500ms}}
  - {{links: "{PORT}", around: run}}
"""


def captures(run: Run) -> dict[str, CaptureFile]:
    return {each.link: each for each in read_index(run.folder)}


def column(path: Path, *arguments: str) -> list[str]:
    """Lines of tshark's output."""
    return tshark(path, *arguments).splitlines()


@pytest.mark.timeout(120)
def test_a_cut_link_tells_its_story_in_tshark(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=9, scenario=SCENARIO)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert undocumented(run.folder) == []
    made = captures(run)
    assert set(made) == {CUT, PORT}
    assert [(each.lost, each.full, each.damage) for each in made.values()] == [(0, False, "")] * 2
    _assert_tshark_agrees(run.folder / "pcap" / made[CUT].file)
    _assert_silent_while_cut(run, run.folder / "pcap" / made[CUT].file)
    _assert_complete(run, run.folder / "pcap" / made[PORT].file)


def _assert_tshark_agrees(path: Path) -> None:
    seen = dissected(path)
    assert seen == parsed(path)
    assert {packet["opcode"] for packet in seen} >= {bth.WRITE_MIDDLE, wire.SACK}
    assert tshark(path, "-Y", "_ws.malformed || _ws.lua.error || mrc.short") == ""
    sides = Counter(column(path, "-T", "fields", "-e", "frame.interface_name"))
    assert set(sides) == {"p0-t0-0->p0-t1-0", "p0-t1-0->p0-t0-0"}
    (told,) = [column(path, "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment")]
    story = "\n".join(told)
    assert story.count("fault cut begins: link-down") == story.count("fault cut has healed") == 1
    assert "EV 0/0 to h1 retired by h0" in story
    assert "back in use at h0" in story


def _assert_silent_while_cut(run: Run, path: Path) -> None:
    done = {line["op"]: line["t_ns"] for line in run.history() if line["type"] == "ok" and line.get("fault") == "cut"}
    tried = {line["op"]: line["t_ns"] for line in run.history() if line["type"] == "invoke" and "fault" in line}
    clocks = json.loads((run.folder / "environment.json").read_text(encoding="utf-8"))["clocks"]
    ahead_ns = clocks["wall_ns"] - clocks["monotonic_ns"]
    times = [record.time_ns - ahead_ns for record in CaptureReader(path)]
    assert min(times) < tried["inject"]
    assert max(times) > done["heal"]
    # The kernel takes a moment to stop a port whose other end is gone: what leaves then is lost, and is in the file.
    silent_ns = done["inject"] + 100_000_000
    assert not [t_ns for t_ns in times if silent_ns < t_ns < tried["heal"]]


def _assert_complete(run: Run, path: Path) -> None:
    """Every packet of the class of data that the port program of the T0 counted in from this port is there."""
    counters = json.loads((run.folder / "counters.json").read_text(encoding="utf-8"))
    if "ports" not in counters:
        pytest.skip("this machine has no port program to compare with")
    frames = [unwrap(record) for record in CaptureReader(path)]
    packets = [packet for each in frames if isinstance(each, Frame) and isinstance(packet := parse(each), Packet)]
    assert len(packets) == len(frames), "nothing but MRC passes a port, the kernel's multicast left out"
    # Ports count by class, and a reliability probe that follows late data is of the class of data.
    data = [packet for packet in packets if packet.frame.traffic_class & ~bth.ECN_MASK != bth.CLASS_CONTROL]
    port = counters["ports"]["p0-t0-0"]["down0"]
    away = [packet for packet in data if packet.frame.source[7] == 0]
    assert len(away) == port["in_data"] > 500
    assert len(data) - len(away) == port["out_passed"]


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_kill_9_of_the_supervisor_leaves_captures_with_their_comments(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=1000, scenario=SCENARIO)
    ring = f"pcap/{CUT.replace(':', '_')}.ring"
    wait_for(lambda: any(path.stat().st_size > 20_000 for path in run.out.glob(f"*/{ring}")), "a captured block")
    wait_for(
        lambda: any('"type":"ok","op":"inject"' in _text(path) for path in run.out.glob("*/history.jsonl")), "a cut"
    )
    time.sleep(0.3)
    os.kill(run.pids("mrc-testbed run")[2], signal.SIGKILL)
    assert run.finish() == 3
    made = captures(run)
    assert made[CUT].packets > 50
    assert not list(run.folder.glob("pcap/*.ring"))
    path = run.folder / "pcap" / made[CUT].file
    told = [text for record in CaptureReader(path) for text in record.comments]
    assert any("fault cut begins" in text for text in told)
    assert "to the end of the run" in CaptureReader(path).comment


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_tap_keeps_to_its_windows_and_outlives_its_port() -> None:
    isolated(_tapped)


def _tapped() -> None:
    _ip("link add near type veth peer name far")
    _ip("link set near addrgenmode none up", "link set far addrgenmode none up")
    tap = Tap(os.getpid(), Interface("here", "near", 5), 64, 8)
    assert _heard(tap, 10) == [], "it was not told to listen"
    tap.listen()
    assert _heard(tap, 10) == [(64, 514)] * 10
    _send(3, group=True)
    assert _heard(tap, 2) == [(64, 514)] * 2, "multicast is left out"
    tap.mute()
    assert _heard(tap, 10) == []
    tap.listen()
    _ip("link set near down", "link set near up")
    assert _heard(tap, 7) == [(64, 514)] * 7, "a port that was down is heard again"
    room = len(_heard(tap, 20_000))
    assert room > 1000
    assert tap.lost() == 20_000 - room, "what the ring had no room for is counted"
    assert _heard(tap, 5) == [(64, 514)] * 5, "and the ring goes on"
    tap.close()


def _ip(*lines: str) -> None:
    for line in lines:
        subprocess.run(["ip", *line.split()], check=True)


def _heard(tap: Tap, packets: int) -> list[tuple[int, int]]:
    """Bytes kept and on the wire of what leaves by the port when `packets` are sent."""
    _send(packets)
    time.sleep(FLUSH_S)
    heard = [packet for block in tap.blocks() for packet in packets_of(block)]
    assert all(packet.outgoing for packet in heard)
    return [(len(packet.frame), packet.wire_bytes) for packet in heard]


def _send(packets: int, group: bool = False) -> None:
    destination = b"\x33\x33\0\0\0\1" if group else b"\2\0\0\0\0\1"
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind(("near", 0))
        for _ in range(packets):
            out.send(destination + b"\2\0\0\0\0\2\x88\xb5" + bytes(500))
