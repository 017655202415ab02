"""Compiles and runs the programs of the library's tests."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import verbs_library as library
from tests.workers import made_once

from .fake_daemon import FakeDaemon

HERE = Path(__file__).parent
SOURCES = (HERE / "support.c", *sorted(HERE.glob("program*.c")))
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{library.SOURCES}")
LIGHT = ("chrt", "--idle", "0")
"""Before a command: 64 threads that poll make no kernel test late beside them (sched(7), SCHED_IDLE)."""
SECONDS = 120
"""No test takes as long; it is there so that one that hangs fails."""


def program(folder: Path, *sanitizers: str) -> Path:
    """The program, linked with the library; skips the test where that cannot be compiled."""
    return _or_skip(_made(folder, sanitizers))


def preloaded(folder: Path) -> Path:
    """The program with the library that is all in one."""
    return _or_skip(_made(folder, (), (library.PRELOAD,)))


def _or_skip(made: Path | MissingCapability) -> Path:
    if isinstance(made, MissingCapability):
        pytest.skip(str(made))
    return made


@functools.cache
def _made(
    folder: Path, sanitizers: tuple[str, ...], names: tuple[str, ...] = (library.MRC, library.VERBS)
) -> Path | MissingCapability:
    try:
        libraries = library.sanitized(*sanitizers) if sanitizers else library.libraries()
        compiler = library.compiler(bool(sanitizers))
    except MissingCapability as missing:
        return missing
    target = folder / "-".join(("program", *sanitizers, *names))
    flags = library.sanitizer_flags(*sanitizers) if sanitizers else ()
    link = (*(str(libraries / name) for name in names), f"-Wl,-rpath,{libraries}")
    command = [*LIGHT, compiler, *FLAGS, *flags, *map(str, SOURCES), *link, "-o", str(target)]
    with made_once(target) as wanted:
        if wanted:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            assert result.returncode == 0, result.stderr
    return target


def environment(daemon: FakeDaemon | None, **more: str) -> dict[str, str]:
    """Of a program at this daemon."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("MRC_TESTBED", "LD_"))}
    sanitizers = {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    return {**own, **sanitizers, **(daemon.environment() if daemon else {}), **more}


def run(path: Path, name: str, daemon: FakeDaemon | None, **more: str) -> subprocess.CompletedProcess[str]:
    """One test of the program. Raises `subprocess.TimeoutExpired` if it hangs."""
    return subprocess.run(
        [*LIGHT, str(path), name],
        env=environment(daemon, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
