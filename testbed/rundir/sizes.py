"""How long the files of a run were when it ended: what is shorter, longer or gone since then is damaged.

Rows and lines say nothing of those that are missing behind them, so a table that was cut at the end of a line reads as
a shorter run. Documents are one JSON object each, which no part of them is. Pure but for reading and writing sizes.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import NoneType

from mrc_testbed.testbed.rundir.asked import ASKED
from mrc_testbed.testbed.rundir.files import RecordError, read_json, write_json

SIZES = "sizes.json"
ENVIRONMENT = "environment.json"
"""Names places and versions, so its length is none of the run."""
_GROWING = (".jsonl", ".csv", ".yaml")
_DOCUMENTS = ("plan.json", "counters.json", "fidelity.json", "topology.json", ENVIRONMENT)
_FIX = "the folder is damaged; run it again"


def note_sizes(folder: Path) -> None:
    """Write how long the files of a run are that has ended. A folder that takes no more has none, and nothing is known
    of the end of its files."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix in _GROWING or path.name in _DOCUMENTS]
    sizes = {path.name: None if path.name == ENVIRONMENT else path.lstat().st_size for path in files}
    with suppress(OSError):
        write_json(folder / SIZES, {"bytes": {name: size for name, size in sizes.items() if name != ASKED}})


def note_more(folder: Path, name: str) -> None:
    """The same of one file that has grown since, where sizes were noted. Raises RecordError."""
    if noted := _noted(folder / SIZES):
        with suppress(OSError):
            write_json(folder / SIZES, {"bytes": {**noted, name: (folder / name).lstat().st_size}})


def refuse_damaged(folder: Path) -> None:
    """Raises RecordError for the first file of a run that is not as it was left. Of a run that was killed nothing was
    noted; its documents are whole or not there."""
    noted = _noted(folder / SIZES)
    for name, size in noted.items():
        try:
            found = (folder / name).lstat().st_size
        except OSError:
            raise RecordError(folder / name, f"is missing, and the run wrote it: {_FIX}") from None
        if size is not None and found != size:
            raise RecordError(folder / name, f"has {found} bytes, and the run wrote {size}: {_FIX}")
    for name in _DOCUMENTS:
        unknown = noted.get(name) is None and (folder / name).exists()
        if unknown and read_json(folder / name) is None:
            raise RecordError(folder / name, f"is no JSON object: {_FIX}")


def _noted(path: Path) -> dict[str, int | None]:
    """Bytes by name; None: any number. Raises RecordError."""
    noted = read_json(path)
    if noted is None and not path.exists():
        return {}
    sizes = (noted or {}).get("bytes")
    if not isinstance(sizes, dict) or any(
        "/" in name or type(size) not in (int, NoneType) for name, size in sizes.items()
    ):
        raise RecordError(path, f"does not say how long files are: {_FIX}")
    return sizes
