"""The live view on a terminal: what a person sees, and what is left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.faults.schedule import heal, inject
from mrc_testbed.testbed.live.choose import progress_for, terminal_of
from mrc_testbed.testbed.live.layout import EVERY_S, Layout
from mrc_testbed.testbed.live.live import SHARE, Live
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.live.planes import shares
from mrc_testbed.testbed.live.rows import ASCII, UNICODE, length
from mrc_testbed.testbed.live.terminal import Terminal
from mrc_testbed.testbed.live.tty import Tty, without_echo
from mrc_testbed.testbed.runner.events import (
    DaemonEvent,
    FaultDone,
    FlowsMoved,
    MachineSeen,
    Note,
    PhaseBegins,
    PortsSampled,
    RunEvent,
    StepsDone,
    WorkloadBegins,
)
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.progress import PlainLines
from mrc_testbed.testbed.scenario import Occurrence, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape
from tests.examples import examples
from tests.screens import FakeTerminal
from tests.unit.fakes import FakeClock

S = 1_000_000_000
SCENARIO = load_scenario_text("""
name: two-planes
about: |
  What it
  is about.
seed: 5
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit}
workload: [{train: {hosts: all, steps: 8, compute: 1s, allreduce: 1MiB}}]
""")
PLAN = build_plan(SCENARIO.shape())
LINK = "p0-t0-0:p0-t1-1"
CUT = Occurrence("cut", 0, KINDS["link-down"], (LINK,), S, 9 * S, (LINK,))
GREY = Occurrence("grey", 0, KINDS["switch-silent"], ("p1-t1-0",), S, 9 * S, ("p1-t0-0:p1-t1-0", "p1-t0-1:p1-t1-0"))


def said(host: str, event: str, **fields: Any) -> DaemonEvent:
    return DaemonEvent(host, {"event": event, "t_ns": S, **fields})


def bad(host: str, peer: str, plane: int, uplink: int) -> DaemonEvent:
    fields = {"peer": peer, "plane": plane, "uplink": uplink}
    return said(host, "ev_state", **fields, **{"from": "GOOD", "to": "ASSUMED_BAD"})


def samples(at_ns: int, share: float) -> PortsSampled:
    """Every port has sent this share of its rate since 0."""
    sent = round(at_ns * 12_500_000 / 8e9 * share)
    ends = [end for link in PLAN.links for end in (link.near, link.far)]
    return PortsSampled(at_ns, [(end.node, end.name, 0, 0, 0, sent, 0, 0) for end in ends])


def told(*more: Any) -> dict[str, Any]:
    """A frame of a run in which a link is cut and a switch is silent."""
    model = LiveModel(SCENARIO, PLAN)
    for event in (PhaseBegins("run"), WorkloadBegins(0), samples(0, 0), samples(S // 5, 0.6), *more):
        model.publish(event)
    return {**model.frame(25 * S // 10), "every_s": EVERY_S}


BROKEN = (
    FaultDone(inject(CUT), S - 1),
    FaultDone(inject(GREY), S - 1),
    bad("h1", "h2", 0, 1),
    bad("h2", "h1", 0, 1),
    said("h0", "port_state", peer=None, plane=1, state="DOWN"),
    StepsDone(2, 8, 1.04, 1.26),
)


@pytest.fixture
def terminals() -> Iterator[Any]:
    made: list[FakeTerminal] = []

    def make(*args: Any, **kwargs: Any) -> FakeTerminal:
        made.append(FakeTerminal(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.close()


def view(terminal: FakeTerminal) -> Terminal:
    return Terminal(terminal.console, PLAN, Tty(terminal.file))


def test_what_a_person_sees_on_a_small_terminal(terminals: Any) -> None:
    terminal = terminals(80, 24)
    view(terminal).draw(told(*BROKEN))
    assert terminal.rows == [
        "two-planes  seed 5  2.5 s  running                    ● machine not measured yet",
        "━━━━━───────────────  step 2/8  last 1.04 s  worst 1.26 s",
        "",
        "       plane 0                    60% plane 1                    60%",
        "ports   ▅▅ ▅▅                          ✕▅ ▅▅",
        f"t1-0   ▅▅ {27 * '■'} ✕✕?{27 * '■'}",
        f"t1-1   ✕▅ {14 * '■'}{13 * '✕'} ▅▅ {27 * '■'}",
        f"local     {27 * '■'}    {27 * '■'}",
        "Mb/s   0 in all  h0 0  h1 0  h2 0  h3 0",
        "",
        "   1.0  fault  cut: link-down p0-t0-0:p0-t1-1",
        "   1.0  fault  grey: switch-silent p1-t1-0",
        "   1.0           2 EVs of p0-t1-1 retired by 2 hosts",
        "   1.0           port 1 of h0 down",
        *[""] * 8,
        "▁█ load  ✕ down  ≈ lossy  ∿ slow   EVs: ■ good  ▒ skip  ✕ bad  ○ denied",
    ]


def test_a_wide_terminal_has_the_events_at_the_side(terminals: Any) -> None:
    terminal = terminals(160, 40)
    view(terminal).draw(told(*BROKEN))
    titles = terminal.rows[3]
    assert titles.startswith("       plane 0 ")
    assert titles.endswith("   1.0  fault  cut: link-down p0-t0-0:p0-t1-1")


def test_before_the_workload_the_phase_is_told(terminals: Any) -> None:
    terminal = terminals(80, 24)
    model = LiveModel(SCENARIO, PLAN)
    model.publish(PhaseBegins("warm up"))
    view(terminal).draw({**model.frame(S), "every_s": EVERY_S})
    assert terminal.rows[0].startswith("two-planes  seed 5  probing every path")
    assert terminal.rows[1] == "What it is about."


def test_a_slow_machine_is_told_so(terminals: Any) -> None:
    terminal = terminals(80, 24)
    view(terminal).draw({**told(*BROKEN), "every_s": 1.25})
    assert terminal.rows[1].endswith("drawn every 1.2 s")


def test_the_light_has_a_word_beside_its_colour(terminals: Any) -> None:
    terminal = terminals(120, 24)
    figures = {"cpu_pressure_some": 0.8, "softnet_drops": 0}
    view(terminal).draw(told(MachineSeen(figures)))
    assert terminal.rows[0].endswith("● machine too slow")
    assert terminal.rows[2].endswith("CPU pressure: observed 80 %, expected <= 75 %")


def test_only_rows_that_changed_are_written(terminals: Any) -> None:
    terminal = terminals()
    shown = view(terminal)
    shown.draw(told())
    terminal.read()
    shown.draw(told())
    assert terminal.read() == b""
    shown.draw(told(FaultDone(inject(CUT), S)))
    changed = terminal.read().decode()
    assert "link-down" in changed
    assert "plane 0" not in changed
    assert terminal.rows[10] == "   1.0  fault  cut: link-down p0-t0-0:p0-t1-1"


def test_what_stood_there_before_is_there_afterwards_and_the_summary_follows(terminals: Any) -> None:
    terminal = terminals(80, 24)
    print(*(f"before {number}" for number in range(20)), sep="\n", file=terminal.file, flush=True)
    shown = view(terminal)
    for more in ((), BROKEN):
        shown.draw(told(*more))
    assert terminal.rows[-1].startswith("▁█ load")
    shown.close()
    print("verdict pass", file=terminal.file, flush=True)
    assert terminal.rows == ["verdict pass"]
    assert terminal.above == [f"before {number}" for number in range(20)]


def test_a_window_that_is_pulled_is_drawn_anew(terminals: Any) -> None:
    terminal = terminals(160, 40)
    shown = view(terminal)
    shown.draw(told(*BROKEN))
    for columns, rows in ((200, 50), (200, 30), (90, 30)):
        terminal.resize(columns, rows)
        shown.draw(told(*BROKEN))
        screen = terminal.rows
        assert [row for row in screen if row.startswith("two-planes")] == screen[:1]
        assert len(screen) < rows
    shown.close()
    assert terminal.rows == []


def test_no_colour_is_no_escape_but_for_moves(terminals: Any) -> None:
    plain, coloured = terminals(colors=None), terminals()
    for terminal in (plain, coloured):
        view(terminal).draw(told(*BROKEN))
    assert plain.rows == coloured.rows, "every state has a sign"
    assert b"m" not in [part[-1:] for part in plain.sent.split(b"\x1b[")[1:]]
    assert not any(b"\x1b[" + code in plain.sent for code in (b"1m", b"2m", b"31m", b"32m", b"36m"))
    assert b"\x1b[32m" in coloured.sent


@pytest.mark.parametrize("colors", ["standard", "256", "truecolor"])
def test_any_colour_terminal_shows_the_same(terminals: Any, colors: str) -> None:
    terminal, usual = terminals(colors=colors), terminals()
    for each in (terminal, usual):
        view(each).draw(told(*BROKEN))
    assert terminal.rows == usual.rows
    assert terminal.rows
    assert b"\x1b[32m" in terminal.sent


def test_a_terminal_without_unicode_gets_ascii(terminals: Any) -> None:
    terminal = terminals(encoding="ascii")
    view(terminal).draw(told(*BROKEN))
    assert terminal.sent.isascii()
    assert terminal.rows[6].startswith("t1-1   X4 ##############xxxxxxxxxxxxx")


def test_ctrl_c_throws_no_part_of_a_frame_away(terminals: Any) -> None:
    """A kernel drops what a terminal has not read yet when a key makes a signal, unless it is told not to."""
    terminal = terminals()
    frame = b"x" * 10_000  # some 4 kB have gone too far to be dropped
    with without_echo(terminal.file):
        os.write(terminal.file.fileno(), frame)
        terminal.type(b"\x03")
        give_up = time.monotonic() + 5
        while terminal.sent.count(b"x") < len(frame) and time.monotonic() < give_up:
            terminal.read()
    assert terminal.sent.count(b"x") == len(frame)


def test_a_terminal_that_takes_nothing_does_not_hold_the_run_up(terminals: Any) -> None:
    """Nobody reads: a write that waited would wait here for ever."""
    terminal = terminals()
    shown = view(terminal)
    for number in range(500):
        shown.draw(told(*BROKEN, StepsDone(number % 8 + 1, 8, number, number)))
    for _ in range(3):
        terminal.read()
        shown.draw(told(*BROKEN, StepsDone(8, 8, 7.5, 8.5)))
    assert terminal.rows[1].endswith("step 8/8  last 7.50 s  worst 8.50 s")
    assert len(terminal.rows) == 23


def test_a_window_that_was_closed_does_not_end_the_run(terminals: Any) -> None:
    terminal = terminals()
    shown = view(terminal)
    shown.draw(told())
    terminal.hang_up()
    shown.draw(told(*BROKEN))
    shown.close()


def rows_at(speed: int) -> list[str]:
    """Of a run of flows that is 3 s long at the usual speed, after a third of it, with a note at a twelfth."""
    text = "name: f\nworld: virtual\nworkload: [write: {from: h0, to: h4, for: 3s}]\n"
    scenario = load_scenario_text(f"{text}scale: {speed}\n" if speed > 1 else text)
    plan = build_plan(scenario.shape())
    model = LiveModel(scenario, plan)
    events: list[RunEvent] = [PhaseBegins("run"), WorkloadBegins(0), Note(S // 4 // speed, "note", "here")]
    for event in (*events, FlowsMoved(1 / speed, 3 / speed, (8e6,))):
        model.publish(event)
    frame = {**model.frame(S // speed), "every_s": EVERY_S}
    return ["".join(part.text for part in row) for row in Layout(plan, UNICODE, 100, 40).rows(frame)]


@pytest.mark.parametrize(
    ("speed", "progress", "moment"),
    [(1, " 1/3 s", "0.2  "), (100, " 10/30 ms", "2.50 ms  "), (4000, " 250/750 us", "63 us")],
)
def test_times_have_units_that_suit_the_speed(speed: int, progress: str, moment: str) -> None:
    rows = rows_at(speed)
    assert any(progress in row for row in rows)
    (note,) = (row for row in rows if row.endswith("here"))
    assert note.lstrip().startswith(moment)


SHAPES = st.builds(
    lambda planes, groups, t1, hosts: clos2_shape(planes, groups, t1, hosts, 12_500_000, 1_000_000),
    st.integers(1, 16),
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(2, 20),
)


def frame_of(plan: Plan) -> dict[str, Any]:
    t0s, t1s = plan.shape.family.tiers
    below = len(plan.shape.family.below[0])
    text = f"""
name: drawn
fabric: {{planes: {plan.shape.planes}, t0_groups: {t0s}, t1: {t1s}, hosts_per_t0: {below}}}
workload: [{{sendrecv: {{size: 1MiB, iterations: 2}}}}]
"""
    model = LiveModel(load_scenario_text(text), plan)
    model.publish(PhaseBegins("run"))
    return {**model.frame(S), "every_s": EVERY_S}


@settings(deadline=None, max_examples=examples(60))
@given(SHAPES, st.integers(10, 240), st.integers(3, 70), st.sampled_from([UNICODE, ASCII]))
def test_whatever_the_fabric_it_fits_into_the_terminal(shape: Shape, columns: int, rows: int, signs: Any) -> None:
    plan = build_plan(shape)
    found = Layout(plan, signs, columns, rows).rows(frame_of(plan))
    assert 0 < len(found) < rows
    assert max(map(length, found)) <= columns


@given(st.lists(st.integers(0, 300), min_size=4, max_size=4).filter(any), st.integers(4, 40))
def test_a_bar_shows_whatever_is_there_at_all(counts: list[int], cells: int) -> None:
    numbers = shares(tuple(counts), cells)
    assert sum(numbers) == cells
    assert [number > 0 for number in numbers] == [count > 0 for count in counts]


class Drawn:
    """A screen whose frames cost CPU time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost_ns: int) -> None:
        self.clock = FakeClock().install(monkeypatch)
        self.frames: list[Any] = []
        self.closed = False
        self._cpu_ns = 0
        self._cost_ns = cost_ns
        monkeypatch.setattr("time.thread_time_ns", lambda: self._cpu_ns)

    def draw(self, frame: Any) -> None:
        self._cpu_ns += self._cost_ns
        self.frames.append(frame)

    def close(self) -> None:
        self.closed = True


def test_frames_are_drawn_at_each_phase_and_five_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, loop = Drawn(monkeypatch, 1_000_000), RealTimeLoop()
    live = Live(LiveModel(SCENARIO, PLAN), screen)
    live.publish(PhaseBegins("build"))
    assert [frame["phase"] for frame in screen.frames] == ["build"], "there is no loop yet"
    live.attach(loop)
    loop.run_until(lambda: False, screen.clock.now_ns + 2 * S + 1)
    assert len(screen.frames) == 11
    live.close()
    assert screen.closed


def test_frames_that_are_dear_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, loop = Drawn(monkeypatch, 20_000_000), RealTimeLoop()
    Live(LiveModel(SCENARIO, PLAN), screen).attach(loop)
    loop.run_until(lambda: False, screen.clock.now_ns + 100 * S)
    last = screen.frames[-1]["every_s"]
    assert last == pytest.approx(0.02 / SHARE, rel=0.01)
    assert 95 <= len(screen.frames) <= 115


def test_where_there_is_no_terminal_lines_are_told(terminals: Any) -> None:
    terminal = terminals()
    with terminal_of(terminal.console, quiet=False) as tty:
        assert tty is None, "this process is not in the foreground of that terminal"
    progress = progress_for(SCENARIO, terminal.console, False, None)
    assert isinstance(progress, PlainLines)
    for event in (PhaseBegins("build"), FaultDone(heal(CUT), S)):
        progress.publish(event)
    progress.close()
    assert [row[10:] for row in terminal.rows] == ["build", "heal   cut: link-down p0-t0-0:p0-t1-1"]


WHO = [(False, "xterm", True), (True, "xterm", False), (False, "dumb", False)]


@pytest.mark.parametrize(("quiet", "term", "drawn"), WHO)
def test_who_gets_a_live_view(
    terminals: Any, monkeypatch: pytest.MonkeyPatch, quiet: bool, term: str, drawn: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    terminal = terminals()
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
    echo = [terminal.echoes]
    with terminal_of(terminal.console, quiet) as tty:
        echo.append(terminal.echoes)
        assert (tty is not None) is drawn
        progress = progress_for(SCENARIO, terminal.console, quiet, tty)
        progress.publish(PhaseBegins("build"))
        seen = terminal.rows
        progress.close()
    echo.append(terminal.echoes)
    assert bool(seen) is not quiet
    assert any("plane 1" in row for row in seen) is drawn
    assert echo == [True, not drawn, True], "keys do not disturb what is drawn"
    if drawn:
        assert terminal.rows == []
