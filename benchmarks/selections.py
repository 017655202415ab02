"""What the figures of the paper are with another EV selection: Figs. 9 to 20 over MRC, in virtual time.

    python -m benchmarks.selections weighted-planes                    # beside `adaptive`
    python -m benchmarks.selections weighted-planes --only 14,18c --seed 2 --out DIR

Prints a Markdown table: what the expectations named by `paper.shows` observed with each selection, and the verdict
where it is not a pass. Runs stay in DIR, and those that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mrc_testbed.hosts.mrc.config import DEFAULT_SELECTION
from mrc_testbed.testbed.app.batch import load_cases
from mrc_testbed.testbed.app.pack import GROUP, figures_of
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.report.pack import row_of
from mrc_testbed.testbed.scenario.load.shipped import shipped

FIRST, LAST = 9, 20


def cases_of(file: Path, selection: str, seed: int | None) -> list[Case]:
    """The runs of one file in which senders name paths, as of MRC alone. Where a file has variants, that of MRC has the
    selection."""
    for key in (f"endpoint.ev_selection={selection}", f"variants.mrc={{endpoint.ev_selection: {selection}}}"):
        try:
            cases = load_cases([file], ["world=virtual", key], seed)
        except ScenarioError:
            continue
        return [case for case in cases if case.scenario.transport.names_paths]
    return []


def figures(only: list[str]) -> Iterator[Path]:
    """Scenarios of the figures asked for, else of all between FIRST and LAST."""
    for one in shipped():
        if one.group != GROUP:
            continue
        named = figures_of(load_cases([one.path], ["world=virtual"], None)[0].scenario)
        numbers = [int(number) for figure in named for number in re.findall(r"^\d+", figure)]
        if set(only) & set(named) or (not only and any(FIRST <= number <= LAST for number in numbers)):
            yield one.path


def observed(case: Case, kept: Path, out: Path) -> str:
    """What a run showed, from `kept` if it was run before."""
    known = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    scenario = case.scenario
    key = f"{case.file.stem} {scenario.endpoint.ev_selection} {scenario.seed}"
    if key not in known:
        row = row_of(replace(case, tries=(run_scenario(scenario, out, True),)))
        known[key] = "; ".join(row.observed) + ("" if row.verdict == "pass" else f" (**{row.verdict}**: {row.why})")
        kept.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return str(known[key])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("selection")
    parser.add_argument("--only", default="", help="figures, as in 9a,14")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--out", type=Path, default=Path("results/selections"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for file in figures([word for word in asked.only.split(",") if word]):
        pairs = (cases_of(file, selection, asked.seed) for selection in (DEFAULT_SELECTION, asked.selection))
        for usual, other in zip(*pairs, strict=True):
            shown = [observed(case, asked.out / "observed.json", asked.out) for case in (usual, other)]
            rows.append(f"| `{file.stem}` | {' | '.join(one.replace('|', chr(92) + '|') for one in shown)} |")
    print(f"| scenario | {DEFAULT_SELECTION} | {asked.selection} |\n|---|---|---|", *rows, sep="\n")


if __name__ == "__main__":
    main()
