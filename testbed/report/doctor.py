"""`mrc-testbed doctor`: the features of this machine, what is lost without each, and the fix."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rich.markup import escape

from mrc_testbed.hosts import batches, compiled, huge_pages
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.fabric.capabilities import Capability, probe
from mrc_testbed.testbed.report.calibration import budget_lines
from mrc_testbed.testbed.report.console import open_console


def show_doctor() -> int:
    """Print each feature and the conclusion. Returns 0 if a fabric can be built here, else 4."""
    found = probe()
    console = open_console()
    for line in _lines(found):
        console.print(line, soft_wrap=True, markup=True)
    console.print(f"core     {compiled.described()}", soft_wrap=True)
    console.print(f"sockets  {batches.described()}", soft_wrap=True)
    console.print(f"pages    {huge_pages.described()}", soft_wrap=True)
    console.print(f"cpus     {_cpus()}", soft_wrap=True)
    console.print("carries")
    for line in budget_lines():
        console.print(f"         {line}", soft_wrap=True)
    missing = [capability.name for capability in found if capability.needed and not capability.present]
    if missing:
        console.print(f"[bold red]No fabric can be built here:[/] {', '.join(missing)} missing.", markup=True)
        return ExitCode.MISSING
    worse = sum(not capability.present for capability in found)
    note = f" {worse} optional parts are missing; see above what is lost." if worse else ""
    console.print(f"[bold green]Ready.[/]{note}", markup=True)
    return ExitCode.PASS


def _cpus() -> str:
    usable, there = usable_cpus(), os.cpu_count() or 1
    return str(there) if usable == there else f"{usable} of the {there} of this machine (affinity, or a cgroup's quota)"


def _lines(found: list[Capability]) -> Iterator[str]:
    for capability in found:
        if capability.present:
            yield f"[green]present[/]  {capability.name}"
            continue
        yield f"[red]missing[/]  {capability.name}" if capability.needed else f"[yellow]absent [/]  {capability.name}"
        detail = f" ({escape(capability.detail)})" if capability.detail else ""
        yield f"[dim]         without it: {escape(capability.lost)}{detail}[/]"
        yield f"[dim]         fix: {escape(capability.fix)}[/]"
