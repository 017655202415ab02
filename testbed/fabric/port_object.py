"""The port program compiled (testbed/fabric/compiled.py)."""

from __future__ import annotations

import sys
from pathlib import Path

from testbed.fabric.compiled import Recipe, report_only

SOURCE = Path(__file__).with_name("bpf") / "port.bpf.c"
FIX = "make setup, or apt-get install clang libbpf-dev linux-libc-dev"
_FLAGS = ("-O2", "-g", "-target", "bpf", "-mcpu=v3")
_COMPILER = "clang"


def object_file() -> Path:
    """Path of the compiled port program; compiles it if the cache lacks this source.

    Raises MissingCapability without clang, or if clang rejects the source.
    """
    return _recipe().compiled()


def cached_path() -> Path:
    """Path of the object for the present source, whether it exists or not."""
    return _recipe().cached_path()


def _recipe() -> Recipe:
    return Recipe(SOURCE, (*_FLAGS, "-c"), "the port program", "port", ".bpf.o", FIX, _COMPILER)


if __name__ == "__main__":
    sys.exit(report_only(_recipe()))
