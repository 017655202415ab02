from __future__ import annotations

import io
import os
import sys
import time

import pytest
from rich.console import Console

from mrc_testbed.testbed.faults.schedule import inject
from mrc_testbed.testbed.live.choose import progress_for
from mrc_testbed.testbed.report.console import LOG_WIDTH, PatientConsole, open_console
from mrc_testbed.testbed.runner.events import FaultDone, Note, PhaseBegins, StepsDone, WorkloadBegins
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.progress import PlainLines, ProgressGroup, Silent, TimeLeft
from mrc_testbed.testbed.scenario import Occurrence, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS
from tests.unit.fakes import FakeClock

CUT = FaultDone(inject(Occurrence("cut", 0, KINDS["link-down"], ("h0:p0-t0-0",), 1, 2, ("h0:p0-t0-0",))), 1)

SCENARIO = load_scenario_text("""
name: small
fabric: {planes: 1, t0_groups: 1, t1: 1, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 1, compute: 1ms, allreduce: 64KiB}}]
""")


class Screen:
    """Where progress is shown, and the time that its lines begin with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr("time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("time.monotonic_ns", lambda: round(self.now_s * 1e9))
        self.out = io.StringIO()

    def console(self, terminal: bool) -> Console:
        return PatientConsole(file=self.out, force_terminal=terminal, width=90, highlight=False, color_system=None)

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    return Screen(monkeypatch)


@pytest.mark.parametrize(("quiet", "says"), [(True, False), (False, True)])
def test_quiet_says_nothing(screen: Screen, capfd: pytest.CaptureFixture[str], quiet: bool, says: bool) -> None:
    progress = progress_for(SCENARIO, screen.console(terminal=False), quiet, None)
    progress.attach(RealTimeLoop())
    for event in (PhaseBegins("build"), StepsDone(1, 1, 0.5, 0.5), CUT):
        progress.publish(event)
    progress.close()
    assert bool(screen.lines) is says
    assert capfd.readouterr() == ("", ""), "nothing goes past the console"


def test_all_who_listen_are_told(screen: Screen) -> None:
    both = ProgressGroup(
        Silent(), PlainLines(screen.console(terminal=False)), PlainLines(screen.console(terminal=False))
    )
    both.attach(RealTimeLoop())
    both.publish(PhaseBegins("build"))
    both.close()
    assert screen.lines == ["          build"] * 2


def test_a_file_gets_plain_lines_with_their_time(screen: Screen) -> None:
    progress = PlainLines(screen.console(terminal=False))
    progress.publish(PhaseBegins("build"))
    screen.now_s += 2
    progress.publish(PhaseBegins("run"))
    progress.publish(WorkloadBegins(round((screen.now_s + 0.2) * 1e9)))
    screen.now_s += 12.54
    progress.publish(CUT)
    progress.close()
    said = ["          build", "          run", "  12.3 s  inject cut: link-down h0:p0-t0-0"]
    assert screen.lines == said, "one clock: that of the scenario, the summary and the report"


def test_steps_are_told_every_few_seconds_and_the_last_one_always(screen: Screen) -> None:
    progress = PlainLines(screen.console(terminal=False))
    progress.publish(WorkloadBegins(round(screen.now_s * 1e9)))
    for done in range(1, 13):
        screen.now_s += 1
        progress.publish(StepsDone(done, 12, 0.87, 0.95))
    assert screen.lines == [
        "   5.0 s  step 5/12, last 0.87 s, worst 0.95 s",
        "  10.0 s  step 10/12, last 0.87 s, worst 0.95 s",
        "  12.0 s  step 12/12, last 0.87 s, worst 0.95 s",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_reason_is_shown_as_it_is_and_on_one_line(screen: Screen, terminal: bool) -> None:
    progress = PlainLines(screen.console(terminal))
    reason = "h0: QP 0>1 failed: [red] is no colour here [/nothing] " + "x" * 100
    progress.publish(Note(1, "qp", reason))
    progress.close()
    assert reason in screen.out.getvalue()


def test_output_to_a_file_has_a_fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert open_console().width == LOG_WIDTH


def test_a_reader_that_left_is_not_written_to_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w", buffering=1) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        console = open_console()
        assert isinstance(console, PatientConsole)
        console.print("nobody reads this")
        assert console.quiet
        pipe.write("and this goes nowhere\n")
        pipe.flush()


def test_the_fake_clock_moves_only_when_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock().install(monkeypatch)
    before = time.monotonic_ns()
    assert clock.select(0.25) == []
    assert time.monotonic_ns() - before == 250_000_000


@pytest.mark.parametrize(
    ("share", "took_s", "words"),
    [(0.25, 7, "25%, 21 s left"), (0.998, 10, "99%, 1 s left"), (0.1, 60, "10%, 9 min left"), (1, 10, "")],
)
def test_time_left_never_says_that_it_is_over(screen: Screen, share: float, took_s: float, words: str) -> None:
    """Nor is it wider than what 80 columns have room for beside the steps."""
    left = TimeLeft(1_000_000)
    left.begin(0)
    screen.now_s += took_s
    assert left.words(round(share * 1_000_000)) == words
