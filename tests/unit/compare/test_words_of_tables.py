"""Bounds, both worlds and two sequences in a terminal, line by line."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from mrc_testbed.testbed.compare import bounds_table, worlds_table
from mrc_testbed.testbed.compare.bounds import BoundRow, BoundsOf, Room
from mrc_testbed.testbed.compare.comparison import DIFFERENCE, RATIO, ComparisonCell, ComparisonRow
from mrc_testbed.testbed.compare.determinism import DeterminismCheck
from mrc_testbed.testbed.compare.figures import FIGURES
from mrc_testbed.testbed.compare.sequence import Apart, ChapterDiff, SequenceDiff
from mrc_testbed.testbed.compare.sequence_words import chapter_lines, gravest_first, sequence_lines
from mrc_testbed.testbed.compare.statistics import Estimate
from mrc_testbed.testbed.compare.table import WIDTH
from mrc_testbed.testbed.compare.tolerances import TOLERANCES
from mrc_testbed.testbed.compare.words import TIMES
from mrc_testbed.testbed.compare.worlds import Agreement, Reads, WorldRow
from tests.unit.compare.drawn import STEP, TRIMS, one_run


def shown(show: Callable[[Console], None], width: int = WIDTH) -> list[str]:
    """The lines of a console, with marks."""
    nowhere = io.StringIO()
    console = Console(width=width, color_system="standard", force_terminal=True, file=nowhere, record=True)
    show(console)
    assert console.width == max(width, WIDTH)
    return [line.rstrip() for line in marked_text(console) if line.strip("\N{BOX DRAWINGS LIGHT HORIZONTAL} ")]


def marked_text(console: Console) -> list[str]:
    """The printed lines, `r<text>` where it is red."""
    parts = []
    for text, style, _ in console._record_buffer:
        words = str(style or "none").replace("bold ", "")
        lines = text.split("\n")
        marks = [line if words in ("none", "") or not line.strip() else f"{words[0]}<{line}>" for line in lines]
        parts.append("\n".join(marks))
    return "".join(parts).replace(TIMES, "x").split("\n")


SEEN = (1.0, 2.5, 1.25, 2.0, 1.5)
ROWS = (
    BoundRow("step_time.p100 <= 2 s", "<=", "s", 2.0, SEEN, 2, Room.TIGHT, 1, True, 0.456, 5.1234),
    BoundRow("goodput_back.p100 <= 3 s", "<=", "s", 3.0, SEEN, 0, Room.OPEN, 3),
    BoundRow("recovery.p50 <= 9 ms", "<=", "", None, (), 0, Room.OPEN, 5),
    BoundRow("nacks <= 3", "<=", "", 3.0, (1.0, 2.0), 0, Room.TOO_FEW),
    BoundRow("timeouts == 0", "==", "", 0.0, (0.0,) * 5, 0, Room.EXACT, decides=False),
    BoundRow("trims <= 3", "<=", "", 3.0, (0.0,) * 5, 0, Room.ALIKE),
    BoundRow("marks <= 90", "<=", "", 90.0, SEEN, 0, Room.ENOUGH, 0, True, 12.34, 7.0),
    BoundRow("drops <= 2", "<=", "", 2.0, SEEN, 1, Room.TIGHT, 0, False, 0.4, 5.0),
)


def test_bounds_on_a_terminal() -> None:
    found = BoundsOf("small", 5, 2, ROWS, 3)
    assert shown(lambda console: bounds_table.show_bounds(found, 0.001, console)) == BOUNDS.splitlines()


def test_a_scenario_without_bounds_is_a_line() -> None:
    bare = BoundsOf("small", 1, 0, ())
    assert shown(lambda console: bounds_table.show_bounds(bare, 0.05, console), 120) == ["b<small: 1 run>"]
    wide = shown(lambda console: bounds_table.show_bounds(BoundsOf("a", 5, 0, ROWS[:1]), 0.05, console))
    assert "once in 20" in wide[1]


def test_a_long_expectation_is_folded_and_its_room_is_not() -> None:
    row = replace(ROWS[0], name=f"step_time.p100 {'of each host ' * 9}<= 2 s")
    lines = shown(lambda console: bounds_table.show_bounds(BoundsOf("small", 5, 0, (row,)), 0.001, console))
    assert sum("r<tight, missed by 2, open in 1>" in line for line in lines) == 1
    assert len(lines) > 4
    assert [
        sum(word in line for line in lines) for word in ("once in 1000", "to the bound", "1 to 2.5 s", "5.12 s")
    ] == [1] * 4


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "0 bounds"),
        ([BoundsOf("a", 5, 0, ROWS[:1])], "1 bound: 1 tight"),
        (
            [BoundsOf("a", 5, 0, ROWS[:4]), BoundsOf("b", 5, 0, ROWS[6:])],
            "6 bounds: 2 tight, 2 open in some run, 1 too few runs, 1 enough",
        ),
    ],
)
def test_bounds_are_counted_by_their_room(found: list[BoundsOf], said: str) -> None:
    assert bounds_table.totals(found) == said


def world_row(key: str, kind: str, reads: Reads, kernel: float, virtual: float | None, estimate: Any) -> WorldRow:
    figure = next(one for one in FIGURES if one.key == key)
    cells = (
        ComparisonCell((kernel,), 1, kernel),
        ComparisonCell((), 1) if virtual is None else ComparisonCell((virtual,), 1, virtual, estimate),
    )
    return WorldRow(ComparisonRow(figure, kind, cells), *cells, TOLERANCES[key], 5e7, reads)


def agreement_of(*rows: WorldRow, why: str = "", zero: tuple[str, ...] = ()) -> Agreement:
    run = one_run({"k": "1"}, 1, {})
    return Agreement("small [rtt=20ms]", (run,), (run,), rows, zero, why)


AGREES = world_row(STEP, RATIO, Reads.AGREES, 1e9, 1.02e9, Estimate(1.02))
DIFFERS = world_row(TRIMS, DIFFERENCE, Reads.DIFFERS, 3.0, 40.0, Estimate(37.0))
LACKING = world_row("timeouts", DIFFERENCE, Reads.UNKNOWN, 3.0, None, None)


def test_worlds_on_a_terminal() -> None:
    found = agreement_of(AGREES, DIFFERS, LACKING, zero=("QP errors", "marks"))
    assert shown(lambda console: worlds_table.show_agreement(found, console)) == WORLDS.splitlines()
    fine = agreement_of(AGREES)
    assert shown(lambda console: worlds_table.show_agreement(fine, console))[-1] == "g<small [rtt=20ms]: agrees>"
    unknown = agreement_of(why="virtual: it was not run")
    assert shown(lambda console: worlds_table.show_agreement(unknown, console), 130) == [
        "y<small [rtt=20ms]: not known: virtual: it was not run>"
    ]


@pytest.mark.parametrize(
    ("agreements", "said"),
    [
        ([agreement_of(AGREES)], "1 scenario: 1 agrees; the worlds: agrees"),
        (
            [agreement_of(AGREES), agreement_of(DIFFERS), agreement_of(AGREES), agreement_of(why="x")],
            "4 scenarios: 2 agrees, 1 differs, 1 not known; the worlds: differs",
        ),
    ],
)
def test_scenarios_are_counted_by_what_comes_of_them(agreements: list[Agreement], said: str) -> None:
    assert worlds_table.totals(agreements) == said


def chapter(name: str, **differences: Any) -> ChapterDiff:
    usual: dict[str, Any] = dict.fromkeys(("only_first", "only_second", "moved", "shuffled", "apart"), ())
    return ChapterDiff(name, **{"title": "link-down x", "both": 3, **usual, **differences})


SAME = chapter("same", shuffled=("a", "b"))
LATER = chapter("later", apart=(Apart("path back", 739_000_000, 157_000_000, True),))
MOVED = chapter("moved", title="", moved=("a", "b"))
FIRST, SECOND = chapter("first", only_first=tuple("abcdefgh")), chapter("second", only_second=("c",))


def test_the_gravest_difference_comes_first() -> None:
    chapters = [SAME, LATER, MOVED, FIRST, SECOND]
    assert [one.name for one in gravest_first(chapters)] == ["first", "second", "moved", "later", "same"]
    assert [one.name for one in gravest_first(chapters[::-1])] == ["second", "first", "moved", "later", "same"]
    assert [one.same for one in chapters] == [True, False, False, False, False]


def test_two_sequences_in_lines() -> None:
    certain = (DeterminismCheck("work", False, "8 and 7 steps"), DeterminismCheck("schedule", True, "the same 1"))
    diff = SequenceDiff(certain, (SAME, LATER, MOVED, FIRST, SECOND), 50_000_000)
    *lines, last = sequence_lines(diff)
    assert lines == SEQUENCES.splitlines()
    assert last.startswith("1 of 5 occurrences the same; 15 events in both runs; 2 in another order within a burst (")
    quiet = SequenceDiff((), (chapter("same"),), 50_000_000)
    assert list(sequence_lines(quiet)) == [
        "1 of 1 occurrences the same; 3 events in both runs (times within 50 ms or 25 % count as the same)"
    ]


def test_of_many_some_are_named() -> None:
    assert list(chapter_lines(chapter("six", moved=tuple("abcdef")))) == ["in another order: a, b, c, d, e, f"]
    both = chapter("both", only_first=("a",), only_second=("b",))
    assert list(chapter_lines(both)) == ["only in the first run: a", "only in the second run: b"]


BOUNDS = """\
b<small: 5 runs, 2 more not believed, 3 more the same again in virtual time>
                                        b<  deviations>   b<once in 1000>
b<expectation             >   b<  observed>   b<to the bound>   b< runs beyond>   b<room                          >
step_time.p100 <= 2 s      1 to 2.5 s           0.46         5.12 s   r<tight, missed by 2, open in 1 >
goodput_back.p100 <= 3 s   1 to 2.5 s              -              -   y<open in 3                     >
recovery.p50 <= 9 ms                -              -              -   y<open in 5                     >
nacks <= 3                     1 to 2              -              -   y<too few runs                  >
timeouts == 0                       0              -              -   exact, has no say
trims <= 3                          0              -              -   all alike
marks <= 90                  1 to 2.5             12              7   g<enough                        >
drops <= 2                   1 to 2.5            0.4              5   tight, missed by 1, has no say
"""
WORLDS = """\
b<figure            >   b<kernel>   b<virtual>   b<difference>   b<tolerance         >
step, clean median      1 s    1.02 s       x1.020   5 %, 4 ms            g<agrees   >
trims                     3        40          +37   2 times, 3 sqrt(n)   r<differs  >
timeouts                  3         -            -   3 sqrt(n)            y<not known>
0 in both worlds: QP errors, marks
r<small [rtt=20ms]: differs: trims>
"""
SEQUENCES = """\
NOT the same, although the seed decides it: work: 8 and 7 steps
first (link-down x): only in the first run: a, b, c, d, e, f and 2 more
second (link-down x): only in the second run: c
moved: in another order: a, b
later (link-down x): at another time: path back 739 ms and 157 ms after the heal
the same, as the seed decides it: schedule (the same 1)
"""
