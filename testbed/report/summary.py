"""The end of a run for people: checks, faults, step times, the machine, and one verdict line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from io import StringIO

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import HARMLESS, CheckResult, Status
from mrc_testbed.testbed.checks.shown import NOTHING, shown
from mrc_testbed.testbed.checks.unmet import unmet_words
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.expect.vocabulary import Severity
from mrc_testbed.testbed.report import facts
from mrc_testbed.testbed.report.capture_facts import capture_line
from mrc_testbed.testbed.report.console import PatientConsole, plain_table, unbroken
from mrc_testbed.testbed.report.hash_facts import hash_lines
from mrc_testbed.testbed.report.healing_facts import HealingRow, healing_rows
from mrc_testbed.testbed.report.map_facts import mapper_lines
from mrc_testbed.testbed.report.packet_facts import packet_lines, refused_lines
from mrc_testbed.testbed.report.trust import biases, short_lines

MIN_WIDTH = 80
"""Width that the tables need."""
TEXT_WIDTH = 100
"""Width of summary.txt."""

_STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.INCONCLUSIVE: "bold yellow",
    Status.NOT_APPLICABLE: "dim",
    Status.MEASURED: "cyan",
    Status.DIED: "bold magenta",
}
_WORDS = {Status.PASS: "pass", Status.FAIL: "FAIL", Status.INCONCLUSIVE: "?", Status.NOT_APPLICABLE: "n/a"}
MISSED = "missed"
"""A check that does not hold in a run that is not judged."""
_WARNING_WORDS = {**_WORDS, Status.FAIL: "warn", Status.INCONCLUSIVE: "warn ?"}
_WARNING_STYLE = "yellow"


def render_summary(verdict: Verdict, record: RunRecord) -> RenderableType:
    """Everything for a rich console of 80 to 120 columns, readable without colour."""
    parts: list[RenderableType] = [_title(record), "", _checks(verdict)]
    if record.scenario.faults or record.occurrences:
        parts += ["", _faults(record)]
        rows = healing_rows(record) if record.scenario.transport.has_paths else []
        parts += ["", _healing(rows)] if rows else []
        unmet = unmet_words(record)
        parts += ["", Text(f"{unmet}: the run does not show what it does", style=_WARNING_STYLE)] if unmet else []
    trusted = short_lines(biases([record.scenario]))
    parts += ["", _facts(verdict, record), *(["", unbroken("\n".join(trusted))] if trusted else [])]
    return Group(*parts, "", verdict_line(verdict, record))


def summary_text(verdict: Verdict, record: RunRecord, width: int = TEXT_WIDTH) -> str:
    """The same as plain text, for summary.txt."""
    out = StringIO()
    console = PatientConsole(file=out, width=width, color_system=None, force_terminal=False, highlight=False)
    console.print(render_summary(verdict, record))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def verdict_line(verdict: Verdict, record: RunRecord, name: str = "") -> Text:
    """`PASS quickstart 28 steps, P100 1.12 s, clean median 912 ms results/...`, with the reason if it is not a pass.

    `name`: of the run among others, with its cell. For a `PatientConsole`: no line ends between a number and its unit.
    """
    line = Text(verdict.status.upper(), style=_STYLES[verdict.status])
    line.append(f"  {name or verdict.scenario}  {facts.headline(record)}  {record.folder}", style="none")
    line.append(f"\n{verdict.reason}" if verdict.reason else "", style="none")
    line.append(f"\n{verdict.next_step}" if verdict.next_step else "", style="none")
    if unmet := unmet_words(record):
        line.append(f"\nwarning: {unmet}", style=_WARNING_STYLE)
    if verdict.warnings:
        more = f" (and {len(verdict.warnings) - 1} more)" if len(verdict.warnings) > 1 else ""
        line.append(f"\nwarning: {verdict.warnings[0].name}{more}", style=_WARNING_STYLE)
    line.plain = unbroken(line.plain)
    return line


def _title(record: RunRecord) -> Text:
    title = Text(record.scenario.name, style="bold")
    title.append(unbroken(f"  seed {record.scenario.seed}  {facts.fabric_line(record)}"), style="none")
    return title.append(f"\n{record.scenario.about}", style="none") if record.scenario.about else title


def _checks(verdict: Verdict) -> Table:
    table = plain_table(collapse_padding=True)
    table.add_column("", no_wrap=True)
    table.add_column("check", ratio=1, overflow="fold")
    for heading in ("expected", "observed", "margin"):
        table.add_column(heading, justify="right", no_wrap=True)
    for check in verdict.checks:
        table.add_row(*_check_cells(check, verdict.judged or verdict.decides(check)))
    return table


def _check_cells(check: CheckResult, judged: bool) -> tuple[Text, Text, str, str, str]:
    warning = check.level is Severity.WARNING or not judged
    style = _WARNING_STYLE if warning and check.status not in HARMLESS else _STYLES[check.status]
    name = Text(check.name)
    if check.status is Status.FAIL and check.place:
        name.append(f"\n{check.place}", style=style)
    if check.status is not Status.PASS and check.why and not check.unbelieved:
        name.append(f"\n{unbroken(check.why)}", style=style)
    figures = shown(check)
    words = (_WARNING_WORDS if judged else {**_WORDS, Status.FAIL: MISSED}) if warning else _WORDS
    word = words[check.status] + (f" {_WORDS[check.unbelieved]}" if check.unbelieved else "")
    return Text(word, style=style), name, figures.expected, figures.observed, figures.margin


def _faults(record: RunRecord) -> Table:
    """What each fault did; of a transport without paths to leave, its longest stall."""
    paths = record.scenario.transport.has_paths
    back = {} if paths else {row.name: row.goodput_back for row in healing_rows(record)}
    table = plain_table(collapse_padding=True)
    table.add_column("\nfault", overflow="fold", min_width=27)
    table.add_column("\nat, for", overflow="fold")
    heads = ("EVs\nretired", "packets\ndropped", "slowest\nrecovery")
    for heading in heads if paths else ("packets\ndropped", "longest\nstall", "goodput\nback"):
        table.add_column(heading, justify="right", no_wrap=heading != heads[0])
    for row in facts.fault_rows(record):
        of_paths = (row.evs_retired, row.packets_dropped, row.recovery)
        cells = of_paths if paths else (row.packets_dropped, row.stall, back.get(row.name, NOTHING))
        table.add_row(f"{row.name}\n  {row.what}", row.when, *cells)
    return table


def _healing(rows: Sequence[HealingRow]) -> Table:
    """The worst occurrence of each fault."""
    table = plain_table(collapse_padding=True)
    table.add_column("\nrecovery", overflow="fold")
    for heading in ("first\nloss", "last\nsent", "goodput\nback", "lost\nper QP", "peers\ntold", "back after\nheal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*astuple(row))
    return table


def _facts(verdict: Verdict, record: RunRecord) -> Table:
    table = Table.grid(padding=(0, 2))
    for head, said in _rows(verdict, record):
        said.plain = unbroken(said.plain)
        table.add_row(head, said)
    return table


def _rows(verdict: Verdict, record: RunRecord) -> Iterator[tuple[str, Text]]:
    yield from _plain(*facts.job_facts(record), *mapper_lines(record), ("network", facts.network_line(record)))
    for warning in record.environment.get("warnings") or ():
        yield "warning", Text(str(warning), style=_WARNING_STYLE)
    if rootless := facts.rootless_line(record):
        yield from _plain(("without root", rootless))
    yield from _plain(*hash_lines(record), *packet_lines(record), *refused_lines(record))
    yield from _plain(("endpoint", facts.endpoint_line(record)))
    if captured := capture_line(record.folder):
        yield from _plain(("captures", captured))
    machine = Text(facts.fidelity_word(verdict.fidelity), style="none" if verdict.fidelity.ok else "bold yellow")
    yield "machine", machine.append(facts.fidelity_line(verdict.fidelity), style="none")


def _plain(*rows: tuple[str, str]) -> Iterator[tuple[str, Text]]:
    return ((head, Text(said)) for head, said in rows)
