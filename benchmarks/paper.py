"""The third column of docs/paper.md: figures of the paper in virtual time at its published rates.

    mrc-testbed paper --virtual --scale real --out DIR
    python -m benchmarks.paper DIR/*-paper/paper.json [MORE/paper.json ...]

Several files are one pack, as when parts of it ran side by side. A cell has what the expectations named by
`paper.shows` observed, of MRC alone, and the reason where it is not a pass.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.scenario.load.shipped import shipped

DOCUMENT = Path(__file__).parents[1] / "docs" / "paper.md"
HEADING = "in virtual time, at 100 Gb/s a port"
COLUMN = 3
_VARIANT = re.compile(r" (roce-\d+|mrc)$")


def with_column(text: str, runs: Iterable[dict[str, Any]]) -> str:
    """The document with this column before the verdict, in place of the one that is there."""
    found: dict[str, list[str]] = {}
    for run in runs:
        variant = _VARIANT.search(run["figure"])
        if variant is None or variant[1] == "mrc":
            found.setdefault(_key(run["figure"]), []).append(_words(run))
    lines, inside, there = [], False, HEADING in text
    for line in text.splitlines():
        inside = line.startswith("| figure | the paper reports |") or (inside and line.startswith("|"))
        lines.append(_line(line, found, there) if inside else line)
    return "\n".join(lines) + "\n"


def _line(line: str, found: dict[str, list[str]], there: bool) -> str:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    figure = cells[0].strip()
    if figure == "figure":
        new = f" {HEADING} "
    elif set(figure) == {"-"}:
        new = "---"
    else:
        new = f" {'; '.join(found.get(_key(figure), ['not shown']))} "
    return f"|{'|'.join([*cells[:COLUMN], new, *cells[COLUMN + there :]])}|"


def _key(figure: str) -> str:
    """`12` of `12, 13` and of `12, 13 mrc`, `4.2` of `table of 4.2`."""
    return re.sub("^table (of )?", "", figure).split(",")[0].split()[0]


def _words(run: dict[str, Any]) -> str:
    name = f"`{Path(run['file']).name}`: "
    verdict = "" if run["verdict"] == "pass" else f" (**{run['reason']}**)"
    return name + ", ".join(one.replace("|", "\\|").replace(", ", " ") for one in run["observed"]) + verdict


def main() -> None:
    known = {one.path.stem: place for place, one in enumerate(shipped())}
    files = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    runs = sorted((run for file in files for run in file["runs"]), key=lambda run: known[Path(run["file"]).stem])
    DOCUMENT.write_text(with_column(DOCUMENT.read_text(encoding="utf-8"), runs), encoding="utf-8")


if __name__ == "__main__":
    main()
