"""The port program compiled (testbed/fabric/compiled.py): for packets of MRC, and for those without encapsulation."""

from __future__ import annotations

import sys
from pathlib import Path

from mrc_testbed.testbed.fabric.compiled import Recipe, report_only

SOURCE = Path(__file__).with_name("bpf") / "port.bpf.c"
FIX = "make setup, or apt-get install clang libbpf-dev linux-libc-dev"
_HEADERS = SOURCE.parent
_FLAGS = ("-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I{_HEADERS}")
_PLAIN = ("-DPLAIN",)
_COMPILER = "clang"


def object_file(plain: bool = False) -> Path:
    """Path of the compiled port program, `plain`: for packets without encapsulation; compiles it if the cache lacks
    this source.

    Raises MissingCapability without clang, or if clang rejects the source.
    """
    return _recipe(plain).compiled()


def flags(plain: bool) -> tuple[str, ...]:
    """How clang is called."""
    return (*_FLAGS, *(_PLAIN if plain else ()))


def cached_path(plain: bool = False) -> Path:
    """Path of the object for the present source, whether it exists or not."""
    return _recipe(plain).cached_path()


def _recipe(plain: bool) -> Recipe:
    return Recipe(
        SOURCE,
        (*flags(plain), "-c"),
        "the port program",
        "plain" if plain else "port",
        ".bpf.o",
        FIX,
        _COMPILER,
        tuple(sorted(_HEADERS.glob("*.h"))),
    )


if __name__ == "__main__":
    sys.exit(report_only(_recipe(False), _recipe(True)))
