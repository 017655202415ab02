"""Writes docs/names.md, what operators call a thing: `python tools/make_names.py`. A test compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mrc_testbed.testbed.switchview.names import GROUPS
from mrc_testbed.testbed.switchview.views import VIEWS

NAMES = Path(__file__).resolve().parents[1] / "docs/names.md"
HEAD = """\
# Names: theirs and ours

Operators know counters by the names of SAI, SONiC, Cumulus and NIC drivers. `show` prints those of a switch under these
names: in the prompts of `shell` and `attach`, and for a finished run.

```sh
mrc-testbed show latest p0-t0-0 queue counters      # as it was at the end; -j: as JSON
sudo mrc-testbed attach -c "show p0-t0-0 srv6 stats"   # now, in the run that is going on
```

Values that were not counted are `N/A`, never 0: trims of plain shapers, or the watermark in runs of older versions. A
switch that reboots begins its counts by uSID again, because its table is written again; all others go on.

"""


def text() -> str:
    """The whole page."""
    return HEAD + "\n".join([*_views(), *_names(), ""])


def _views() -> Iterator[str]:
    yield from ("## Views", "", "| `show SWITCH ...` | what it shows | columns |", "|---|---|---|")
    for words, view in VIEWS.items():
        yield f"| `{words}` | {view.shows} | {', '.join(view.columns)} |"


def _names() -> Iterator[str]:
    for heading, names in GROUPS.items():
        yield from ("", f"## {heading}", "", "| theirs | ours | where | note |", "|---|---|---|---|")
        for name in names:
            where = f"`{name.where}`" if name.where else ""
            yield f"| {name.theirs} | {name.ours} | {where} | {name.note} |"


if __name__ == "__main__":
    NAMES.write_text(text(), encoding="utf-8")
