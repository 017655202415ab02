"""Tables of a sweep: a row a try, and frames of its runs one below the other. Parquet where pyarrow is, else CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.report.frames.run import Run
from mrc_testbed.testbed.report.frames.schema import TABLES
from mrc_testbed.testbed.rundir.lines import HISTORY
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario.text.keys import value_text
from mrc_testbed.testbed.sweep.code import version_words
from mrc_testbed.testbed.sweep.folder import CellTry
from mrc_testbed.testbed.sweep.gather import Gathered
from mrc_testbed.testbed.version import install_extra
from mrc_testbed.testbed.whole_files import open_new

if TYPE_CHECKING:
    import pandas as pd

SWEEP = "sweep"
NAMES = tuple(table.name for table in TABLES)
EXTRA = install_extra("sweep")
_PLAIN = (int, float, bool, str)


def has_parquet() -> bool:
    """Whether tables become parquet."""
    return find_spec("pyarrow") is not None


def table_names(words: str) -> list[str]:
    """Names of frames, separated by commas. Raises UsageError for one that is not there."""
    names = [word.strip() for word in words.split(",") if word.strip()]
    wrong = next((name for name in names if name not in NAMES), None)
    if wrong:
        there_are = did_you_mean(wrong, NAMES) or f"; there are {', '.join(NAMES)}"
        raise UsageError(f"--tables {words}: there is no table {wrong!r}{there_are}")
    return names


def without_evidence(found: Gathered) -> int:
    """How many of the believed runs lack what frames are made of. Raises UsageError where all do."""
    runs = [one for one in found.believed() if one.document.get("run")]
    lacking = sum(not _has_evidence(one) for one in runs)
    if lacking and lacking == len(runs):
        raise UsageError(
            "--tables: no run came with its evidence, as with --fetch summary; only a new sweep with --fetch evidence"
            " has tables"
        )
    return lacking


def _has_evidence(one: CellTry) -> bool:
    return (one.folder / HISTORY.file).is_file()


def write_tables(found: Gathered, names: Sequence[str]) -> list[Path]:
    """`sweep.parquet`, and a file for each frame of `names` with the rows of all believed runs that came with their
    evidence. Raises RunError."""
    import pandas as pd

    written = [_write(found.folder.path, SWEEP, pd.DataFrame(list(_rows(found))))]
    for name in names:
        parts = [_of_run(one, name) for one in found.believed() if _has_evidence(one)]
        written.append(_write(found.folder.path, name, pd.concat(parts) if parts else pd.DataFrame()))
    return written


def _of_run(one: CellTry, name: str) -> pd.DataFrame:
    frame: pd.DataFrame = getattr(Run(one.folder), name).copy()
    frame.insert(0, "cell", one.cell.id)
    frame.insert(1, "version", version_words(one.document))
    return frame


def _rows(found: Gathered) -> Iterator[dict[str, Any]]:
    for cell in found.cells:
        for one in cell.tries:
            document = one.document
            run = document.get("run") or {}
            yield {
                **{"cell": cell.cell.id, "try": one.number, "believed": one is cell.believed, "name": cell.cell.name},
                **{"seed": cell.cell.seed, "world": cell.cell.world, "transport": cell.cell.transport},
                **{key: value if isinstance(value, _PLAIN) else value_text(value) for key, value in _settings(cell)},
                **{key: document.get(key) for key in ("verdict", "exit_code", "reason", "seconds", "wall_seconds")},
                **(document.get("machine") or {}),
                **{key: document.get(key) for key in ("worker", "version", "commit")},
                **run.get("figures", {}),
                **{f"fidelity.{name}": value for name, value in _fidelity(run)},
                "folder": str(one.folder.relative_to(cell.home.path)),
            }


def _settings(cell: Any) -> Iterator[tuple[str, Any]]:
    yield from cell.cell.settings.items()


def _fidelity(run: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    figures = (run.get("fidelity") or {}).get("figures", ())
    return ((figure["name"], figure["observed"]) for figure in figures)


def _write(folder: Path, name: str, frame: pd.DataFrame) -> Path:
    mixed = [key for key in frame.columns if frame[key].dtype == object]
    frame[mixed] = frame[mixed].astype("string")
    path = folder / f"{name}.{'parquet' if has_parquet() else 'csv'}"
    try:
        with open_new(path) as file:  # where the folder was sent, the name may be that of a link
            if has_parquet():
                frame.to_parquet(file, index=False)
            else:
                frame.to_csv(file, index=False, lineterminator="\n")
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    give((path,))
    return path
