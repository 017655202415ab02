"""What repeats of the paper pack show, and how much room its bounds leave: docs/paper.md, "Spread".

    sudo .venv/bin/mrc-testbed paper --retry-inconclusive 0 --out DIR   # a round; run nothing beside it
    python -m benchmarks.spread add DIR/20*                             # keep what it showed
    python -m benchmarks.spread                                         # the table, as Markdown

Rounds of several days are kept in `benchmarks/paper-rounds.jsonl`, a line a run, so that twenty need not fit into one.
A run is added once, and judged by the bounds that its scenario has today. Rows are bounds that leave a spread; once in
1000: the bound that a further run crosses as rarely (`mrc-testbed bounds`). Runs of a machine that did not keep time
are counted and not used.
"""

from __future__ import annotations

import json
import operator
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.checks.judge import VERDICT_FILE, read_verdict
from mrc_testbed.testbed.checks.result import CheckResult, Fidelity, FidelityFigure, Status
from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.bounds import USUAL_CHANCE, BoundRow, BoundsOf, Room, bounds_of
from mrc_testbed.testbed.errors import TestbedError
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.load.shipped import shipped_named

KEPT = Path(__file__).with_name("paper-rounds.jsonl")
_BOUND = re.compile(r"(>=|<=|>|<) ([0-9.]+)")
_HOLDS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_CHECK = ("name", "status", "observed", "expected", "unit", "limit")


def kept(folder: Path, verdict: Verdict) -> dict[str, Any]:
    """What is kept of a run: when it was, which figures of the machine were outside, its expectations with a bound, and
    those that it left open."""
    checks = [check for check in verdict.checks if check.limit is not None or (check.place and _is_open(check))]
    return {
        "run": folder.name,
        "scenario": verdict.scenario,
        "late": [figure.name for figure in verdict.fidelity.figures if not figure.ok],
        "checks": [{key: getattr(check, key) for key in _CHECK} for check in checks],
    }


def add(folders: Iterable[Path]) -> int:
    """Keep runs that are not kept yet; returns how many these are. Baselines are not judged, and virtual time has no
    spread: they are left out. Raises TestbedError."""
    known, new = {run["run"] for run in runs()}, []
    for folder in folders:
        if folder.name not in known and (folder / VERDICT_FILE).is_file():
            verdict = read_verdict(folder)
            if verdict.judged and not verdict.fidelity.virtual:
                new.append(kept(folder, verdict))
    with KEPT.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(run, separators=(",", ":")) + "\n" for run in new)
    return len(new)


def runs() -> list[dict[str, Any]]:
    """All that is kept, in order."""
    if not KEPT.exists():
        return []
    return [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]


def verdict_of(run: dict[str, Any], today: Mapping[str, str]) -> Verdict:
    """As far as bounds need it. `today`: the expectations of its scenario, by their texts without a bound."""
    checks = tuple(
        _judged(CheckResult(**{**check, "status": Status(check["status"])}), today[_unbound(check["name"])])
        for check in run["checks"]
        if _unbound(check["name"]) in today
    )
    outside = tuple(FidelityFigure(name, None, None, "", ok=False) for name in run["late"])
    return Verdict(Status.INCONCLUSIVE if outside else Status.PASS, run["scenario"], checks, Fidelity(outside))


def _judged(kept_check: CheckResult, text: str) -> CheckResult:
    """By the bound in `text`. Both bounds are shares of the same figure, or numbers of the same unit. What the run left
    open stays so."""
    if _is_open(kept_check):
        return replace(kept_check, name=text, place=text)
    ((_, before),), ((op, now),) = (_BOUND.findall(one) for one in (kept_check.name, text))
    limit = (kept_check.limit or 0.0) * (float(now) / float(before) if float(before) else 1.0)
    observed = kept_check.observed
    held = observed is not None and _HOLDS[op](observed, limit)
    return replace(kept_check, name=text, limit=limit, status=Status.PASS if held else Status.FAIL)


def _is_open(check: CheckResult) -> bool:
    return check.status == Status.INCONCLUSIVE


def _unbound(text: str) -> str:
    return _BOUND.sub(r"\1", text)


def expectations_of(name: str) -> dict[str, str]:
    """Of a shipped scenario of the paper, those with a bound, by their texts without it."""
    texts = (wanted.text for wanted in load_scenario(shipped_named(f"paper/{name}").path).expect)
    return {_unbound(text): text for text in texts if _BOUND.search(text)}


def spreads(given: Iterable[dict[str, Any]]) -> list[BoundsOf]:
    """One for each scenario, by name. Raises TestbedError for one that is gone."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for run in given:
        by_name.setdefault(run["scenario"], []).append(run)
    found = []
    for name, of_one in sorted(by_name.items()):
        today = expectations_of(name)
        found.append(bounds_of(name, [verdict_of(run, today) for run in of_one]))
    return found


def table(found: Iterable[BoundsOf]) -> Iterator[str]:
    """Markdown, a row a bound."""
    yield f"| scenario | runs | expectation | seen | bound | once in {number(1 / USUAL_CHANCE)} |"
    yield "|---|---|---|---|---|---|"
    for one in found:
        counted = f"{one.runs}" + (f" ({one.left_out} late)" if one.left_out else "")
        for row in one.bounds:
            if row.room not in (Room.ALIKE, Room.EXACT):
                yield f"| {one.label} | {counted} | {' | '.join(_cells(row))} |"


def _cells(row: BoundRow) -> Sequence[str]:
    ends = (
        " to ".join(dict.fromkeys(number(end) for end in (min(row.observed), max(row.observed))))
        if row.observed
        else ""
    )
    needed = "" if row.needed is None else number(row.needed)
    said = [f"**{needed}**" if row.room is Room.TIGHT else needed]
    said += [f"missed {row.missed} times"] if row.missed else []
    said += [f"open {row.open} times"] if row.open else []
    bound = "" if row.bound is None else number(row.bound)
    return row.name, f"{ends} {row.unit}".strip(), bound, ", ".join(filter(None, said))


def main() -> int:
    """Read the arguments, add or print."""
    words = sys.argv[1:]
    try:
        if words[:1] == ["add"]:
            print(f"{add(map(Path, words[1:]))} runs added to {KEPT.name}")
        elif words:
            print(__doc__)
            return 2
        else:
            print("\n".join(table(spreads(runs()))))
    except TestbedError as error:
        print(error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
