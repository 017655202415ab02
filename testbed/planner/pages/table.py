"""All numbers of designs and of the jobs on them, a row each with its marks and footnotes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance
from mrc_testbed.testbed.planner.report.designs import ROWS, Footnotes, cell_words, room_words
from mrc_testbed.testbed.planner.report.failures import FailureNotes, failure_rows


class TableRow(NamedTuple):
    """A row: its cells as lines, its marks with where they come from, its footnotes. A heading has no cells."""

    label: str
    is_part: bool
    cells: Sequence[Sequence[str]]
    marks: Sequence[tuple[str, str]]
    notes: Sequence[int]


def base_of(made: Sequence[Design]) -> Design:
    """The design that others are compared with: the first that has room."""
    return next((design for design in made if design.clos.fits), made[0])


def design_rows(made: Sequence[Design], footnotes: Footnotes) -> Iterator[TableRow]:
    """Of the designs themselves."""
    numbers = [design.numbers() if design.clos.fits else {} for design in made]
    first = base_of(made).numbers()
    room = [[room_words(design)] for design in made]
    yield TableRow("room for the GPUs", False, room, [(Provenance.DERIVED, "NICs that this many tiers can have")], [])
    for figure, label in ROWS:
        row = [each.get(figure) for each in numbers]
        if any(row):
            cells = [cell_words(figure, one, first.get(figure)).split("\n") for one in row]
            yield TableRow(label.strip(), label[0] == " ", cells, _marks(row), footnotes.notes(row, made))


def job_rows(plans: Sequence[FailurePlan], notes: FailureNotes) -> Iterator[TableRow]:
    """Of jobs on the designs that have room."""
    sizes = [[f"{plan.job.gpus:,}"] for plan in plans]
    yield TableRow("GPUs of the job", False, sizes, [(Provenance.GIVEN, "--job, else --gpus")], [])
    for row in failure_rows(plans):
        cells = [cell.split("\n") for cell in row.cells()]
        places = notes.notes(row, plans) if row.numbers else []
        yield TableRow(row.label.strip(), row.label[0] == " ", cells, _marks(row.numbers), places)


def _marks(row: Sequence[MarkedNumber | None]) -> list[tuple[str, str]]:
    """Each mark of a row with where its numbers come from."""
    found: dict[str, dict[str, None]] = {}
    for number in filter(None, row):
        found.setdefault(number.mark.value, {})[number.source] = None
    return [(mark, "; ".join(sources)) for mark, sources in found.items()]
