"""pcap/captures.json: the capture files and their content."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mrc_testbed.testbed.rundir.files import RecordError, read_json

FOLDER = "pcap"
INDEX = "captures.json"
_LATE_NS = 1_000_000
"""A window that begins later is told: timers of a machine that keeps time are late by less."""


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """A pcapng file. `lost`: packets that the kernel had no room for. `full`: it reached its maximum size. `comments`:
    number of comments on packets. `damage`: damage of the captured data, empty if none. `late_ns`: how late the
    latest of its windows began."""

    file: str
    link: str
    packets: int
    bytes: int
    lost: int
    full: bool
    comments: int
    damage: str
    late_ns: int = 0


def index_text(files: Iterable[CaptureFile]) -> str:
    """The content of the index."""
    return json.dumps({"files": [asdict(each) for each in files]}, indent=1) + "\n"


def late_words(late_ns: int) -> str:
    """`began 94 ms late`, when packets may be missing; empty for what any timer is late."""
    return f"began {late_ns / 1e6:.0f} ms late" if late_ns >= _LATE_NS else ""


def read_index(folder: Path) -> tuple[CaptureFile, ...]:
    """The captures of a run folder; none without a readable index."""
    try:
        content = read_json(folder / FOLDER / INDEX) or {}
        return tuple(CaptureFile(**each) for each in content["files"])
    except (RecordError, TypeError, KeyError):
        return ()
