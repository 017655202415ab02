"""The bytes of a capture file in order, also gzipped or from a pipe; knows how far it has read."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import IO, Any, cast

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.inputs import STANDARD_STREAM

_GZIP = b"\x1f\x8b"


class Damage(Exception):
    """What is wrong with a capture file, and where."""


class ByteStream:
    """A file from its begin on. `at`: bytes read so far, of a gzipped file after unpacking."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError."""
        self.at = 0
        try:
            plain = cast(io.BufferedReader, sys.stdin.buffer) if path == STANDARD_STREAM else path.open("rb")
            packed = plain.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from error
        self._plain = plain
        self._file = cast(IO[bytes], gzip.GzipFile(fileobj=cast(Any, plain))) if packed else plain

    def take(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end of the file. Raises Damage."""
        try:
            got = self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise Damage(f"byte {self.at}: cannot be read: {error}") from None
        self.at += len(got)
        return got

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._plain.close()
