"""The result of several scenarios: a table for people, and the same as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from mrc_testbed.testbed.checks.result import NOT_JUDGED, Status
from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.report.console import plain_table
from mrc_testbed.testbed.report.outcome import NOT_RUN, WORDS, Case, RunOutcome, exit_code_of

_STYLES = {
    WORDS[ExitCode.PASS]: "green",
    WORDS[ExitCode.FAIL]: "bold red",
    Status.MEASURED.value: "cyan",
    Status.DIED.value: "bold magenta",
    NOT_RUN: "dim",
}
_OTHERS = "bold yellow"


def render_batch(cases: Sequence[Case]) -> RenderableType:
    """A row per case, and a line of totals."""
    table = plain_table()
    table.add_column("scenario", overflow="fold", ratio=2)
    table.add_column("verdict", no_wrap=True)
    table.add_column("figures", overflow="fold", ratio=3)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("folder", no_wrap=True)  # a name in two pieces cannot be copied
    above = {case.outcome.folder.parent for case in cases if case.outcome and case.outcome.folder}
    for case in cases:
        took, folder = _whereabouts(case)
        shown = "" if folder is None else folder.name if len(above) == 1 else str(folder)
        table.add_row(Text(case.name), Text(case.said, style=style_of(case)), *took, Text(shown))
    where = f", in {above.pop()}" if len(above) == 1 else ""
    return Group("", table, "", Text(totals(cases) + where))


def style_of(case: Case) -> str:
    """The rich style of its verdict."""
    return _STYLES.get(case.word, _OTHERS)


def totals(cases: Sequence[Case]) -> str:
    """`5 scenarios: 3 pass, 1 fail, 1 not run`."""
    words = [*WORDS.values(), *(status.value for status in NOT_JUDGED), NOT_RUN]
    counts = [(sum(case.word == word for case in cases), word) for word in words]
    return f"{len(cases)} runs: " + ", ".join(f"{count} {word}" for count, word in counts if count)


def batch_as_dict(cases: Sequence[Case]) -> dict[str, Any]:
    """The content of `--json`; docs/ci.md lists its fields."""
    code = exit_code_of(cases)
    return {"verdict": WORDS[code], "exit_code": int(code), "runs": [_case_as_dict(case) for case in cases]}


def _whereabouts(case: Case) -> tuple[tuple[str, str], Path | None]:
    outcome = case.outcome
    if outcome is None:
        return ("", ""), None
    figures = "\n".join(filter(None, (outcome.headline, outcome.reason)))
    return (figures, f"{case.seconds:.0f} s"), outcome.folder


def _case_as_dict(case: Case) -> dict[str, Any]:
    outcome = case.outcome
    return {
        "scenario": case.scenario.name,
        "file": str(case.file),
        "number": case.number,
        "seed": case.scenario.seed,
        **({"cell": {one.key: one.value for one in case.settings}} if case.settings else {}),
        "verdict": case.word,
        "tries": [_try_as_dict(one) for one in case.tries],
        **(_last_as_dict(outcome) if outcome else {}),
    }


def _try_as_dict(outcome: RunOutcome) -> dict[str, Any]:
    folder = str(outcome.folder) if outcome.folder else None
    result = {"verdict": outcome.word, "exit_code": int(outcome.exit_code), "reason": outcome.reason}
    return {**result, "seconds": round(outcome.seconds, 3), "folder": folder}


def _last_as_dict(outcome: RunOutcome) -> dict[str, Any]:
    judged = outcome.verdict.as_dict() if outcome.verdict else {"checks": [], "fidelity": None, "ends": []}
    return {
        **_try_as_dict(outcome),
        "headline": outcome.headline,
        "base_rtt_ns": outcome.base_rtt_ns,
        "warnings": list(outcome.warnings),
        "causes": [asdict(cause) for cause in outcome.causes],
        "checks": judged["checks"],
        "fidelity": judged["fidelity"],
        "ends": judged["ends"],
    }
