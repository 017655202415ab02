"""The table of docs/worlds.md: figures of scenarios on the kernel and in virtual time.

    mrc-testbed worlds SCENARIO|RUN... --json worlds.json
    python -m benchmarks.worlds worlds.json [MORE.json ...]

A cell is `kernel, virtual`, and bold where the two differ by more than their tolerance.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.compare.figures import FIGURES
from mrc_testbed.testbed.compare.tolerances import TOLERANCES

_FIGURE = {figure.key: figure for figure in FIGURES}
COLUMNS = {
    "step, median": ("step_time.median clean", "step_time.median", "latency.median"),
    "step, P100": ("step_time.p100",),
    "goodput, clean": ("goodput clean",),
    "in faults": ("goodput during faults",),
    "recovery P50, RTT": ("recovery.p50 in rtt",),
    "P100, RTT": ("recovery.p100 in rtt",),
    "lost": ("packets_lost", "retransmissions"),
    "EVs retired": ("evs_retired",),
    "marks": ("marks",),
    "trims": ("trims",),
    "died": ("died_at",),
}
"""Heading -> figures; the first that a scenario has."""


def lines(documents: list[dict[str, Any]]) -> Iterator[str]:
    """The table in Markdown."""
    yield f"| scenario | runs | {' | '.join(COLUMNS)} |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for one in (each for document in documents for each in document["scenarios"]):
        counted = sum(run["counted"] for run in one["kernel"])
        cells = [f"not known: {one['why']}"] if one["why"] else [_cell(one, keys) for keys in COLUMNS.values()]
        yield f"| {one['name']} | {counted} | {' | '.join(cells)} |"


def _cell(one: dict[str, Any], keys: tuple[str, ...]) -> str:
    found = {figure["key"]: figure for figure in one["figures"]}
    for key in keys:
        if key in found and found[key]["kernel"]["mean"] is not None:
            return _values(found[key])
    return "0" if any(_FIGURE[key].title in one["zero"] for key in keys) else ""


def _values(figure: dict[str, Any]) -> str:
    shown = _FIGURE[figure["key"]].shown
    kernel, virtual = figure["kernel"]["mean"], figure["virtual"]["mean"]
    if virtual is None:
        return f"{shown(kernel)}, -"
    first = shown(kernel, kernel or virtual).split()[0]
    text = f"{first}, {shown(virtual, kernel or virtual)}".removesuffix(" rtt")
    return f"**{text}**" if figure["reads"] == "differs" else text


def tolerances() -> Iterator[str]:
    """The table of tolerances in Markdown, figures with the same one together."""
    yield "| figures | agree within | why so far |"
    yield "|---|---|---|"
    for tolerance in dict.fromkeys(TOLERANCES.values()):
        titles = ", ".join(_FIGURE[key].title for key, each in TOLERANCES.items() if each == tolerance)
        yield f"| {titles} | {tolerance.said} | {tolerance.why} |"


if __name__ == "__main__":
    print("\n".join(tolerances()), end="\n\n")
    print("\n".join(lines([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]])))
