"""The lines `At 100 Gb/s` of docs/paper.md: figures of the paper in virtual time at its published rates.

    mrc-testbed paper --virtual --scale real --out DIR
    python -m benchmarks.paper DIR/*-paper/paper.json [MORE/paper.json ...]

Several files are one pack, as when parts of it ran side by side. A line has what the expectations named by
`paper.shows` observed, of MRC alone, and the reason where it is not a pass.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.scenario.load.shipped import shipped

DOCUMENT = Path(__file__).parents[1] / "docs" / "paper.md"
HEADING = "At 100 Gb/s:"
WIDTH = 120
_VARIANT = re.compile(r" (roce-\d+|mrc)$")
_ITEM = re.compile(r"^- \*\*([^*]+)\*\*: .*\n(?:  .*\n)+", re.MULTILINE)
"""A figure of the paper, with its lines."""


def with_lines(text: str, runs: Iterable[dict[str, Any]]) -> str:
    """The document with this line before each verdict, in place of the one that is there."""
    found: dict[str, list[str]] = {}
    for run in runs:
        variant = _VARIANT.search(run["figure"])
        if variant is None or variant[1] == "mrc":
            found.setdefault(_key(run["figure"]), []).append(_words(run))
    return _ITEM.sub(lambda item: _with_line(item[0], found.get(_key(item[1]), ["not shown"])), text)


def _with_line(item: str, observed: list[str]) -> str:
    if f"{HEADING} [" in item:  # it refers to a section of its own
        return item
    words = textwrap.TextWrapper(WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)
    line = words.fill(f"{HEADING} {'; '.join(observed)}.")
    without = re.sub(rf"^  - {HEADING}.*\n(?:    .*\n)*", "", item, flags=re.MULTILINE)
    return without.replace("  - Verdict:", f"{line}\n  - Verdict:")


def _key(figure: str) -> str:
    """`12` of `12, 13` and of `12, 13 mrc`, `4.2` of `table of 4.2`."""
    return re.sub("^table (of )?", "", figure).split(",")[0].split()[0]


def _words(run: dict[str, Any]) -> str:
    name = f"`{Path(run['file']).name}`: "
    verdict = "" if run["verdict"] == "pass" else f" (**{run['reason']}**)"
    return name + ", ".join(one.replace(", ", " ") for one in run["observed"]) + verdict


def main() -> None:
    known = {one.path.stem: place for place, one in enumerate(shipped())}
    files = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    runs = sorted((run for file in files for run in file["runs"]), key=lambda run: known[Path(run["file"]).stem])
    DOCUMENT.write_text(with_lines(DOCUMENT.read_text(encoding="utf-8"), runs), encoding="utf-8")


if __name__ == "__main__":
    main()
