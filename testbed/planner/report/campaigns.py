"""Simulated campaigns of jobs on planned fabrics, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from mrc_testbed.testbed.planner.arithmetic.design import Design
from mrc_testbed.testbed.planner.arithmetic.failures import FailurePlan
from mrc_testbed.testbed.planner.arithmetic.quantities import duration_words

if TYPE_CHECKING:
    from mrc_testbed.testbed.planner.arithmetic.chance import Outlook, Spread


def show_campaigns(both: Sequence[tuple[Design, FailurePlan]], console: Console) -> None:
    """A row for each design and recovery; nothing where none was simulated."""
    heads, rows = campaign_table(both)
    if not rows:
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(heads[0], overflow="fold")
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def campaign_table(both: Sequence[tuple[Design, FailurePlan]]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Heads and rows; a design has a row with its name alone, and what belongs to it is indented. No rows where none
    was simulated."""
    found = [(design, plan, plan.outlook) for design, plan in both if plan.outlook]
    if not found:
        return (), []
    first = found[0][2]
    heads = (f"{first.campaigns:,} campaigns of {first.days:g} days", "effective", "5-95 %", "longest", "5-95 %")
    return heads, [row for design, plan, outlook in found for row in _rows(design, plan, outlook)]


def _rows(design: Design, plan: FailurePlan, outlook: Outlook) -> Iterator[Sequence[str]]:
    planes = f"{design.clos.planes} plane{'s' if design.clos.planes > 1 else ''}"
    yield (f"{plan.job.gpus:,} GPUs, {planes}, {design.clos.tiers} tier{'s' if design.clos.tiers > 1 else ''}",)
    yield "  restarts", *_cells(outlook.restarts, _count)
    found = zip(plan.recoveries, outlook.effective, outlook.longest_stall, strict=True)
    for recovery, effective, longest in found:
        yield f"  {recovery.name}", *_cells(effective, _percent), *_cells(longest, duration_words)


def _count(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{value:.3g} %" if value else "stopped"


def _cells(spread: Spread, form: Callable[[float], str]) -> tuple[str, str]:
    same = spread.low == spread.high
    return form(spread.mean), "" if same else between(form(spread.low), form(spread.high))


def between(low: str, high: str) -> str:
    """From one number with its unit to another, the unit once if it is the same."""
    number, _, unit = low.rpartition(" ")
    return f"{number}-{high}" if number and high.endswith(f" {unit}") else f"{low}-{high}"
