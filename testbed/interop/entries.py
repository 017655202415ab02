"""The list of programs to judge: JSON that a person writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.inputs import STANDARD_STREAM, input_bytes
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.isolated import python_command

_MOST_BYTES = 1 << 20
_MOST_PROGRAMS = 100
_KEYS = ("name", "program", "role")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")


@dataclass(frozen=True, slots=True)
class ListedProgram:
    """A program. `command`: what is started, in `folder`."""

    name: str
    command: tuple[str, ...]
    folder: Path
    role: Role = Role.BOTH


def ours() -> ListedProgram:
    """Our own endpoint, through the contract as any other."""
    return ListedProgram("mrc-testbed", tuple(python_command("mrc_testbed.hosts.contract")), Path.cwd())


def read_entries(file: Path) -> list[ListedProgram]:
    """All programs of a list. Raises UsageError with the place of what is wrong, and what to write."""
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
    if not isinstance(rows, list) or not 1 <= len(rows) <= _MOST_PROGRAMS:
        raise UsageError(
            f'{file}: must be a list of 1 to {_MOST_PROGRAMS}, as in [{{"name": "mine", "program": ["./mine"]}}]'
        )
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


def _entry(place: str, row: Any, folder: Path) -> ListedProgram:
    if not isinstance(row, dict):
        raise UsageError(f'{place}: must be an object, as in {{"name": "mine", "program": ["./mine"]}}')
    for key in row:
        if key not in _KEYS:
            raise UsageError(f"{place}.{key}: unknown key; there are {', '.join(_KEYS)}")
    name, program, role = row.get("name"), row.get("program"), row.get("role", Role.BOTH)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{place}.name: must be 1 to 40 letters, digits, blanks, dots, - and _, not {name!r}")
    if not isinstance(program, list) or not program or not all(isinstance(word, str) and word for word in program):
        raise UsageError(f'{place}.program: must be a list of texts, as in ["./mine", "--quiet"], not {program!r}')
    if role not in list(Role):
        raise UsageError(f"{place}.role: must be one of {', '.join(Role)}, not {role!r}")
    return ListedProgram(name, (_found(program[0], folder), *program[1:]), folder, Role(role))


def _found(word: str, folder: Path) -> str:
    """A program with a slash is looked for from the folder of the list; one without, in PATH."""
    return str(folder / word) if "/" in word else word
