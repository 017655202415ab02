"""asked.jsonl: packets that `ping` and `trace` at a prompt have sent in a run.

They leave by raw sockets, which no counter of the kernel tells from others, so who sends them writes how many.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from mrc_testbed.testbed.rundir.files import read_lines, write_failed

ASKED = "asked.jsonl"


def note_asked(folder: Path, host: str, packets: int) -> None:
    """Add what one command has sent. One write, so that lines of several prompts do not mix. Raises RunError."""
    path = folder / ASKED
    try:
        with path.open("a", encoding="ascii", buffering=1) as file:
            owner = folder.stat()
            if os.geteuid() == 0 and os.fstat(file.fileno()).st_uid != owner.st_uid:
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(json.dumps({"host": host, "packets": packets}) + "\n")
    except OSError as error:
        raise write_failed(path, error) from None


def packets_asked(folder: Path) -> Counter[str]:
    """Packets by host. Raises RecordError."""
    found: Counter[str] = Counter()
    for line in read_lines(folder / ASKED):
        found[str(line.get("host"))] += int(line.get("packets", 0))
    return found
