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
