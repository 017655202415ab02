"""A run in virtual time that is watched: drawn by the clock of people, and broken by hand at a moment of its own."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.live.live import Live
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.rundir.planned import recorded_scenario
from mrc_testbed.testbed.runner.interactive import FaultRequest, InteractiveFaults, Refused
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.progress import Progress
from mrc_testbed.testbed.runner.virtual_loop import VirtualLoop
from mrc_testbed.testbed.scenario import Scenario, load_scenario
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from tests.unit.virtual.test_run import SMALL, WITH_FIGURES, content, folder_of, quiet

LINK = "p1-t0-0:p1-t1-3"


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Hand:
    """Cuts a link as soon as the workload runs. `frames`: what it was shown."""

    interactive = True

    def __init__(self, ours: socket.socket) -> None:
        self.frames: list[Mapping[str, Any]] = []
        self.said = ""
        self._ours = ours

    def begin(self, scenario: Scenario, options: FabricOptions) -> None:
        """Nothing is shown."""

    def end(self, outcome: RunOutcome) -> None:
        """Nothing is shown."""

    def screens(self) -> Sequence[Hand]:
        return [self]

    def feeds(self, *_: object) -> Sequence[Progress]:
        return ()

    def draw(self, frame: Mapping[str, Any]) -> None:
        self.frames.append(frame)

    def close(self) -> None:
        """Nothing is open."""

    def serve(self, loop: Loop, interactive: InteractiveFaults | None) -> None:
        assert interactive

        def readable() -> None:
            try:
                self.said = interactive.do(FaultRequest("cut", LINK, 300_000_000))
                loop.forget(self._ours)
            except Refused as error:
                self.said = str(error)

        loop.watch(self._ours, readable)


def test_a_fault_by_hand_is_recorded_and_its_replay_is_the_same_run(
    sockets: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    ours, theirs = sockets
    theirs.send(b"!")
    # Sockets are looked at every 50 ms of people's time: fewer steps are over before that.
    hand, scenario = Hand(ours), load_scenario(SMALL, ["world=virtual", "workload.0.train.steps=60"])
    folder = folder_of(run_scenario(scenario, tmp_path, True, quiet(), audience=hand))
    assert hand.said == f"hand-1: link-down {LINK} for 300ms"
    (by_hand,) = (one for one in load_record(folder).occurrences if one.fault == "hand-1")
    assert by_hand.end_ns - by_hand.begin_ns == 300_000_000
    assert {frame["fidelity"]["light"] for frame in hand.frames} == {"virtual"}
    assert hand.frames[-1]["phase"] == "tear down"
    again = folder_of(run_scenario(recorded_scenario(folder), tmp_path, True, quiet(), replays=folder))
    for name in WITH_FIGURES:
        assert content(again)[name] == content(folder)[name], name


def test_what_people_do_has_a_moment_of_its_own(sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    scheduler, seen = Scheduler(), []
    loop = VirtualLoop(scheduler)
    for t_ns in (5, 5, 6, 6, 7, 9):
        scheduler.at(t_ns, lambda: seen.append(scheduler.now_ns))
    theirs.send(b"!")

    def looked() -> None:
        seen.append(-scheduler.now_ns)
        loop.forget(ours)

    loop.watch(ours, looked)
    loop._until_look = 1
    loop.run_until(lambda: len(seen) == 7, 100)
    assert seen == [5, 5, 6, 6, 7, -8, 9]


def test_frames_are_drawn_by_the_clock_of_people() -> None:
    scenario, scheduler = load_scenario(SMALL, ["world=virtual"]), Scheduler()
    loop, screen = VirtualLoop(scheduler), Hand(socket.socket())
    live = Live(LiveModel(scenario, scenario.plan()), screen)
    live.attach(loop)
    loop.every(10**12, lambda: time.sleep(0.001), 0)
    loop.run_until(lambda: len(screen.frames) >= 3, 10**18)
    live.close()
    assert len(screen.frames) == 3
    assert scheduler.now_ns < 3 * 10**15, "a thousand seconds each millisecond, three frames of a fifth of a second"
