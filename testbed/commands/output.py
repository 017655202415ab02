"""Files that an option asks for."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.inputs import ONLY_JSON, STANDARD_STREAM


def write_asked(option: str, path: Path, text: str) -> None:
    """Write what `option` asks for. Raises UsageError."""
    from mrc_testbed.testbed.rundir.ownership import write_given

    if path == STANDARD_STREAM:
        raise UsageError(f"{option} -: {ONLY_JSON}")
    try:
        write_given(path, text)
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot be written: {error.strerror}") from error


def require_free(path: Path, force: bool, read: Path | None = None, folder: bool = False) -> None:
    """Raises UsageError for what is not written over: a link, a folder where a file is to be or the other way round,
    what was `read`, and without `force` what is there."""
    if path.is_symlink():
        raise UsageError(f"{path}: is a link, and what it leads to is not written; give another name")
    if path.exists():
        if path.is_dir() is not folder:
            raise UsageError(f"{path}: is {'no' if folder else 'a'} folder; give another name")
        if read and path.samefile(read):
            raise UsageError(f"{path}: is what was read; give another name by -o")
        if not force:
            raise UsageError(f"{path}: already exists; give another name, or --force to overwrite it")
