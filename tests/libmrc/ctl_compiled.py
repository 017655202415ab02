"""Compiles C of the controller API for its tests, with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric.verbs_library import libraries
from tests.hangs import HANGS_S

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "hosts/libmrc"
PURE = ("expand", "life", "fmt", "ev", "own", "cc", "queue", "batch", "paths", "layout")
"""Files of the controller API that need nothing of the rest of the library."""
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-pthread", f"-I{SOURCES}")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILERS = ("gcc", "cc", "clang")


def pure_sources() -> list[Path]:
    """The pure files."""
    return [SOURCES / f"ctl_{name}.c" for name in PURE]


def built(name: str) -> Path:
    """One of the libraries that users get. Skips the test if it cannot be made."""
    try:
        return libraries() / name
    except MissingCapability as missing:
        pytest.skip(str(missing))


def compiled(target: Path, sources: list[Path], *flags: str) -> Path:
    """Compiles and links `sources` into `target`, by the first compiler that is there and knows the flags.

    Skips the test if none does.
    """
    found = [compiler for compiler in COMPILERS if shutil.which(compiler) and _knows(compiler, flags, target.parent)]
    if not found:
        pytest.skip(f"no C compiler with {' '.join(flags)}")
    result = _compile(found[0], target, sources, flags)
    assert result.returncode == 0, result.stderr
    return target


def _knows(compiler: str, flags: tuple[str, ...], folder: Path) -> bool:
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    return _compile(compiler, folder / "empty", [source], flags).returncode == 0


def _compile(
    compiler: str, target: Path, sources: list[Path], flags: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    command = [compiler, *FLAGS, *flags, *map(str, sources), "-o", str(target)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(program: Path, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs it with `given` on stdin."""
    return subprocess.run(
        [str(program), *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
        env=environment,
    )
