"""An empty lesson for authors: every file of one, to be written over."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.scenario.load.shipped import with_own_hint

_TEMPLATE = Path(__file__).parent / "template"


def new_lesson(folder: Path) -> list[Path]:
    """Make the folder of a lesson, which loads and can be tried. Raises UsageError rather than write over anything."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already; name a new folder")
    try:
        make_own(folder)
        made = [_copied(path, folder / path.name) for path in sorted(_TEMPLATE.iterdir())]
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None
    give((folder, *made))
    return made


def _copied(path: Path, target: Path) -> Path:
    target.write_text(with_own_hint(path.read_text(encoding="utf-8")), encoding="utf-8")
    return target
