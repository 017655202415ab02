"""asked.jsonl: packets that `ping` and `trace` at a prompt have sent in a run.

They leave by raw sockets, which no counter of the kernel tells from others, so who sends them writes how many.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from mrc_testbed.testbed.rundir.files import read_lines

ASKED = "asked.jsonl"


def note_asked(folder: Path, host: str, packets: int) -> None:
    """Add what one command has sent. One write, so that lines of several prompts do not mix."""
    with open(folder / ASKED, "a", encoding="ascii", buffering=1) as file:
        file.write(json.dumps({"host": host, "packets": packets}) + "\n")


def packets_asked(folder: Path) -> Counter[str]:
    """Packets by host. Raises RecordError."""
    found: Counter[str] = Counter()
    for line in read_lines(folder / ASKED):
        found[str(line.get("host"))] += int(line.get("packets", 0))
    return found
