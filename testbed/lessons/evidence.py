"""What the runs of a lesson say: figures, targets of faults and keys of scenarios, each for the cell that is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.cause import causes_of_machine
from mrc_testbed.testbed.checks.compare import check_expectation
from mrc_testbed.testbed.checks.figure import ask, figure_context
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.checks.windows import NoData, NotApplicable
from mrc_testbed.testbed.errors import ScenarioError, TestbedError
from mrc_testbed.testbed.expect import parse_expectation, with_metrics
from mrc_testbed.testbed.lessons.cells import bracketed, is_meant
from mrc_testbed.testbed.lessons.expression import Expression, ExpressionTerm, NotANumber, TermKind
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.scale import scaled_expectation
from mrc_testbed.testbed.scenario.rules.expect_rules import require_figure
from mrc_testbed.testbed.scenario.text.keys import key_path

RUN = "RUN"
"""The folder of each run, in the options of a plan."""
Planner = Callable[[str, Sequence[Path]], Mapping[str, Any]]
"""What `mrc-testbed plan` says with these options, as JSON types; `--measured RUN` is said of each of these folders.
Raises TestbedError."""


class NotKnown(Exception):
    """The run cannot say it, through no fault of the student's."""


class NotThere(Exception):
    """The run that the lesson asks for is not what the student made."""


@dataclass(frozen=True)
class CellRun:
    """One cell of one run of a lesson. `settings`: of its matrix or variant, as runs show them."""

    run: str
    settings: tuple[str, ...]
    record: RunRecord

    @staticmethod
    def of_folder(run: str, settings: tuple[str, ...], folder: Path) -> CellRun:
        """Reads it. Raises RecordError or ScenarioError."""
        return CellRun(run, settings, load_record(folder))

    @cached_property
    def verdict(self) -> Verdict:
        """Judged again: the verdict in the folder could be somebody else's."""
        return judge(self.record)

    @property
    def scenario(self) -> Scenario:
        """The scenario as run."""
        return self.record.scenario

    def figure(self, text: str, unit: str | None) -> float:
        """Raises NotKnown, NotThere."""
        try:
            found = ask(self.record, text, unit)
        except (ScenarioError, ValueError) as error:
            raise NotThere(str(error)) from None
        self.require_time_kept(text)
        if found.value is None:
            raise NotKnown(f"{text}: {found.why}")
        return found.value

    def holds(self, text: str) -> tuple[bool, str]:
        """Whether an expectation holds, and what was observed. Raises NotKnown, NotThere."""
        try:
            with with_metrics(self.scenario.metrics):
                wanted = scaled_expectation(parse_expectation(text), self.scenario.speed)
            require_figure(wanted.figure, figure_context(self.record), text)
        except (ScenarioError, ValueError) as error:
            raise NotThere(str(error)) from None
        self.require_time_kept(text)
        try:
            found = check_expectation(self.record, wanted)
        except NotApplicable as reason:
            raise NotThere(f"{text}: {reason}") from None
        except NoData as reason:
            raise NotKnown(f"{text}: {reason}") from None
        return found.status is Status.PASS, f"observed {found.observed:.4g} {found.unit}".rstrip()

    def passes(self) -> tuple[bool, str]:
        """Whether the student's own expectations hold. Raises NotKnown."""
        if self.verdict.status is Status.INCONCLUSIVE:
            raise NotKnown(self.verdict.reason)
        return self.verdict.status is Status.PASS, self.verdict.reason or self.verdict.status.value

    def key(self, dotted: str) -> float:
        """A number of the scenario. Raises NotThere."""
        value = value_of(self.scenario, dotted)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotThere(f"{dotted} is no number in this scenario")
        return float(value)

    def require_time_kept(self, text: str) -> None:
        """Raises NotKnown where the machine did not; `text` is what was asked."""
        if not self.verdict.fidelity.ok:
            raise NotKnown(f"{text}: {causes_of_machine(self.verdict.fidelity)[0]}")


@dataclass(frozen=True)
class Evidence:
    """All runs of a lesson. `unmet`: by run, why it is not judged; `plan`: asks the planner."""

    cells: tuple[CellRun, ...]
    plan: Planner
    unmet: Mapping[str, str] = field(default_factory=dict)

    def meant(self, words: Sequence[str]) -> tuple[CellRun, ...]:
        """The cells that words in brackets pick. Raises NotThere, also where a run is among them that is not judged."""
        if self.unmet and not any(one.run in words for one in self.cells):
            named = [why for run, why in self.unmet.items() if run in words]
            raise NotThere((named or list(self.unmet.values()))[0])
        found = tuple(one for one in self.cells if is_meant(words, one.run, one.settings))
        if not found:
            there = ", ".join(dict.fromkeys(bracketed(one.settings or (one.run,)) for one in self.cells))
            raise NotThere(f"there is no run {bracketed(words)}; there {f'are {there}' if there else 'is none'}")
        return found

    def one(self, words: Sequence[str]) -> CellRun:
        """The first of them. Raises NotThere."""
        return self.meant(words)[0]

    def value(self, expression: Expression, unit: str | None, plan: str) -> float:
        """What an expression comes to. `unit` is for a single figure. Raises NotKnown, NotThere."""
        try:
            return expression.value(lambda term: self._term(term, unit, plan))
        except NotANumber as error:
            raise NotKnown(str(error)) from None

    def _term(self, term: ExpressionTerm, unit: str | None, plan: str) -> float:
        if term.kind is TermKind.PLAN:
            return _number_at(self._planned(plan, self.meant(term.words) if self.cells else ()), term.text)
        cell = self.one(term.words)
        return cell.key(term.text) if term.kind is TermKind.KEY else cell.figure(term.text, unit)

    def _planned(self, options: str, cells: Sequence[CellRun]) -> Mapping[str, Any]:
        """What the planner says of runs. Raises NotKnown where a machine spoiled one, NotThere for one that it cannot
        reckon with."""
        if RUN not in options.split():
            return self.plan(options, [])
        for cell in cells:
            cell.require_time_kept(f"plan {options}")
        try:
            return self.plan(options, [cell.record.folder for cell in cells])
        except TestbedError as error:
            raise NotThere(str(error)) from None


def value_of(scenario: Scenario, dotted: str) -> Any:
    """The typed value at a dotted key of the file, in base units (ns, bit/s, bytes); None where there is none."""
    return _at(scenario.model_dump(by_alias=True), dotted)


def _at(value: Any, dotted: str) -> Any:
    for key in key_path(dotted):
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _number_at(document: Mapping[str, Any], dotted: str) -> float:
    found = _at(document, dotted)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise NotThere(f"`plan --json` has no number at {dotted}")
    return float(found)
