"""Packets in batches: where the extension in C for it is (hosts/c/batches.c), and whether it is used.

`make setup` compiles it (testbed/fabric/batches_module.py). It lies in the Python environment, in a folder named by a
hash of its source and of this Python, so that what was made of another source is never found. Without it each packet
is a call of its own, with the same books.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from mrc_testbed.hosts import compiled

SWITCH = "MRC_TESTBED_SOCKETS"
"""Environment variable: `python` leaves the extension alone."""
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "c", "batches.c")
FLAGS = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers")
"""How clang is called."""
NAME = "batches"
FILE = NAME + compiled.SUFFIX
MOST = 32
"""Packets in one call of the kernel: `MOST` of the source."""


def folder() -> str:
    """Where the extension of the present source for this Python is, whether it exists or not. Raises OSError."""
    from hashlib import sha256

    with open(SOURCE, "rb") as file:
        key = sha256(f"{compiled.SUFFIX} {sys.version} {FLAGS}".encode() + file.read())
    return os.path.join(compiled.CACHE, f"{NAME}-{key.hexdigest()[:16]}")


@cache
def found() -> tuple[Any, str]:
    """The extension, and why there is none: one of them, the other None or empty."""
    if os.environ.get(SWITCH) == "python":
        return None, f"{SWITCH}=python"
    try:
        place = folder()
        if not os.path.isdir(place):
            return None, "not compiled here; make setup does it if there is clang and libpython3-dev"
        if not compiled.is_whole(place):
            return None, f"{place} is damaged; `make setup` makes it again"
        return _loaded(os.path.join(place, FILE)), ""
    except (OSError, ImportError) as error:
        return None, f"it cannot be loaded: {error}"


def _loaded(file: str) -> Any:
    spec = spec_from_file_location(NAME, file, loader=ExtensionFileLoader(NAME, file))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_use() -> str:
    """`batches` or `single`: how packets go through sockets in this process."""
    return "batches" if found()[0] is not None else "single"


def described() -> str:
    """`in_use`, and for single packets why that is."""
    extension, why_not = found()
    return "batches (recvmmsg, sendmmsg)" if extension is not None else f"single packets ({why_not})"
