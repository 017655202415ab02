"""A program of the user that hears and says lines: each whole, in its time, and gone with what it has started."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import pytest

from mrc_testbed.testbed.launcher.line_program import LineProgram

Started = Callable[[str], LineProgram]


@pytest.fixture
def started() -> Iterator[Started]:
    programs: list[LineProgram] = []

    def start(text: str) -> LineProgram:
        programs.append(LineProgram((sys.executable, "-c", text), None))
        return programs[-1]

    yield start
    for program in programs:
        program.end()


def soon() -> float:
    return time.monotonic() + 30


def heard(program: LineProgram, most_bytes: int = 100, within_s: float = 30) -> bytes:
    return program.hear(time.monotonic() + within_s, most_bytes)


def test_lines_go_both_ways_and_the_last_may_lack_its_end(started: Started) -> None:
    program = started("print('a\\nb', flush=True); print(input() * 2, end='')")
    assert [heard(program), heard(program)] == [b"a\n", b"b\n"]
    program.say("xy", soon())
    assert [heard(program), heard(program)] == [b"xyxy", b""]
    assert program.wait() == 0


def test_a_line_that_is_too_long_has_no_end(started: Started) -> None:
    line = heard(started("print('x' * 100_000, flush=True); input()"), most_bytes=50)
    assert len(line) > 50
    assert not line.endswith(b"\n")


def test_what_does_not_come_in_time_is_told(started: Started) -> None:
    program = started("input(); input(); import time; time.sleep(600)")
    with pytest.raises(TimeoutError):
        heard(program, within_s=0.1)
    program.say("1", soon())
    program.say("2", soon())
    with pytest.raises(TimeoutError):
        program.wait(0.1)


def test_what_has_ended_hears_nothing(started: Started) -> None:
    program = started("import os; os._exit(3)")
    assert heard(program) == b""
    assert program.wait() == 3


def test_what_it_does_not_take_in_time_is_told(started: Started) -> None:
    program = started("import time; time.sleep(600)")
    with pytest.raises(TimeoutError):
        program.say("x" * (1 << 20), time.monotonic() + 0.2)


def test_what_cannot_be_started_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        LineProgram(("/nowhere",), None)
