"""pcap/captures.json: which files there are, and what each holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

FOLDER = "pcap"
INDEX = "captures.json"


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """A pcapng file. `lost`: packets that the kernel had no room for. `full`: it was ended at its size. `comments`: how
    many stand on packets. `damage`: what was wrong with what it was made of, empty when nothing."""

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
    """The captures of a run folder; none where it has no index that can be read."""
    try:
        content = json.loads((folder / FOLDER / INDEX).read_text(encoding="utf-8"))
        return tuple(CaptureFile(**each) for each in content["files"])
    except (OSError, ValueError, TypeError, KeyError):
        return ()
