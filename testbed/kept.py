"""What is made of the program's own files and takes long, such as the list of shipped scenarios: kept in the user's
cache folder until one of these files changes.

A cache that cannot be read is made again; one that cannot be written, or belongs to another user, is left alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.state import FOLDER
from mrc_testbed.testbed.version import PLACE
from mrc_testbed.testbed.whole_files import write_whole

_READ = ("testbed", "hosts", "topos", "scenarios")
"""Folders of the program whose files decide what is made."""


def kept(name: str, make: Callable[[], Any], place: Path = PLACE) -> Any:
    """What `make` returns, which JSON can hold, or what it returned when the files in `place` were the same."""
    stamp = _stamp(place)
    file = _cache() / f"{name}.json"
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["stamp"] == stamp:
            return found["made"]
    made = make()
    with suppress(OSError):
        _write(file, json.dumps({"stamp": stamp, "made": made}))
    return made


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / FOLDER


def _stamp(place: Path) -> str:
    """Names, sizes and times of all files: reading them would take longer than what is kept."""
    files = sorted(file for folder in _READ for file in _files(str(place / folder)))
    return sha256(repr((str(place), files)).encode()).hexdigest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                found = entry.stat()
                yield entry.path, found.st_size, found.st_mtime_ns


def _write(file: Path, text: str) -> None:
    """Root leaves no file of its own in the home of somebody else."""
    home = file.parents[1]
    if hasattr(os, "geteuid") and home.exists() and home.stat().st_uid != os.geteuid():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
