"""The list of what is to be judged: JSON that a person writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.inputs import STANDARD_STREAM, input_bytes
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.isolated import python_command

_MOST_BYTES = 1 << 20
_MOST_ROWS = 100
_MOST_FILES = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]{0,254}")
_EXAMPLE = '{"name": "mine", "program": ["./mine"]}'


class RowForm(StrEnum):
    """How a row is judged."""

    LINES = "A"
    CHANNEL = "B"
    IMAGE = "image"
    CAPTURE = "pcap"


class Listed(Protocol):
    """A row of the list."""

    @property
    def name(self) -> str:
        """Unique in the list."""

    @property
    def role(self) -> Role:
        """What it does with data."""

    @property
    def form(self) -> RowForm:
        """How it is judged."""


class Startable(Listed, Protocol):
    """A row that can be started as a process."""

    @property
    def folder(self) -> Path:
        """Its current folder."""

    def start(self) -> tuple[Sequence[str], Sequence[str]]:
        """The command that starts it, and the one that ends what killing its group leaves behind, empty for none."""


@dataclass(frozen=True, slots=True)
class ListedProgram:
    """A program. `command`: what is started, in `folder`."""

    name: str
    command: tuple[str, ...]
    folder: Path
    role: Role = Role.BOTH
    form: RowForm = RowForm.LINES

    def start(self) -> tuple[Sequence[str], Sequence[str]]:
        """The command that starts it; nothing is needed to end what it leaves behind."""
        return self.command, ()


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image of a container whose entry point is such a program."""

    name: str
    image: str
    role: Role = Role.BOTH
    form: RowForm = RowForm.IMAGE


@dataclass(frozen=True, slots=True)
class ListedCapture:
    """What somebody recorded. `host`: whose packets are judged, an address or a host of ours; empty: those of both
    ends."""

    name: str
    files: tuple[Path, ...]
    role: Role = Role.BOTH
    host: str = ""
    form: RowForm = RowForm.CAPTURE


def ours() -> ListedProgram:
    """Our own endpoint, through the contract as any other."""
    return ListedProgram("mrc-testbed", tuple(python_command("mrc_testbed.hosts.contract")), Path.cwd())


def read_entries(file: Path) -> list[Listed]:
    """All rows of a list. Raises UsageError with the place of what is wrong, and what to write."""
    try:
        content = input_bytes(file, _MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{file}: is longer than 1 MiB; a list of programs is not")
    try:
        rows = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: not JSON: {error}") from None
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_ROWS:
        raise UsageError(f"{file}: must be a list of 1 to {_MOST_ROWS}, as in [{_EXAMPLE}]")
    folder = Path.cwd() if file == STANDARD_STREAM else file.resolve().parent
    entries = [_entry(f"{file}: [{number}]", row, folder) for number, row in enumerate(rows)]
    _refuse_twins(file, (entry.name for entry in entries))
    return entries


def _refuse_twins(file: Path, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if name.lower() in seen:
            raise UsageError(f"{file}: [{number}].name: {name!r} is there twice; each row needs a name of its own")
        seen.add(name.lower())


def _entry(place: str, row: Any, folder: Path) -> Listed:
    if not isinstance(row, dict):
        raise UsageError(f"{place}: must be an object, as in {_EXAMPLE}")
    what = [key for key in _KINDS if key in row]
    if len(what) > 1:
        raise UsageError(f"{place}.{what[1]}: a row has one of {', '.join(_KINDS)}, and {what[0]} is there, too")
    kind = what[0] if what else "program"
    keys = ("name", kind, "role", *_MORE_KEYS.get(kind, ()))
    for key in row:
        if key not in keys:
            raise UsageError(f"{place}.{key}: unknown key; there are {', '.join(keys)}")
    name, role = row.get("name"), row.get("role", Role.BOTH)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{place}.name: must be 1 to 40 letters, digits, blanks, dots, - and _, not {name!r}")
    if role not in list(Role):
        raise UsageError(f"{place}.role: must be one of {', '.join(Role)}, not {role!r}")
    return _KINDS[kind](place, name, Role(role), row, folder)


def _program(place: str, name: str, role: Role, row: Mapping[str, Any], folder: Path) -> Listed:
    program = row.get("program")
    if not isinstance(program, list) or not program or not all(map(_is_word, program)):
        raise UsageError(f'{place}.program: must be a list of texts, as in ["./mine", "--quiet"], not {program!r}')
    form = row.get("form", RowForm.LINES)
    if form not in (RowForm.LINES, RowForm.CHANNEL):
        raise UsageError(f"{place}.form: must be A (lines, virtual time) or B (sockets, the kernel), not {form!r}")
    return ListedProgram(name, (_found(program[0], folder), *program[1:]), folder, role, RowForm(form))


def _image(place: str, name: str, role: Role, row: Mapping[str, Any], _: Path) -> Listed:
    image = row["image"]
    if not isinstance(image, str) or not _IMAGE.fullmatch(image):
        raise UsageError(f'{place}.image: must be the name of an image, as in "registry.example/mine:1", not {image!r}')
    return ListedImage(name, image, role)


def _capture(place: str, name: str, role: Role, row: Mapping[str, Any], folder: Path) -> Listed:
    words = [row["pcap"]] if isinstance(row["pcap"], str) else row["pcap"]
    if not isinstance(words, list) or not 1 <= len(words) <= _MOST_FILES or not all(map(_is_word, words)):
        raise UsageError(f'{place}.pcap: must be a file, or a list of up to {_MOST_FILES}, as in "mine.pcapng"')
    host = row.get("host", "")
    if not isinstance(host, str):
        raise UsageError(f'{place}.host: must be an address as `mrc-testbed decode` shows it, as in "fd00::1"')
    files = tuple(folder / word for word in words)
    for file in files:
        if not file.is_file():
            raise UsageError(f"{place}.pcap: {file} is no file")
    return ListedCapture(name, files, role, host)


_KINDS: dict[str, Callable[[str, str, Role, Mapping[str, Any], Path], Listed]] = {
    "program": _program,
    "image": _image,
    "pcap": _capture,
}
"""By the key that says what a row is."""
_MORE_KEYS = {"program": ("form",), "pcap": ("host",)}


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _found(word: str, folder: Path) -> str:
    """A program with a slash is looked for from the folder of the list; one without, in PATH."""
    return str(folder / word) if "/" in word else word
