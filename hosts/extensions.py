"""Extensions for CPython in C (hosts/c): where each is, and whether it can be used.

`make setup` compiles them (testbed/fabric/extensions.py). Each lies in the Python environment, in a folder named by a
hash of its source and of this Python, so that what was made of another source is never found. All that they do can be
done without them, slower.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from mrc_testbed.hosts import compiled

FLAGS = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers")
"""How clang is called."""
_SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "c")


@dataclass(frozen=True)
class Extension:
    """`name`: of the module, and of its source; `what`: in messages; `switch`: the environment variable that leaves it
    alone where it has the value `off`."""

    name: str
    what: str
    switch: str
    off: str
    sources: str = _SOURCES

    @property
    def source(self) -> str:
        """The file in C."""
        return os.path.join(self.sources, f"{self.name}.c")

    @property
    def file(self) -> str:
        """Name of the file that is made of it."""
        return self.name + compiled.SUFFIX

    def folder(self) -> str:
        """Where the extension of the present source for this Python is, whether it exists or not. Raises OSError."""
        from hashlib import sha256

        with open(self.source, "rb") as file:
            key = sha256(f"{compiled.SUFFIX} {sys.version} {FLAGS}".encode() + file.read())
        return os.path.join(compiled.CACHE, f"{self.name}-{key.hexdigest()[:16]}")


@cache
def found(extension: Extension) -> tuple[Any, str]:
    """The module, and why there is none: one of them, the other None or empty."""
    if os.environ.get(extension.switch) == extension.off:
        return None, f"{extension.switch}={extension.off}"
    try:
        place = extension.folder()
        if not os.path.isdir(place):
            return None, "not compiled here; make setup does it if there is clang and libpython3-dev"
        if not compiled.is_whole(place):
            return None, f"{place} is damaged; `make setup` makes it again"
        return _loaded(extension.name, os.path.join(place, extension.file)), ""
    except (OSError, ImportError) as error:
        return None, f"it cannot be loaded: {error}"


def _loaded(name: str, file: str) -> Any:
    spec = spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
