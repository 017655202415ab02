"""What failures take from jobs on planned fabrics: a table for people, a document for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from rich.console import Console

from mrc_testbed.testbed.planner.arithmetic.curves import FLAPS, SIZES, Curve, effective_over_flaps, effective_over_gpus
from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan, PlannedJob
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.quantities import duration_words
from mrc_testbed.testbed.planner.report.campaigns import between, show_campaigns
from mrc_testbed.testbed.planner.report.designs import design_title, number_words
from mrc_testbed.testbed.report.side_by_side import SideBySideRow, show_side_by_side

FAILURE_ROWS = (
    ("flaps", "T0-T1 flaps a minute"),
    ("link_failures", "NIC-T0 links failed, a day"),
    ("port_down", "some NIC port is down"),
    ("port_loss", "  which slows the job by"),
    ("network_restarts", "network ends the job, a day"),
    ("restarts", "all causes end it, a day"),
    ("mtti", "  mean time between"),
)
_LEAST_PERCENT = 0.0001


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A label, and a number for each job; no numbers: a heading. `stopped_at`: the value from which the job is stopped.
    `ends_job`: each ends it."""

    label: str
    numbers: Sequence[MarkedNumber | None] = ()
    stopped_at: float | None = None
    ends_job: bool = False

    def cells(self) -> list[str]:
        """Each number as people read it, with its range in a second line if it has one."""
        return [self._cell(number) for number in self.numbers]

    def _cell(self, number: MarkedNumber | None) -> str:
        if number is None:
            return "-"
        value = self._words(number, number.value, "stopped")
        value = "ends the job" if self.ends_job and number.value > 0 else value
        low, high = (self._words(number, each, "stopped") for each in (number.low, number.high))
        if number.high == inf:
            return f"{value}\n{low} or more"
        return f"{value}\n{between(low, high)}" if number.is_range else value

    def _words(self, number: MarkedNumber, value: float, standing: str) -> str:
        if self.stopped_at is not None and (value >= self.stopped_at if self.stopped_at else value < _LEAST_PERCENT):
            return standing
        if number.unit == "%" and 0 < value < _LEAST_PERCENT:
            return f"<{_LEAST_PERCENT:g} %"
        return duration_words(value) if number.unit == "s" else number_words(replace(number, value=value))


def failure_rows(plans: Sequence[FailurePlan]) -> Iterator[FailureRow]:
    """Everything that the table shows, but for simulations."""
    numbers = [plan.job.numbers() for plan in plans]
    for key, label in FAILURE_ROWS:
        row = [each.get(key) for each in numbers]
        if any(row):
            yield FailureRow(label, row)
    yield FailureRow("flaps stop the job for")
    for recovery in plans[0].recoveries:
        losses = [plan.job.flap_loss(recovery) for plan in plans]
        yield FailureRow(f"  {recovery.name}", losses, stopped_at=100, ends_job=recovery.ends_job)
    yield FailureRow("effective training time")
    for recovery in plans[0].recoveries:
        yield FailureRow(f"  {recovery.name}", [plan.job.effective(recovery) for plan in plans], stopped_at=0)
    yield FailureRow("  network that never fails", [each["spared"] for each in numbers])


def show_failures(designs: Sequence[Design], plans: Sequence[FailurePlan | None], console: Console) -> None:
    """Tables of the designs that have room, then what they rest on."""
    both = [(design, plan) for design, plan in zip(designs, plans, strict=True) if plan]
    notes = FailureNotes([plan for _, plan in both])
    show_side_by_side(both, lambda some: list(_rows(some, notes)), console)
    show_campaigns(both, console)
    for line in notes.lines():
        console.print(line, soft_wrap=True)


def _rows(both: Sequence[tuple[Design, FailurePlan]], notes: FailureNotes) -> Iterator[SideBySideRow]:
    plans = [plan for _, plan in both]
    yield SideBySideRow("what failures take", [design_title(design) for design, _ in both], "mark")
    yield SideBySideRow("GPUs of the job", [f"{plan.job.gpus:,}" for plan in plans], Provenance.GIVEN.value)
    for row in failure_rows(plans):
        yield SideBySideRow(row.label, row.cells() or [""] * len(plans), notes.mark(row, plans))


class FailureNotes:
    """What jobs rest on, numbered in the order in which it is met."""

    def __init__(self, plans: Sequence[FailurePlan]) -> None:
        self._place: dict[tuple[str, MarkedNumber], int] = {}
        for plan in plans:
            for entry in plan.part_numbers().items():
                self._place.setdefault(entry, len(self._place) + 1)

    def mark(self, row: FailureRow, plans: Sequence[FailurePlan]) -> str:
        """Of a row: the mark of its numbers, and what they rest on."""
        if not row.numbers:
            return ""
        marks = dict.fromkeys(number.mark.value for number in row.numbers if number)
        return f"{', '.join(marks)} [{_spans(self.notes(row, plans))}]"

    def notes(self, row: FailureRow, plans: Sequence[FailurePlan]) -> list[int]:
        """What the numbers of a row rest on."""
        both = ((number, plan) for number, plan in zip(row.numbers, plans, strict=True) if number)
        return sorted(
            {self._place[name, plan.part_numbers()[name]] for number, plan in both for name in number.rests_on}
        )

    def entries(self) -> Iterator[tuple[int, str]]:
        """The number of each, and what it is."""
        for (name, number), place in self._place.items():
            between = f" ({number.low:g} to {number.high:g})" if number.is_range else ""
            said = f"{number.value:g}{between} {number.unit}, {number.mark}: {number.source}"
            yield place, f"{name.replace('_', ' ')}: {said}"

    def lines(self) -> Iterator[str]:
        """The same for a terminal."""
        return (f"[F{place}] {said}" for place, said in self.entries())


def _spans(places: Sequence[int]) -> str:
    """`F1-4,6`."""
    spans: list[list[int]] = []
    for place in places:
        if spans and place == spans[-1][-1] + 1:
            spans[-1].append(place)
        else:
            spans.append([place])
    return "F" + ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in spans)


def failures_document(plans: Sequence[FailurePlan | None]) -> list[dict[str, Any] | None]:
    """What befalls the job on each design as JSON types; None where the GPUs have no room."""
    return [_document(plan) if plan else None for plan in plans]


def _document(plan: FailurePlan) -> dict[str, Any]:
    job = plan.job
    return {
        "gpus": job.gpus,
        "numbers": {key: number and _entry(number) for key, number in job.numbers().items()},
        "recoveries": [
            {
                "name": recovery.name,
                "flap_loss": asdict(job.flap_loss(recovery)),
                "effective": asdict(job.effective(recovery)),
            }
            for recovery in plan.recoveries
        ],
        "rests_on": {name: asdict(number) for name, number in plan.part_numbers().items()},
        "campaigns": plan.outlook and asdict(plan.outlook),
        "effective_over_gpus": _curves(effective_over_gpus(job.clos, job.failures, plan.recoveries, _sizes(job))),
        "effective_over_flaps": _curves(effective_over_flaps(job, plan.recoveries, _flaps(job))),
    }


def _entry(number: MarkedNumber) -> dict[str, Any]:
    """`high` None: open, as JSON has no infinity."""
    return {**asdict(number), "high": None if number.high == inf else number.high}


def _sizes(job: PlannedJob) -> list[int]:
    """With the job's own among them, if the model is for it."""
    return sorted({*SIZES, max(job.gpus, SIZES[0])})


def _flaps(job: PlannedJob) -> list[float]:
    """With the job's own among them."""
    return sorted({*FLAPS, round(job.case.flaps * 60, 6)})


def _curves(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    return [asdict(curve) for curve in curves]
