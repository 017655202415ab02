"""Text files of others, line by line: bounded in memory, and every mistake with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mrc_testbed.testbed.errors import UsageError

MOST_FILE_BYTES = 256 << 20
MOST_LINE_BYTES = 1 << 16
_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)


class FormatError(UsageError):
    """A file of others that cannot be read. `place`: of what is wrong, such as `line 7`; empty for the whole file."""

    def __init__(self, file: Path, place: str, reason: str) -> None:
        super().__init__(f"{file}: {place}: {reason}" if place else f"{file}: {reason}")
        self.file, self.place, self.reason = file, place, reason


class FilePlace:
    """A line of a file: what raises its mistakes."""

    def __init__(self, file: Path) -> None:
        self.file, self.line = file, 0

    def wrong(self, reason: str) -> FormatError:
        """The mistake of this line."""
        return FormatError(self.file, f"line {self.line}" if self.line else "", reason)

    def whole(self, text: str, what: str, most: int, least: int = 0) -> int:
        """A whole number. Raises FormatError."""
        value = int(text) if _DIGITS.fullmatch(text) else -1
        if not least <= value <= most:
            raise self.wrong(f"{what} is {shown(text)}, and must be a whole number from {least} to {most}")
        return value


def shown(text: str) -> str:
    """A word of the file as people can read it, however long it is."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def lines_of(place: FilePlace, around: str | None = None) -> Iterator[str]:
    """The lines of `place.file`, without what is `around` them (None: all blanks and line ends); `place` knows the
    number of each. Raises FormatError for what is no text."""
    require_file(place.file)
    read = 0
    try:
        with place.file.open("rb") as content:
            while raw := content.readline(MOST_LINE_BYTES + 1):
                place.line += 1
                read += len(raw)
                if len(raw) > MOST_LINE_BYTES:
                    raise place.wrong(f"has more than {MOST_LINE_BYTES >> 10} KiB")
                if read > MOST_FILE_BYTES:
                    raise place.wrong(f"the file has more than {MOST_FILE_BYTES >> 20} MiB")
                yield _text(raw, place).strip(around)
    except OSError as error:
        raise unreadable(place.file, error) from None
    place.line = 0


def _text(raw: bytes, place: FilePlace) -> str:
    if b"\0" in raw:
        raise place.wrong("is no text: it has a byte of zero")
    try:
        return raw.decode("utf-8-sig" if place.line == 1 else "utf-8")
    except UnicodeDecodeError:
        raise place.wrong("is no text in UTF-8") from None


def require_file(path: Path) -> None:
    """Raises FormatError for what is no file, such as a folder or a pipe."""
    if not path.is_file():
        raise FormatError(path, "", "is no file" if path.exists() else "there is no such file")


def size_of(*files: Path) -> int:
    """Bytes of all of them. Raises FormatError."""
    for file in files:
        require_file(file)
    return sum(file.stat().st_size for file in files)


def unreadable(file: Path, error: OSError) -> FormatError:
    """The mistake of a file that the system does not read."""
    return FormatError(file, "", f"cannot be read: {error.strerror or error}")
