"""The C library below programs for MRC and RDMA NICs (hosts/libmrc), compiled once per state of its sources.

One folder of the cache holds it in two forms of the same sources:

- `libibverbs.so.1` and `libmrc.so` (also `lib_mrc.so`, `libnv_mrc.so`), to be found by LD_LIBRARY_PATH;
- `libmrc-testbed.so`, all in one, for LD_PRELOAD below programs of a distribution, beside its own libibverbs.so.1.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed import hosts
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric.compiled import cached, report_missing, run_compiler, store

SOURCES = Path(hosts.__file__).with_name("libmrc")
"""The folder of the C sources; programs find `mrc_testbed.h` here."""
VERBS = "libibverbs.so.1"
MRC = "libmrc.so"
PRELOAD = "libmrc-testbed.so"
LINKS = {"lib_mrc.so": MRC, "libnv_mrc.so": MRC}
"""Names by which programs know libmrc.so."""
FIX = "make setup, or apt-get install clang libc6-dev"
_COMPILERS = ("clang", "cc", "gcc")
_SANITIZING = ("gcc", "cc", "clang")
"""Debian's clang comes without the libraries of its sanitizers."""
_WHAT = "the verbs library"
_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", "-pthread")
_LINK = ("-shared", "-Wl,-z,nodelete", "-Wl,-z,defs")
_TWO = ("-DMT_TWO_LIBRARIES",)


@dataclass(frozen=True, slots=True)
class Parts:
    """The sources: those of libibverbs, those of libmrc, and all files that one compiles with."""

    verbs: tuple[Path, ...]
    mrc: tuple[Path, ...]
    all_files: tuple[Path, ...]


def libraries() -> Path:
    """The folder; made if the cache lacks these sources.

    Raises MissingCapability where there is no compiler, or if it rejects the sources.
    """
    return _made("libmrc", ())


def sanitized(*sanitizers: str) -> Path:
    """The same with `-fsanitize=` of these, for tests. Programs that use it must be linked with the same flag.

    Raises MissingCapability like `libraries`, also where the compiler lacks the sanitizer.
    """
    return _made("libmrc-" + "-".join(sanitizers), sanitizer_flags(*sanitizers))


def sanitizer_flags(*sanitizers: str) -> tuple[str, ...]:
    """For a program that uses a sanitized library."""
    return ("-fsanitize=" + ",".join(sanitizers), "-fno-omit-frame-pointer", "-O0")


def compiler(sanitizes: bool = False) -> str:
    """Path of a C compiler. Raises MissingCapability without one."""
    for name in _SANITIZING if sanitizes else _COMPILERS:
        if path := shutil.which(name):
            return path
    raise MissingCapability(f"there is no C compiler and {_WHAT} has not been compiled before", FIX)


def parts() -> Parts:
    """The files of hosts/libmrc, told apart: `mrc.c`, `hint.c` and the controller's belong to libmrc."""
    sources = sorted(SOURCES.glob("*.c"))
    mrc = tuple(each for each in sources if each.name in ("mrc.c", "hint.c") or each.name.startswith("ctl"))
    others = (*sorted(SOURCES.glob("*.h")), *sorted(SOURCES.glob("*.map")))
    return Parts(tuple(each for each in sources if each not in mrc), mrc, (*sources, *others))


def _made(stem: str, flags: tuple[str, ...]) -> Path:
    found = parts()
    # The script that calls the compiler belongs to the key: its calls are no flags alone.
    target = cached(stem, "", (*found.all_files, Path(__file__)), (*_FLAGS, *_LINK, *flags))
    if not target.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / target.name
            made.mkdir()
            _build(made, found, flags)
            store(made, target, _WHAT)
    return target


def _build(folder: Path, found: Parts, flags: tuple[str, ...]) -> None:
    joined = folder / "joined.map"
    joined.write_text("".join((SOURCES / name).read_text() for name in ("verbs.map", "private.map")))
    beside = (str(folder / VERBS), "-Wl,-rpath,$ORIGIN")
    _link(folder / VERBS, found.verbs, (*flags, *_TWO, f"-Wl,--version-script={joined}"))
    _link(folder / MRC, found.mrc, (*flags, *_TWO, *beside))
    _link(folder / PRELOAD, (*found.verbs, *found.mrc), (*flags, f"-Wl,--version-script={SOURCES / 'verbs.map'}"))
    joined.unlink()
    for name, points_to in LINKS.items():
        (folder / name).symlink_to(points_to)


def _link(target: Path, sources: tuple[Path, ...], flags: tuple[str, ...]) -> None:
    sanitizes = any(flag.startswith("-fsanitize") for flag in flags)
    # -z defs is not for sanitizers, whose functions the program brings.
    link = _LINK[:-1] if sanitizes else _LINK
    command = [compiler(sanitizes), *_FLAGS, *link, f"-Wl,-soname,{target.name}", *map(str, sources), *flags]
    run_compiler([*command, "-o", str(target)], _WHAT, FIX, Path(command[0]).name)


if __name__ == "__main__":
    sys.exit(report_missing(libraries))
