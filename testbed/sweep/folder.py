"""The folder of a sweep: what is to be run, and every try of it.

    sweep.json           what was planned, and by which version
    cells.jsonl          a line a cell, in the order in which they are begun
    scenarios/<id>/      the scenario of a cell as it is run, with its plugins
    cells/<id>/<try>/    cell.json and the evidence of a try; the first conclusive one is believed

A try appears whole or not at all, so a folder is as good after a kill as before.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.consent import TRUST, trusts
from mrc_testbed.testbed.errors import ExitCode, RunError, UsageError
from mrc_testbed.testbed.folders import require_own_way
from mrc_testbed.testbed.report.outcome import gravest
from mrc_testbed.testbed.rundir.files import (
    MOST_DOCUMENT_BYTES,
    RecordError,
    open_plain,
    read_json,
    read_lines,
    refuse_links,
    write_json,
)
from mrc_testbed.testbed.rundir.ownership import claimed, give, is_running
from mrc_testbed.testbed.scenario import SCENARIO_FILE
from mrc_testbed.testbed.scenario.model.offered import COPIES
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.beside import COPIES as TRACES
from mrc_testbed.testbed.sweep.code import code_version, version_words
from mrc_testbed.testbed.sweep.evidence import CELL_FILE, unpack

SWEEP_FILE = "sweep.json"
CELLS_FILE = "cells.jsonl"
SCENARIOS, CELLS = "scenarios", "cells"
FORMAT = 3
BELIEVED = (ExitCode.PASS, ExitCode.FAIL)
"""Pass, measured, died, fail: the machine had no part in it."""
_UNFINISHED = ".new-"
_ID, _COPY, _TRACE = re.compile(r"[0-9a-f]{12}"), re.compile(r"[^/\\\0]+\.py"), re.compile(r"[^/\\\0]+")
"""Of a cell, and names of the copies of plugins and of data files."""
_OLD_S = 3600
"""Nobody writes a try for so long."""


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One run that is wanted.

    `id`: of its scenario as it is run, with plugins and the number of its repetition; `sha256`: of the text of the
    scenario alone; `settings`: of its matrix cell, by key; `cpus`: CPU seconds a second
    that its machine must carry, 0 in virtual time; `expected_s`: how long it takes; `plugins`: the SHA-256 of the
    copies of its plugins, by file name, and `traces` the same of its data files."""

    id: str
    sha256: str
    name: str
    file: str
    number: int
    seed: int
    settings: Mapping[str, Any]
    world: str
    transport: str
    cpus: float
    expected_s: float
    plugins: Mapping[str, str]
    traces: Mapping[str, str] = field(default_factory=dict)

    @property
    def copies(self) -> dict[str, str]:
        """The SHA-256 of all copies, by their paths from its scenario."""
        plugins = {f"{COPIES}/{name}": known for name, known in self.plugins.items()}
        return plugins | {f"{TRACES}/{name}": known for name, known in self.traces.items()}

    @property
    def on_kernel(self) -> bool:
        """It builds a fabric; a machine carries one at a time."""
        return self.world == WorldKind.KERNEL


@dataclass(frozen=True, slots=True)
class CellTry:
    """One try of a cell, and what its cell.json says."""

    cell: SweepCell
    number: int
    folder: Path
    document: Mapping[str, Any]

    @property
    def exit_code(self) -> ExitCode:
        """Of the run."""
        return ExitCode(self.document["exit_code"])

    @property
    def believed(self) -> bool:
        """It is conclusive."""
        return self.exit_code in BELIEVED


class SweepFolder:
    """A planned sweep. Raises UsageError for a folder that is none, is damaged, or was written in another format."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about = self._about()
        self.cells = tuple(self._cells())

    def _about(self) -> Mapping[str, Any]:
        found = read_json(self.path / SWEEP_FILE)
        if found is None:
            raise UsageError(f"{self.path}: is no sweep: it has no readable {SWEEP_FILE}; `mrc-testbed sweep plan`")
        if found.get("format") != FORMAT:
            raise UsageError(
                f"{self.path / SWEEP_FILE}: is of format {found.get('format')}, this mrc-testbed knows {FORMAT}; plan"
                " it again"
            )
        return found

    def _cells(self) -> Iterator[SweepCell]:
        lines = list(read_lines(self.path / CELLS_FILE))
        if len(lines) != self.about.get("cells"):
            raise UsageError(
                f"{self.path / CELLS_FILE}: has {len(lines)} cells, and {SWEEP_FILE} says"
                f" {self.about.get('cells')}; plan it again"
            )
        for number, line in enumerate(lines, 1):
            cell = _cell_of(line)
            if cell is None:
                raise UsageError(f"{self.path / CELLS_FILE}: line {number} is no cell; plan it again")
            for place in (SCENARIOS, CELLS):
                refuse_links(self.path, place, cell.id)
            yield cell

    def require_version(self) -> None:
        """Raises UsageError where other code planned it: results of both would not be comparable."""
        theirs, ours = version_words(self.about), version_words(code_version())
        if theirs != ours:
            raise UsageError(
                f"{self.path}: was planned by mrc-testbed {theirs}, here is {ours}, whose results would not be"
                " comparable; plan a new sweep, or use that version"
            )

    def require_own(self) -> None:
        """Raises UsageError where another user may exchange the folder, or its cells have code that was never run on
        this machine: who runs a sweep has not read what somebody has sent."""
        require_own_way(self.path)
        for cell in self.cells:
            for name, known in cell.plugins.items():
                if not trusts(known):
                    place = self.path / SCENARIOS / cell.id / COPIES / name
                    why = "is code that was never run on this machine; read it"
                    raise UsageError(f"{place}: {why}: {TRUST}=1 in the environment runs it")

    @cached_property
    def by_id(self) -> Mapping[str, SweepCell]:
        """The cells."""
        return {cell.id: cell for cell in self.cells}

    def scenario(self, cell: SweepCell) -> dict[str, bytes]:
        """The files of its scenario, by path. Raises UsageError where they are not what was planned."""
        folder = self.path / SCENARIOS / cell.id
        refuse_links(folder, COPIES)
        refuse_links(folder, TRACES)
        copies = sorted([*(folder / COPIES).glob("*.py"), *(folder / TRACES).glob("*")])
        try:
            files = {path.relative_to(folder).as_posix(): _content(path) for path in (folder / SCENARIO_FILE, *copies)}
        except OSError as error:
            raise UsageError(f"{error.filename}: cannot be read: {error.strerror}; plan the sweep again") from None
        wanted = {SCENARIO_FILE: cell.sha256, **cell.copies}
        found = {name: sha256(content).hexdigest() for name, content in files.items()}
        # A file too few counts, too: a worker would take one of that name from where it was started.
        changed = next((name for name in wanted | found if wanted.get(name) != found.get(name)), None)
        if changed:
            raise UsageError(f"{folder / changed}: was changed since it was planned; plan a new sweep")
        return files

    def tries(self, cell: SweepCell) -> list[CellTry]:
        """Of a cell, the first first; those without a readable cell.json are none. Raises RecordError for one that
        nobody has written so."""
        found = []
        for folder in self._try_folders(cell):
            document = read_json(folder / CELL_FILE)
            if document and "exit_code" in document:
                if wrong := _wrong_document(document):
                    raise RecordError(folder / CELL_FILE, f"{wrong}; remove {folder}, and the cell is run again")
                found.append(CellTry(cell, int(folder.name), folder, document))
        return found

    def believed(self, cell: SweepCell) -> CellTry | None:
        """Its first conclusive try: always the same one of several, on any machine."""
        return next((one for one in self.tries(cell) if one.believed), None)

    def open_cells(self) -> list[SweepCell]:
        """Those that nothing is believed of yet."""
        return [cell for cell in self.cells if self.believed(cell) is None]

    def keep(self, cell: SweepCell, document: Mapping[str, Any], packed: bytes = b"") -> CellTry:
        """Keep one more try. `packed`: its evidence, if it left any. Raises RunError."""
        above = self.path / CELLS / cell.id
        try:
            above.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=above))
            if packed:
                unpack(packed, new)
            kept = self._settle(cell, dict(document), new)
            give((self.path / CELLS, above, kept.folder, *kept.folder.rglob("*")))
            return kept
        except OSError as error:
            raise RunError(f"cannot write {above}: {error.strerror}; `sweep run` again goes on from here") from error

    def _settle(self, cell: SweepCell, document: dict[str, Any], new: Path) -> CellTry:
        """Under the first free number: a folder that is there takes no other in its place."""
        number = 1 + max((int(folder.name) for folder in self._try_folders(cell)), default=0)
        while True:
            document |= {"cell": cell.id, "try": number}
            write_json(new / CELL_FILE, document)
            new.chmod(0o755)
            folder = new.with_name(str(number))
            try:
                new.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
                number += 1
                continue
            return CellTry(cell, number, folder, document)

    def _try_folders(self, cell: SweepCell) -> list[Path]:
        above = self.path / CELLS / cell.id
        found = [path for path in above.iterdir() if path.name.isdecimal()] if above.is_dir() else []
        for path in found:
            refuse_links(above, path.name)
        return sorted(found, key=lambda path: int(path.name))

    def exit_code(self, cells: Sequence[SweepCell]) -> ExitCode:
        """Of all these cells together, as of several runs. Unknown is never pass: what was not run is inconclusive."""
        counted = (self.believed(cell) or next(reversed(self.tries(cell)), None) for cell in cells)
        return gravest(one.exit_code if one else ExitCode.INCONCLUSIVE for one in counted)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """While this process runs the sweep; what a killed one left unfinished goes. Raises UsageError while another
        one does."""
        if is_running(self.path):
            raise UsageError(f"{self.path}: another process is running this sweep; wait for it, or stop it by Ctrl-C")
        with claimed(self.path):
            for left in self.path.glob(f"{CELLS}/*/{_UNFINISHED}*"):
                if _is_old(left):  # a `sweep cell` may be writing a younger one
                    shutil.rmtree(left, ignore_errors=True)
            yield


def _cell_of(line: Mapping[str, Any]) -> SweepCell | None:
    """The cell of a line of cells.jsonl; None for what `sweep plan` does not write. Its names become paths."""
    try:
        cell = SweepCell(**line)
    except TypeError:
        return None
    names = [(cell.plugins, _COPY), (cell.traces, _TRACE)]
    sound = all(isinstance(each, dict) and all(map(kind.fullmatch, each)) for each, kind in names)
    plain = isinstance(cell.id, str) and _ID.fullmatch(cell.id) and sound and not {".", ".."} & {*cell.traces}
    return cell if plain else None


def _content(path: Path) -> bytes:
    """Raises OSError, RecordError."""
    with open_plain(path, MOST_DOCUMENT_BYTES) as file:
        return file.read(MOST_DOCUMENT_BYTES)


def _wrong_document(document: Mapping[str, Any]) -> str:
    """What of cell.json cannot be used, or nothing."""
    if document["exit_code"] not in list(ExitCode):
        return f"exit_code: {document['exit_code']!r} is none"
    if not isinstance(document.get("seconds"), int | float):
        return "seconds: must be a number"
    kinds = (("verdict", str), ("run", dict | None), ("machine", dict | None), ("warnings", list | None))
    return next((f"{key}: is damaged" for key, kind in kinds if not isinstance(document.get(key), kind)), "")


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > _OLD_S
    except OSError:
        return False


def write_sweep(path: Path, about: Mapping[str, Any], cells: Sequence[SweepCell]) -> None:
    """sweep.json and cells.jsonl; the first last, for it makes a sweep of the folder. Raises OSError."""
    lines = (json.dumps(asdict(cell), separators=(",", ":")) + "\n" for cell in cells)
    (path / CELLS_FILE).write_text("".join(lines), encoding="utf-8")
    write_json(path / SWEEP_FILE, {"format": FORMAT, **about, "cells": len(cells)})
