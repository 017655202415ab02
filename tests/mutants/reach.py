"""Test -> the lines of judges that it runs, and its CPU time. Kept from campaign to campaign, while neither changes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from tests.mutants.child import Work, passes
from tests.mutants.exchange import ROOT


class Reach(NamedTuple):
    """What one test reaches."""

    cpu_s: float
    lines: dict[str, list[int]]
    """By file, from the root of the repository."""
    made_of: str
    """Hash of the test's file and of these files."""


def distance(test: str, module: str) -> int:
    """How far a test is from a module by its name: 0 where it is called after it, 1 in the folder of its room, else 2.
    Nearly all tests of a room reach what each verdict is made of; those that are about it have to come first."""
    file, path = Path(test.split("::")[0]), Path(module)
    return 0 if path.stem in file.stem else 1 if file.parent.name == path.parent.name else 2


class Reaches:
    """All of them, in a file."""

    @classmethod
    def below(cls, kept: Path) -> Reaches:
        """Those that a folder keeps."""
        return cls(kept / "reaches.json")

    def __init__(self, file: Path) -> None:
        """Read what is kept there."""
        self._file = file
        told = json.loads(file.read_text()) if file.exists() else {}
        self.of = {name: Reach(*each) for name, each in told.items()}

    def lacking(self, items: Iterable[pytest.Item]) -> list[pytest.Item]:
        """Those to be recorded, since there is nothing of them or something has changed."""
        kept = {item: self.of.get(item.nodeid) for item in items}
        found = [item for item, reach in kept.items() if not reach or reach.made_of != _hash_of(item, reach.lines)]
        for item in found:
            self.of.pop(item.nodeid, None)
        return found

    def take(self, item: pytest.Item, told: Path) -> None:
        """What `record` wrote."""
        seconds, lines = json.loads(told.read_text())
        told.unlink()
        self.of[item.nodeid] = Reach(seconds, lines, _hash_of(item, lines))

    def write(self) -> None:
        """All that is known now."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self.of))


def record(items: Sequence[pytest.Item], rooms: Iterable[str], folder: Path, prepare: Callable[[], None]) -> Work:
    """Run tests one by one for their lines, and write a file for each that passes, by its number in `items`. The time
    is that of a first run, fixtures and all, as a mutant has it too."""

    def work(say: Callable[[str], None]) -> None:
        (folder / "scratch").mkdir()
        for number, item in enumerate(items):
            say(str(number))
            prepare()
            found = _record(item, rooms, folder)
            if found is not None:
                (folder / f"{number}.json").write_text(json.dumps(found))

    return work


def _record(item: pytest.Item, rooms: Iterable[str], folder: Path) -> tuple[float, dict[str, list[int]]] | None:
    tracer = coverage.Coverage(data_file=None, config_file=False, include=[f"{ROOT}/{room}/*" for room in rooms])
    tracer.start()
    began = time.process_time()
    good = passes(item, None, folder / "scratch")
    took = time.process_time() - began
    tracer.stop()
    return (took, _lines(tracer)) if good else None


def _lines(tracer: coverage.Coverage) -> dict[str, list[int]]:
    data = tracer.get_data()
    found = {str(Path(file).resolve().relative_to(ROOT)): data.lines(file) for file in data.measured_files()}
    return {file: sorted(lines) for file, lines in found.items() if lines}


def _hash_of(item: pytest.Item, files: Iterable[str]) -> str:
    return hash_of_lines([hash_of(item.path), *(hash_of(ROOT / file) for file in sorted(files))])


def hash_of_lines(lines: Iterable[str]) -> str:
    """Short, and the same in every process."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@cache
def hash_of(file: Path) -> str:
    """A file's content; empty if there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""
