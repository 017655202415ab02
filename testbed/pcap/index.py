"""pcap/captures.json: the capture files and their content."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from mrc_testbed.testbed.rundir.files import RecordError, read_json

FOLDER = "pcap"
INDEX = "captures.json"


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """A pcapng file. `lost`: packets that the kernel had no room for. `full`: it reached its maximum size. `comments`:
    number of comments on packets. `damage`: damage of the captured data, empty if none."""

    file: str
    link: str
    packets: int
    bytes: int
    lost: int
    full: bool
    comments: int
    damage: str


def index_text(files: Iterable[CaptureFile]) -> str:
    """The content of the index."""
    return json.dumps({"files": [asdict(each) for each in files]}, indent=1) + "\n"


def read_index(folder: Path) -> tuple[CaptureFile, ...]:
    """The captures of a run folder; none without a readable index."""
    try:
        content = read_json(folder / FOLDER / INDEX) or {}
        return tuple(CaptureFile(**each) for each in content["files"])
    except (RecordError, TypeError, KeyError):
        return ()
