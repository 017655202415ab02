"""Compiles the extensions for CPython (hosts/extensions.py), each once per state of its source and Python."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
from functools import partial
from pathlib import Path

from mrc_testbed.hosts import batches, compiled, extensions, huge_pages
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric.compiled import report_missing, run_compiler, store

FIX = "apt-get install clang libc6-dev libpython3-dev, then make setup"
_COMPILER = "clang"


def made(extension: extensions.Extension) -> Path:
    """The folder with it, made where it is not there or is damaged.

    Raises MissingCapability without clang or Python's headers, or if clang rejects the source.
    """
    target = Path(extension.folder())
    if not compiled.is_whole(str(target)):
        shutil.rmtree(target, ignore_errors=True)
        _compile(extension, target)
    return target


def _compile(extension: extensions.Extension, target: Path) -> None:
    what = f"the extension for {extension.what}"
    headers = sysconfig.get_paths()["include"]
    if shutil.which(_COMPILER) is None:
        raise MissingCapability(f"{what} is not made: clang is missing", FIX)
    if not Path(headers, "Python.h").exists():
        raise MissingCapability(f"{what} is not made: Python's headers are missing", FIX)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / target.name
        fresh.mkdir()
        command = [_COMPILER, *extensions.FLAGS, f"-I{headers}", extension.source, "-o", str(fresh / extension.file)]
        run_compiler(command, what, FIX)
        (fresh / compiled.SUMS).write_text(compiled.sums(str(fresh)), encoding="utf-8")
        store(fresh, target, what)


if __name__ == "__main__":
    sys.exit(report_missing(*(partial(made, each) for each in (batches.EXTENSION, huge_pages.EXTENSION))))
