"""Outcomes of runs for tables and CI reports: tries, cases, and one exit code for all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.checks.cause import Cause
from mrc_testbed.testbed.checks.result import NOT_JUDGED
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.rundir.lines import Party
from mrc_testbed.testbed.scenario import Scenario, Setting, in_brackets

_GRAVEST_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.FAIL,
    ExitCode.MISSING,
    ExitCode.USAGE,
    ExitCode.INCONCLUSIVE,
    ExitCode.PASS,
)
"""One exit code for many runs (docs/ci.md). A fail is a finding and comes before what could not be determined; of that,
problems that somebody must fix (the machine, the command) come before those that another try may solve."""

WORDS = {
    ExitCode.PASS: "pass",
    ExitCode.FAIL: "fail",
    ExitCode.USAGE: "bad input",
    ExitCode.INCONCLUSIVE: "inconclusive",
    ExitCode.MISSING: "machine lacks something",
    ExitCode.INTERRUPTED: "interrupted",
}
"""Names of outcomes in tables and reports."""
NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of one run.

    `verdict` and `folder` are None if it could not begin; `error` then says why. `headline` is the figures of its
    verdict line; `base_rtt_ns` is None if no path answered in warm-up. `interrupted`: somebody did, whatever its
    verdict.
    """

    exit_code: ExitCode
    seconds: float
    verdict: Verdict | None = None
    folder: Path | None = None
    headline: str = ""
    base_rtt_ns: int | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""
    interrupted: bool = False

    @property
    def stopped(self) -> bool:
        """Somebody interrupted it, so nothing more begins."""
        return self.interrupted or self.exit_code is ExitCode.INTERRUPTED

    @property
    def worth_another_try(self) -> bool:
        """The machine spoiled it, and nobody stopped it."""
        return self.exit_code is ExitCode.INCONCLUSIVE and self.verdict is not None and self.verdict.spoiled

    @property
    def word(self) -> str:
        """Its verdict; of a run that was stopped or could not begin, what its exit code says."""
        if self.verdict and self.verdict.status in NOT_JUDGED and self.exit_code is ExitCode.PASS:
            return self.verdict.status.value
        return WORDS[self.exit_code]

    @property
    def reason(self) -> str:
        """Why it is not a pass, in one line; empty for a pass."""
        return self.verdict.reason if self.verdict else "".join(map(str, self.causes))

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Why it is not a pass, as data; of a run that could not begin, its error."""
        if self.verdict is not None:
            return self.verdict.causes
        who = Party.SCENARIO if self.exit_code is ExitCode.USAGE else Party.MACHINE
        return (Cause(who, self.error),) if self.error else ()


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario to be run, `number` of `repeat`; `tries` holds the results, the last one counts.

    `settings`: of its matrix cell, if any.
    """

    file: Path
    scenario: Scenario
    number: int
    repeat: int
    tries: tuple[RunOutcome, ...] = ()
    settings: tuple[Setting, ...] = ()

    @property
    def cell_name(self) -> str:
        """The scenario's name, with its cell."""
        return " ".join(filter(None, (self.scenario.name, in_brackets(self.settings))))

    @property
    def name(self) -> str:
        """The same, with a number if it is repeated."""
        return self.cell_name if self.repeat == 1 else f"{self.cell_name} #{self.number}"

    @property
    def outcome(self) -> RunOutcome | None:
        """The last try; None if it was never run."""
        return self.tries[-1] if self.tries else None

    @property
    def seconds(self) -> float:
        """Wall time of all tries together."""
        return sum(one.seconds for one in self.tries)

    @property
    def said(self) -> str:
        """Its word, and the number of the try if there was more than one."""
        return self.word if len(self.tries) < 2 else f"{self.word}, try {len(self.tries)}"

    @property
    def word(self) -> str:
        """Its verdict, or the word for a run without one."""
        return self.outcome.word if self.outcome else NOT_RUN


def exit_code_of(cases: Iterable[Case]) -> ExitCode:
    """The most serious outcome. Unknown is never pass: a case that was not run is INCONCLUSIVE."""
    return gravest(case.outcome.exit_code if case.outcome else ExitCode.INCONCLUSIVE for case in cases)


def gravest(codes: Iterable[ExitCode]) -> ExitCode:
    """The most serious of several; INCONCLUSIVE of none."""
    found = set(codes)
    return next((code for code in _GRAVEST_FIRST if code in found), ExitCode.INCONCLUSIVE)
