"""What becomes of a test that the machine spoiled, and of one that the program fails."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests import lateness, retry
from tests.lateness import Lateness, StolenTime

pytest_plugins = "pytester"
CONFTEST = """
from tests.retry import RetryPlugin

def pytest_configure(config):
    config.pluginmanager.register(RetryPlugin(), "retry-when-late")
    config.addinivalue_line("markers", "emu: on the real kernel")
    config.addinivalue_line("markers", "makes_late: makes the machine late itself")
"""
COUNTING = """
import pytest
from tests.retry import Inconclusive
tries = []
"""


class Machine:
    """In place of the watch on the machine; `late` is what it says."""

    late = ""

    def begin(self) -> None:
        """Nothing."""

    def too_late(self) -> str:
        return self.late

    def close(self) -> None:
        """Nothing."""


@pytest.fixture
def tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    # The tests of this checkout are loaded already; pytester would load them again and lose what is patched here.
    monkeypatch.setattr(retry, "Lateness", Machine)
    monkeypatch.setattr(Machine, "late", "")
    pytester.makeconftest(CONFTEST)
    return pytester


def outcomes(tests: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    tests.makepyfile(COUNTING + text)
    return tests.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest", *options)


def test_an_attempt_that_the_machine_spoiled_is_made_again(tests: pytest.Pytester) -> None:
    ended = outcomes(
        tests,
        """
def test_it():
    tries.append(1)
    if len(tries) < 3:
        raise Inconclusive(f"timers 7 ms late in try {len(tries)}")
""",
    )
    assert ended.ret == 0
    assert ended.parseoutcomes() == {"passed": 1, "retried": 2}
    ended.stdout.fnmatch_lines(["*tried again: the machine was late*", "*::test_it: timers 7 ms late in try 1*"])


def test_late_in_each_attempt_is_inconclusive_and_not_a_failure(tests: pytest.Pytester) -> None:
    ended = outcomes(tests, "def test_it():\n    raise Inconclusive('timers 7 ms late')\n")
    assert ended.ret == 0
    assert ended.parseoutcomes() == {"inconclusive": 1, "retried": retry.ATTEMPTS - 1}
    ended.stdout.fnmatch_lines(
        ["*.py rrI *", "*INCONCLUSIVE: the machine was late*nothing is known*", "*::test_it: timers 7*"]
    )


def test_a_failure_on_a_machine_that_kept_time_fails_at_once(tests: pytest.Pytester) -> None:
    ended = outcomes(tests, "@pytest.mark.emu\ndef test_it():\n    tries.append(1)\n    assert len(tries) > 1\n")
    assert ended.ret == 1
    assert ended.parseoutcomes() == {"failed": 1}


def test_a_later_failure_on_time_fails_though_earlier_attempts_were_late(tests: pytest.Pytester) -> None:
    ended = outcomes(
        tests,
        """
def test_it():
    tries.append(1)
    if len(tries) == 1:
        raise Inconclusive("late")
    assert False
""",
    )
    assert ended.ret == 1
    assert ended.parseoutcomes() == {"failed": 1, "retried": 1}


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("@pytest.mark.emu", {"inconclusive": 1, "retried": 2}),
        ("", {"failed": 1}),
        ("@pytest.mark.emu\n@pytest.mark.makes_late", {"failed": 1}),
    ],
    ids=["on the kernel", "pure", "late by its own doing"],
)
def test_only_a_kernel_test_is_excused_by_a_late_machine(
    tests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, marks: str, expected: dict[str, int]
) -> None:
    monkeypatch.setattr(Machine, "late", "a timer of this machine was 90 ms late")
    ended = outcomes(tests, f"{marks}\ndef test_it():\n    assert 1 == 2\n")
    assert ended.parseoutcomes() == expected


def test_a_fixture_is_made_anew_for_each_attempt(tests: pytest.Pytester) -> None:
    ended = outcomes(
        tests,
        """
made, gone = [], []

@pytest.fixture
def thing():
    made.append(1)
    yield len(made)
    gone.append(1)

def test_it(thing):
    assert len(gone) == thing - 1
    if thing < 3:
        raise Inconclusive("late")
""",
    )
    assert ended.parseoutcomes() == {"passed": 1, "retried": 2}


def test_the_watch_sees_a_machine_that_stands_still_and_forgets_it() -> None:
    """The watching process itself is stopped, as a machine without time stops it."""
    watch = Lateness()
    try:
        watch._process.send_signal(19)
        time.sleep(10 * lateness.LATE_MS / 1000)
        watch._process.send_signal(18)
        stood_still_ms = watch.seen().worst_ms
        assert stood_still_ms > 9 * lateness.LATE_MS
        assert "ms late" in watch.too_late()
        watch.begin()
        assert watch.seen().worst_ms < stood_still_ms
    finally:
        watch.close()
    assert watch._process.returncode == 0


def test_stolen_time_is_that_of_the_worst_window() -> None:
    ticks = iter([(0, 0), (400, 8), (800, 48), (1200, 52), (1210, 62)])
    stolen = StolenTime(lambda: next(ticks))
    begun_ns = time.monotonic_ns()
    for at_s in (1, 2.5, 3, 5, 7.5):
        stolen.look(begun_ns + int(at_s * 1e9))
    assert stolen.take(begun_ns + int(7.6e9)) == pytest.approx(0.1), "and 0.1 s are no window"
    assert stolen.take(begun_ns + int(8.5e9)) == 1


@pytest.mark.parametrize(
    ("outcomes_of_three", "sent"),
    [
        (("passed", "passed", "passed"), [("call", 6.0)]),
        (("passed", "failed", "passed"), [("call", 6.0)]),
        (("passed", "passed", "failed"), [("call", 3.0), ("teardown", 3.0)]),
        (("failed", None, "passed"), [("setup", 1.0), ("teardown", 3.0)]),
        (("skipped", None, "passed"), [("setup", 1.0), ("teardown", 3.0)]),
    ],
)
def test_a_worker_sends_what_says_something_and_all_seconds(
    outcomes_of_three: tuple[Any, ...], sent: list[tuple[str, float]]
) -> None:
    phases: list[Any] = ["setup", "call", "teardown"]
    reports = [
        pytest.TestReport("a.py::b", ("a.py", 1, "b"), {}, outcome, None, when, duration=seconds)
        for seconds, when, outcome in zip((1.0, 2.0, 3.0), phases, outcomes_of_three, strict=True)
        if outcome
    ]
    assert [(each.when, each.duration) for each in retry.worth_sending(reports)] == sent
