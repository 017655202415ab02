"""Data files that a scenario names, which lie beside it: read once while the scenario is loaded.

In the folder of a run or of a sweep the copies in `traces/` are what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.inputs import input_bytes
from mrc_testbed.testbed.scenario.text.source import SCENARIO_FILE

COPIES = "traces"
"""Folder in a run folder for a copy of every data file."""
MOST_BYTES = 32 << 20


class DataFileMistake(ValueError):
    """Why a data file cannot be used. The text is for the user."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file as it was read. `written`: its name in the scenario."""

    written: str
    content: bytes = field(repr=False)

    @property
    def copy_name(self) -> str:
        """File name of its copy in a run folder."""
        return PurePosixPath(self.written).name

    @property
    def sha256(self) -> str:
        """Of its bytes."""
        return sha256(self.content).hexdigest()

    def text(self) -> str:
        """Raises DataFileMistake for what is no text."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content[: error.start].count(b"\n") + 1
            raise DataFileMistake(f"{self.written}:{line}: is no text in UTF-8") from None


_SCENARIO: ContextVar[Path | None] = ContextVar("file whose data files are read", default=None)


@contextmanager
def data_files_of(scenario: str) -> Iterator[None]:
    """Inside, data files are those beside this file."""
    token = _SCENARIO.set(Path(scenario))
    try:
        yield
    finally:
        _SCENARIO.reset(token)


def data_file(name: str) -> DataFile:
    """The file with this name beside the scenario that is being loaded. Raises DataFileMistake."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise DataFileMistake(f"{name!r} is outside the folder of the scenario; copy it there")
    scenario = _SCENARIO.get()
    if scenario is None:
        raise DataFileMistake(f"{name}: a scenario that is no file has no folder to read it from")
    copy = scenario.parent / COPIES / path.name
    recorded = scenario.name == SCENARIO_FILE and copy.is_file()
    return DataFile(name, _content(copy if recorded else _beside(scenario.parent, path)))


def _beside(folder: Path, name: PurePosixPath) -> Path:
    file = folder / name
    try:
        inside = file.resolve().is_relative_to(folder.resolve())
        there = file.is_file()
    except (OSError, RuntimeError) as error:
        raise DataFileMistake(f"{file} cannot be read: {error}") from None
    if not inside:
        raise DataFileMistake(f"{file} leads out of the folder of the scenario; copy it there")
    if not there:
        near = did_you_mean(file.name, [each.name for each in file.parent.glob(f"*{file.suffix}")])
        raise DataFileMistake(f"there is no file {file}{near}")
    return file


def _content(path: Path) -> bytes:
    try:
        content = input_bytes(path, MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataFileMistake(f"{path} cannot be read: {error}") from None
    if len(content) > MOST_BYTES:
        raise DataFileMistake(f"{path} is larger than {MOST_BYTES >> 20} MiB")
    return content
