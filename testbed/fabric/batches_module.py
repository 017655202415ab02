"""The extension for packets in batches (hosts/batches.py), compiled once per state of its source and Python."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from mrc_testbed.hosts import batches, compiled
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric.compiled import report_missing, run_compiler, store

FIX = "apt-get install clang libc6-dev libpython3-dev, then make setup"
_WHAT = "the extension for packets in batches"
_COMPILER = "clang"


def module_folder() -> Path:
    """The folder with it, made where it is not there or is damaged.

    Raises MissingCapability without clang or Python's headers, or if clang rejects the source.
    """
    target = Path(batches.folder())
    if not compiled.is_whole(str(target)):
        shutil.rmtree(target, ignore_errors=True)
        _compile(target)
    return target


def _compile(target: Path) -> None:
    headers = sysconfig.get_paths()["include"]
    if shutil.which(_COMPILER) is None:
        raise MissingCapability(f"{_WHAT} is not made: clang is missing", FIX)
    if not Path(headers, "Python.h").exists():
        raise MissingCapability(f"{_WHAT} is not made: Python's headers are missing", FIX)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / target.name
        made.mkdir()
        command = [_COMPILER, *batches.FLAGS, f"-I{headers}", batches.SOURCE, "-o", str(made / batches.FILE)]
        run_compiler(command, _WHAT, FIX)
        (made / compiled.SUMS).write_text(compiled.sums(str(made)), encoding="utf-8")
        store(made, target, _WHAT)


if __name__ == "__main__":
    sys.exit(report_missing(module_folder))
