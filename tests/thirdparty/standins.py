"""Compiles the stand-ins, programs of our own that do what those of others do, built as users do: with our headers,
and linked with the libraries in our folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mrc_testbed.testbed.fabric import verbs_library as library

HERE = Path(__file__).parent
_FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{library.SOURCES}")


def benchmark(target: Path, *flags: str) -> Path:
    """Linked with lib_mrc.so by its path. `-DSTANDIN_IS_WRONG`: it sends a wrong byte. Raises MissingCapability."""
    folder = library.libraries()
    link = (str(folder / "lib_mrc.so"), str(folder / library.VERBS))
    return _compile(target, ("standin_benchmark.c",), (*flags, *link))


def plugin(target: Path, *flags: str) -> Path:
    """Linked with -lnv_mrc. `-DSTANDIN_IS_OLD`: of version 6 alone. Raises MissingCapability."""
    link = (
        *flags,
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        f"-L{library.libraries()}",
        "-lnv_mrc",
        f"-l:{library.VERBS}",
    )
    return _compile(target, tuple(path.name for path in sorted(HERE.glob("standin_plugin*.c"))), link)


def _compile(target: Path, sources: tuple[str, ...], link: tuple[str, ...]) -> Path:
    command = [library.compiler(), *_FLAGS, *(str(HERE / name) for name in sources), *link, "-o", str(target)]
    subprocess.run(command, check=True)
    return target
