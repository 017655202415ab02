"""Files that people write and name: `-` is standard input, and text may begin with a byte order mark, as editors and
spreadsheets on Windows write it (Unicode 15, section 23.8)."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import IO

STANDARD_STREAM = Path("-")
"""Standard input where a file is read, standard output where JSON is written."""
ONLY_JSON = "give the name of a file; --json alone goes to standard output"
BYTE_ORDER_MARK = "\ufeff"
_MOST_BYTES = 1 << 24
"""Of standard input, which is kept, because a command may read its files more than once."""


def input_bytes(path: Path, most: int = _MOST_BYTES) -> bytes:
    """The first `most` bytes of a file, which may be a pipe or never end, or of standard input. Raises OSError,
    ValueError."""
    if path == STANDARD_STREAM:
        return _all_of(sys.stdin.buffer)[:most]
    with path.open("rb") as content:
        return content.read(most)


def input_text(path: Path) -> str:
    """The same as text, without a byte order mark, and with line ends of Unix. Raises OSError, ValueError."""
    return input_bytes(path).decode("utf-8-sig").replace("\r\n", "\n")


@cache
def _all_of(stream: IO[bytes]) -> bytes:
    return stream.read(_MOST_BYTES)
