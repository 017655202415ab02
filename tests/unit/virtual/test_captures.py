"""Captures of a run in virtual time: the files of the kernel, the same bytes each time, read by what reads those."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.pcap.index import CaptureFile, read_index
from mrc_testbed.testbed.runner.endpoints import Endpoints
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.virtual.tap import VirtualTap
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.testbed.wireview.record import Record
from tests.unit.virtual.test_run import folder_of, quiet

CUT, PORT = "p0-t0-0:p0-t1-0", "h0:p0-t0-0"
SCENARIO = f"""
name: captured
seed: 3
world: virtual
fabric: {{planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 3, port_rate: 25mbit, rtt: 20ms}}
workload:
  - incast: {{to: h0, from: [h1, h2, h3, h4, h5], for: 2s}}
faults:
  - {{at: 400ms, link-down: "{CUT}", for: 200ms, name: cut}}
capture:
  - {{links: "{CUT}", around: cut, before: 100ms, after: 300ms, snap: 9000B}}
  - {{links: "{PORT}", around: run, snap: 4000B, most: MOST}}
"""


def run(tmp_path: Path, most: str = "32MiB") -> Path:
    path = tmp_path / "captured.yaml"
    path.write_text(SCENARIO.replace("MOST", most), encoding="utf-8")
    return folder_of(run_scenario(load_scenario(path, []), tmp_path / "results", True, quiet()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("captured"))


def made(folder: Path) -> dict[str, CaptureFile]:
    return {each.link: each for each in read_index(folder)}


def reader(folder: Path, link: str) -> CaptureReader:
    return CaptureReader(folder / "pcap" / made(folder)[link].file)


def packet(record: Record) -> Packet:
    frame = unwrap(record)
    assert isinstance(frame, Frame)
    found = parse(frame)
    assert isinstance(found, Packet), found
    return found


def test_a_whole_capture_has_every_packet_that_the_port_counted(folder: Path) -> None:
    assert set(made(folder)) == {CUT, PORT}
    assert not list(folder.glob("pcap/*.ring"))
    packets = [packet(record) for record in reader(folder, PORT)]
    data = [each for each in packets if each.frame.traffic_class != bth.CLASS_CONTROL]
    ports = json.loads((folder / "counters.json").read_text())["ports"]
    counted = ports["p0-t0-0"]["down0"]
    assert len(data) == counted["out_passed"] + counted["out_marked"] + counted["out_trimmed"]
    assert sum(each.values.get("trimmed", False) for each in data) == counted["out_trimmed"] > 10
    marked = [each for each in data if each.frame.traffic_class & bth.ECN_MASK == bth.ECN_CE]
    everywhere = sum(each.get("out_marked", 0) for node in ports.values() for each in node.values())
    assert 0 < len(marked) <= everywhere
    classes = {each.frame.traffic_class >> 2 for each in data if each.values.get("trimmed")}
    assert wire.DSCP_TRIMMED_LASTHOP in classes


def test_a_window_is_kept_and_a_cut_link_is_silent(folder: Path) -> None:
    record = load_record(folder)
    clocks = json.loads((folder / "environment.json").read_text())["clocks"]
    start_ns = (record.start_ns or 0) + clocks["wall_ns"] - clocks["monotonic_ns"]
    times_s = [(each.time_ns - start_ns) / 1e9 for each in reader(folder, CUT)]
    assert times_s == sorted(times_s)
    assert 0.3 <= times_s[0] < 0.35
    assert 0.85 < times_s[-1] <= 0.9
    assert not [t for t in times_s if 0.4 < t < 0.6]


def test_events_are_comments_and_the_file_says_that_it_is_virtual(folder: Path) -> None:
    capture = reader(folder, CUT)
    told = "\n".join(text for record in capture for text in record.comments)
    assert told.count("fault cut begins: link-down") == told.count("fault cut has healed") == 1
    assert "EV 0/0 to" in told
    assert "made in virtual time" in capture.comment
    assert "Captured: 0.3 to 0.9 s" in capture.comment


def test_a_capture_ends_at_its_size(tmp_path: Path, folder: Path) -> None:
    whole, small = made(folder)[PORT], made(ended := run(tmp_path, "1MiB"))[PORT]
    assert small.full
    assert 0 < small.packets < whole.packets
    assert [each.frame for each in reader(ended, PORT)] == [
        each.frame for each, _ in zip(reader(folder, PORT), range(small.packets), strict=False)
    ]


def test_it_listens_before_hosts_are_told_when_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    for owner, name in ((VirtualTap, "listen"), (Endpoints, "start")):
        monkeypatch.setattr(owner, name, _noted(getattr(owner, name), name, order))
    run(tmp_path)
    assert order == ["listen", "start", "listen"], "the port from the start on, the link around its cut"


def _noted(method: Callable[..., None], name: str, order: list[str]) -> Callable[..., None]:
    def noted(*arguments: object) -> None:
        order.append(name)
        method(*arguments)

    return noted


def test_the_same_run_has_the_same_files(tmp_path: Path, folder: Path) -> None:
    again = run(tmp_path)
    for name in ("captures.json", *(each.file for each in read_index(folder))):
        assert (again / "pcap" / name).read_bytes() == (folder / "pcap" / name).read_bytes()
