"""A run that is over, to be asked for figures in the words of the expectation language (docs/scenario.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.compare import check_expectation
from mrc_testbed.testbed.checks.figure import ask, figure_context
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.expect import ExpectError, parse_expectation, with_metrics
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.scenario.rules.expect_rules import require_figure

T = TypeVar("T")


class Unknown(AssertionError):
    """A figure that cannot be given or believed. It fails a test: unknown is never pass."""


class MeasuredFigure(float):
    """A figure of a run, with its unit."""

    unit: str

    def __new__(cls, value: float, unit: str) -> MeasuredFigure:
        """`value` in `unit`."""
        made = super().__new__(cls, value)
        made.unit = unit
        return made

    def __repr__(self) -> str:
        return f"{float(self):g} {self.unit}".rstrip()

    __str__ = __repr__


class FinishedRun:
    """What one run came to. Made of the outcome of run_scenario; its folder is read when a figure is asked for."""

    def __init__(self, outcome: RunOutcome) -> None:
        if outcome.verdict is None or outcome.folder is None:
            raise ValueError(f"the run has no verdict: {outcome.error}")
        self.folder: Path = outcome.folder
        self.judged: Verdict = outcome.verdict
        self.headline = outcome.headline
        self.seconds = outcome.seconds

    def __repr__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"<{self.verdict} {self.judged.scenario}, {self.headline}, {self.folder}{reason}>"

    @property
    def verdict(self) -> str:
        """`pass`, `fail` or `inconclusive`."""
        return self.judged.status.value

    @property
    def passed(self) -> bool:
        """All that the scenario expects held, and the machine kept time."""
        return self.judged.status is Status.PASS

    @property
    def reason(self) -> str:
        """Why it did not pass, in one line, with the place of the expectation in the scenario's file."""
        return self.judged.reason

    @cached_property
    def record(self) -> RunRecord:
        """Everything that the run left."""
        return load_record(self.folder)

    def metric(self, text: str, unit: str | None = None) -> MeasuredFigure:
        """A figure, as in `step_time.p100 during reboot`: an expectation without its comparison.

        In seconds, bytes, bytes per second or a plain number, or in `unit`, which is one that the bound of an
        expectation may have, such as `rtt`. Raises ValueError for a text that is none, Unknown for a figure that the
        run cannot give.
        """
        __tracebackhide__ = True  # pytest then shows the test's own line
        found = self._asked(lambda: ask(self.record, text, unit))
        self._believe(text)
        if found.value is None:
            raise Unknown(f"{text}: {found.why}; see {self.folder}")
        return MeasuredFigure(found.value, found.unit)

    def check(self, text: str) -> CheckResult:
        """Hold an expectation against the run. Raises AssertionError when it does not hold, ValueError as `metric`."""
        __tracebackhide__ = True
        try:
            with with_metrics(self.record.scenario.metrics):
                wanted = parse_expectation(text)
        except ExpectError as error:
            raise ValueError(f"{text}: {error}") from None
        self._asked(lambda: require_figure(wanted.figure, figure_context(self.record), text))
        self._believe(text)
        try:
            found = check_expectation(self.record, wanted)
        except NoData as error:
            raise Unknown(f"{text}: {error}; see {self.folder}") from None
        if found.status is not Status.PASS:
            unit = f" {found.unit}" if found.unit else ""
            why = f" ({found.why})" if found.why else ""
            raise AssertionError(f"{text}: observed {found.observed:g}{unit}{why}; see {self.folder}")
        return found

    @staticmethod
    def _asked(question: Callable[[], T]) -> T:
        """The answer. What is wrong with the question is raised as if it had been found in the caller's own line."""
        __tracebackhide__ = True
        try:
            return question()
        except (ScenarioError, ValueError) as error:
            raise error.with_traceback(None) from None

    def _believe(self, text: str) -> None:
        """Raises Unknown where no figure of the run is believed."""
        __tracebackhide__ = True
        if not self.judged.fidelity.ok:
            raise Unknown(f"{text}: {causes_of_machine(self.judged.fidelity)[0]}; see {self.folder}")
