"""A test fails for one reason only: the program. When the machine was late, it is tried again, then *inconclusive*.

Two things tell that the machine was late: the program's own verdict (`raise Inconclusive`), and, for tests on the real
kernel, a failure during which the machine itself did not keep time (tests/lateness.py). Such a test is tried again up
to twice. The last try counts; if that was late too, nothing is known: the test is reported as inconclusive, in full
and counted in the closing line, and the suite does not fail for it. A failure on a machine that kept time is a failure
at once and is never tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.lateness import Lateness

ATTEMPTS = 3
_WATCHED = "emu"
"""Tests with this marker run on the real kernel; a late machine can spoil them."""
_SHOWN = {"retried": ("retried", "r", "RETRIED"), "inconclusive": ("inconclusive", "I", "INCONCLUSIVE")}
"""By outcome of a report: category in the closing line, letter, word."""
_WATCH = pytest.StashKey[Lateness]()


class Inconclusive(Exception):
    """The machine did not keep time, so that this attempt of a test says nothing about the program."""


class RetryPlugin:
    """Runs each test until it is conclusive, at most `ATTEMPTS` times."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Reports of attempts that another one follows are called `retried`."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for attempt in range(1, ATTEMPTS + 1):
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if hasattr(item.config, "workerinput"):
                reports = worth_sending(reports)
            again = attempt < ATTEMPTS and any(_outcome(each) == "inconclusive" for each in reports)
            for report in reports:
                if again and _outcome(report) == "inconclusive":
                    _name_outcome(report, "retried")
                hook.pytest_runtest_logreport(report=report)
            if not again:
                break
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """A test on the real kernel is watched from its set-up on."""
        if item.get_closest_marker(_WATCHED):
            _watch(item.config).begin()
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Tell a failure from an attempt that the machine spoiled."""
        report: Any = yield
        if call.excinfo is None or report.outcome != "failed":
            return report
        late = _why_late(item, call.excinfo.value)
        if late:
            _name_outcome(report, "inconclusive")
            report.sections.append(("machine", late))
            report.late = late
        return report

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """What progress shows of them; pytest's own letter for an outcome that it does not know is F."""
        return _SHOWN.get(_outcome(report))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say loudly which tests were tried again, and which are inconclusive, each with its reason."""
        for outcome, meaning in (
            ("retried", "tried again: the machine was late"),
            ("inconclusive", f"INCONCLUSIVE: the machine was late in each of {ATTEMPTS} attempts, nothing is known"),
        ):
            found = terminalreporter.stats.get(outcome, [])
            if found:
                terminalreporter.section(meaning)
            for report in found:
                terminalreporter.line(f"{report.nodeid}: {report.late}")


def worth_sending(reports: list[pytest.TestReport]) -> list[pytest.TestReport]:
    """What a worker of xdist reports of an attempt: a set-up or an end that passed says nothing but its seconds, which
    are added to the call's. Three reports of ten thousand tests cost as much as a hundred of them."""
    call = next((each for each in reports if each.when == "call"), None)
    if call is None:
        return reports
    quiet = [each for each in reports if each is not call and each.passed]
    call.duration += sum(each.duration for each in quiet)
    return [each for each in reports if each not in quiet]


def _outcome(report: pytest.TestReport) -> str:
    return str(report.outcome)


def _name_outcome(report: Any, outcome: str) -> None:
    """Pytest counts a report under any outcome; only `failed` fails the suite."""
    report.outcome = outcome


def _why_late(item: pytest.Item, error: BaseException) -> str:
    """Why this failure says nothing about the program; empty when it does."""
    if isinstance(error, Inconclusive):
        return str(error)
    if not item.get_closest_marker(_WATCHED) or item.get_closest_marker("makes_late"):
        return ""
    late = _watch(item.config).too_late()
    return f"{late}; seen as {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}" if late else ""


def _watch(config: pytest.Config) -> Lateness:
    if _WATCH not in config.stash:
        config.stash[_WATCH] = Lateness()
        config.add_cleanup(config.stash[_WATCH].close)
    return config.stash[_WATCH]
