"""Taps listen in their windows, in time for the fault; what they hear is in the file at once; a file has its size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.pcap.raw import FrameKind, RawCapture
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.runner.captures import Captures, Taps
from mrc_testbed.testbed.runner.clocks import both_clocks
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.scenario.model.captures import CaptureWindow, LinkCapture
from tests.rings import WALL_AHEAD_NS, Passing, block
from tests.unit.fakes import FakeClock

S = 10**9
LINK = "p0-t0-0:p0-t1-1"
WINDOWS = (CaptureWindow(1 * S, 2 * S), CaptureWindow(3 * S, 4 * S))


class FakeTap:
    """A tap without a port."""

    def __init__(self, clock: FakeClock) -> None:
        self.port = SimpleNamespace(node="p0-t0-0", name="up1")
        self.clock = clock
        self.done: list[tuple[str, int]] = []
        self.waiting: list[bytes] = []
        self.lost_now = 0

    def listen(self) -> None:
        self.done.append(("listen", self.clock.now_ns))

    def mute(self) -> None:
        self.done.append(("mute", self.clock.now_ns))

    def close(self) -> None:
        self.done.append(("close", self.clock.now_ns))

    def lost(self) -> int:
        lost, self.lost_now = self.lost_now, 0
        return lost

    def blocks(self) -> Iterator[memoryview]:
        while self.waiting:
            yield memoryview(self.waiting.pop(0))


class FakeTaps:
    """Has one tap, which is asked by hand what it has heard."""

    def __init__(self, tap: FakeTap) -> None:
        self.tap = lambda link, snap_bytes, ready: tap
        self.flush = lambda: None
        self.clocks = both_clocks


class Stage:
    """Captures of one link on a loop whose clock moves only when somebody waits."""

    def __init__(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        most_bytes: int = 1 << 20,
        windows: tuple[CaptureWindow, ...] = WINDOWS,
    ) -> None:
        self.clock = FakeClock().install(monkeypatch)
        monkeypatch.setattr("time.time_ns", lambda: self.clock.now_ns + WALL_AHEAD_NS)
        self.tap = FakeTap(self.clock)
        self.recorder = Recorder(create_folder(tmp_path, "small"))
        self.loop = RealTimeLoop()
        wanted = LinkCapture(LINK, 160, most_bytes, windows)
        self.captures = Captures([wanted], cast(Taps, FakeTaps(self.tap)), self.loop, self.recorder)
        self.start_ns = self.clock.now_ns

    def until(self, seconds: float) -> None:
        self.loop.run_until(lambda: False, self.start_ns + round(seconds * S))

    def hears(self, packets: int) -> None:
        """A block has come; what the loop would do then."""
        self.tap.waiting.append(block([Passing(self.clock.now_ns, bytes(160))] * packets))
        self.captures._links[0].drain()

    def read(self) -> tuple[list[int], RawCapture]:
        """Times of the packets in the file, from the start, and the file."""
        raw = RawCapture(self.recorder.folder / "pcap" / "p0-t0-0_p0-t1-1.ring")
        return [each.t_ns - self.start_ns for each in raw], raw


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_a_tap_listens_in_its_windows_and_the_file_says_when(stage: Stage) -> None:
    stage.captures.schedule(stage.start_ns)
    stage.until(5)
    done = [(what, (t_ns - stage.start_ns) // S) for what, t_ns in stage.tap.done]
    assert done == [("listen", 1), ("mute", 2), ("listen", 3), ("mute", 4)]
    _, raw = stage.read()
    marks = [(mark.kind, (mark.t_ns - stage.start_ns) // S) for mark in raw.marks]
    assert marks == [(FrameKind.BEGIN, 1), (FrameKind.END, 2), (FrameKind.BEGIN, 3), (FrameKind.END, 4)]
    assert (raw.about.link, raw.about.port, raw.about.snap_bytes) == (LINK, "up1", 160)


def test_a_window_from_the_start_on_begins_at_once_and_without_a_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch, windows=(CaptureWindow(0, 2 * S),))
    stage.captures.schedule(stage.start_ns + S)
    assert stage.tap.done == [("listen", stage.start_ns)], "a second before the workload begins"
    stage.until(5)
    assert stage.tap.done[1:] == [("mute", stage.start_ns + 3 * S)]
    _, raw = stage.read()
    assert raw.late_ns == 0


def test_the_file_says_how_late_the_latest_window_began(stage: Stage) -> None:
    stage.captures.schedule(stage.start_ns)
    stage.until(0.5)
    stage.clock.now_ns = stage.start_ns + S + 94_000_000
    stage.until(5)
    _, raw = stage.read()
    assert raw.late_ns == 94_000_000
    assert [mark.kind for mark in raw.marks] == [FrameKind.BEGIN, FrameKind.END] * 2
    assert raw.marks[0].t_ns == stage.start_ns + S + 94_000_000


def test_a_capture_that_begins_with_a_fault_listens_before_it(stage: Stage) -> None:
    order: list[str] = []
    stage.tap.listen = lambda: order.append("listen")  # type: ignore[method-assign]
    stage.captures.schedule(stage.start_ns)
    stage.loop.at(stage.start_ns + 1 * S, lambda: order.append("fault"))
    stage.until(1.5)
    assert order == ["listen", "fault"]


def test_blocks_are_in_the_file_at_once_with_what_was_lost(stage: Stage) -> None:
    stage.captures.schedule(stage.start_ns)
    stage.until(1.5)
    stage.tap.lost_now = 4
    stage.hears(3)
    times, raw = stage.read()
    assert times == [1.5 * S] * 3
    assert raw.lost == 4


def test_a_file_has_its_size_and_nothing_is_taken_after_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch, most_bytes=2000)
    stage.captures.schedule(stage.start_ns)
    stage.until(1.5)
    for _ in range(5):
        stage.hears(3)
    stage.until(5)
    stage.captures.finish()
    times, raw = stage.read()
    assert len(times) == 6, "two blocks of 824 bytes beside the first line"
    assert raw.path.stat().st_size <= 2000 + 64
    assert [mark.kind for mark in raw.marks] == [FrameKind.BEGIN, FrameKind.FULL]
    assert [what for what, _ in stage.tap.done] == ["listen", "mute", "close"], "the second window does not begin"


def test_a_run_that_ends_in_a_window_keeps_what_was_still_in_the_ring(stage: Stage) -> None:
    stage.captures.schedule(stage.start_ns)
    stage.until(1.5)
    stage.tap.waiting.append(block([Passing(stage.clock.now_ns, bytes(160))]))
    stage.captures.finish()
    stage.captures.finish()
    times, raw = stage.read()
    assert len(times) == 1
    assert [mark.kind for mark in raw.marks] == [FrameKind.BEGIN, FrameKind.END]
    assert [what for what, _ in stage.tap.done] == ["listen", "mute", "close"]


def test_a_full_disk_ends_the_run_in_words(stage: Stage) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        stage.captures._links[0]._file = full
        with pytest.raises(RunError, match="No space left on device"):
            stage.captures._links[0].begin(stage.start_ns)


def test_both_clocks_are_of_one_moment() -> None:
    before, both, after = both_clocks(), both_clocks(), both_clocks()
    assert before.monotonic_ns <= both.monotonic_ns <= after.monotonic_ns
    offsets = [each.wall_ns - each.monotonic_ns for each in (before, both, after)]
    assert max(offsets) - min(offsets) < 50_000_000
