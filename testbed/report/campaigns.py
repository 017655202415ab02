"""Simulated campaigns of jobs on planned fabrics, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from testbed.planner.design import Design
from testbed.planner.failures import JobPlan
from testbed.planner.quantities import duration_words

if TYPE_CHECKING:
    from testbed.planner.chance import Outlook, Spread


def show_campaigns(both: Sequence[tuple[Design, JobPlan]], console: Console) -> None:
    """A row for each design and recovery; nothing where none was simulated."""
    found = [(design, plan, plan.outlook) for design, plan in both if plan.outlook]
    if not found:
        return
    first = found[0][2]
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(f"{first.campaigns:,} campaigns of {first.days:g} days")
    for head in ("effective", "5-95 %", "longest", "5-95 %"):
        table.add_column(head, justify="right", no_wrap=True)
    for design, plan, outlook in found:
        _add(table, design, plan, outlook)
    console.print(table)


def _add(table: Table, design: Design, plan: JobPlan, outlook: Outlook) -> None:
    planes = f"{design.clos.planes} plane{'s' if design.clos.planes > 1 else ''}"
    table.add_row(f"{plan.job.gpus:,} GPUs, {planes}, {design.clos.tiers} tier{'s' if design.clos.tiers > 1 else ''}")
    table.add_row("  restarts", *_cells(outlook.restarts, "{:,.0f}".format))
    found = zip(plan.recoveries, outlook.effective, outlook.longest_stall, strict=True)
    for recovery, effective, longest in found:
        table.add_row(f"  {recovery.name}", *_cells(effective, "{:.3g} %".format), *_cells(longest, duration_words))


def _cells(spread: Spread, form: Callable[[float], str]) -> tuple[str, str]:
    return form(spread.mean), between(form(spread.low), form(spread.high))


def between(low: str, high: str) -> str:
    """From one number with its unit to another, the unit once if it is the same."""
    number, _, unit = low.rpartition(" ")
    return f"{number}-{high}" if number and high.endswith(f" {unit}") else f"{low}-{high}"
