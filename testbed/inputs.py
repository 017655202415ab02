"""Files that people write and name: `-` is standard input, and text may begin with a byte order mark, as editors and
spreadsheets on Windows write it (Unicode 15, section 23.8)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from mrc_testbed.testbed.folders import as_held, hold, let_go

STANDARD_STREAM = Path("-")
"""Standard input where a file is read, standard output where JSON is written."""
ONLY_JSON = "give the name of a file; --json alone goes to standard output"
BYTE_ORDER_MARK = "\ufeff"
_MOST_BYTES = 1 << 24
"""Of standard input, which is kept, because a command may read its files more than once."""


class _OfOthers:
    """The folder of somebody else, and what its files held when they were read."""

    folder: Path | None = None
    known: dict[Path, bytes]


@contextmanager
def files_of_others(folder: Path) -> Iterator[Path]:
    """The folder, held. Meanwhile each file in it is read once, however often it is asked for: its owner may swap it at
    any time. Raises OSError."""
    _OfOthers.folder, _OfOthers.known = hold(folder), {}
    try:
        yield _OfOthers.folder
    finally:
        _OfOthers.folder = None
        let_go(folder)


def _read_once(path: Path) -> bytes:
    if path not in _OfOthers.known:
        with path.open("rb") as content:
            _OfOthers.known[path] = content.read(_MOST_BYTES)
    return _OfOthers.known[path]


def input_bytes(path: Path, most: int = _MOST_BYTES) -> bytes:
    """The first `most` bytes of a file, which may be a pipe or never end, or of standard input. Raises OSError,
    ValueError."""
    if path == STANDARD_STREAM:
        return _all_of(sys.stdin.buffer)[:most]
    path = as_held(path)
    if path.parent == _OfOthers.folder:
        return _read_once(path)[:most]
    with path.open("rb") as content:
        return content.read(most)


def input_text(path: Path) -> str:
    """The same as text, without a byte order mark, and with line ends of Unix. Raises OSError, ValueError."""
    return input_bytes(path).decode("utf-8-sig").replace("\r\n", "\n")


@cache
def _all_of(stream: IO[bytes]) -> bytes:
    return stream.read(_MOST_BYTES)
