"""The protocol core, the loop around it and the network in virtual time as machine code, which is called the core
here: made by `make setup` (tools/compile_core.py), used wherever it fits.

It lies in the Python environment, in a folder named by a hash of the sources and of this Python: what was made of other
sources is never found. Without it the same sources run in Python, slower and with the same results. So they do where
it is a torn copy, or one that this system cannot load, which `complaint` tells.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from zlib import crc32

SWITCH = "MRC_TESTBED_CORE"
"""Environment variable: `python` leaves machine code alone."""
SUMS = "sums"
"""File with the size and the CRC-32 of each file of machine code beside it: a torn copy ends Python by a signal."""
LIBRARY = "mrc_core__mypyc"
"""The module that holds the machine code of all others."""
SUFFIX = EXTENSION_SUFFIXES[0]
"""Of files of machine code; it names this Python and the machine."""
CACHE = os.path.join(sys.prefix, "var", "mrc-testbed")
ROOMS = ("hosts", "testbed/virtual")
FILES = ("testbed/switching/port_counts.py", "testbed/switching/thresholds.py")
"""What the network in virtual time needs of another room."""
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def sources() -> list[str]:
    """All files whose types something compiled relies on: paths from the folder that `hosts` is in."""
    found = [name for name in FILES if os.path.exists(os.path.join(_ROOT, name))]
    for room in ROOMS:
        for folder, _, names in os.walk(os.path.join(_ROOT, room)):
            inside = os.path.relpath(folder, _ROOT)
            found += [os.path.join(inside, name) for name in names if name.endswith(".py")]
    return sorted(found)


def folder() -> str:
    """Where machine code of the present sources for this Python is, whether it exists or not."""
    from hashlib import sha256

    key = sha256(f"{SUFFIX} {sys.version}".encode())
    for source in sources():
        with open(os.path.join(_ROOT, source), "rb") as file:
            key.update(source.encode() + b"\0" + file.read() + b"\0")
    return os.path.join(CACHE, f"core-{key.hexdigest()[:16]}")


class _Finder:
    """Finds the modules in a folder of machine code, each a file with the module's full name."""

    def __init__(self, place: str) -> None:
        self._files = {
            name.removesuffix(SUFFIX): os.path.join(place, name) for name in os.listdir(place) if name.endswith(SUFFIX)
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder."""
        file = self._files.get(fullname)
        if file is None:
            return None
        return spec_from_file_location(fullname, file, loader=ExtensionFileLoader(fullname, file))


def use(place: str) -> None:
    """Take from `place` what is imported from now on. Raises ImportError where this system cannot load it."""
    finder = _Finder(place)
    sys.meta_path.insert(0, finder)
    try:
        import_module(LIBRARY)
    except ImportError:
        sys.meta_path.remove(finder)
        raise


def sums(place: str) -> str:
    """What SUMS must say of the machine code in `place`. Raises OSError."""
    lines = []
    for name in sorted(each for each in os.listdir(place) if each.endswith(SUFFIX)):
        with open(os.path.join(place, name), "rb") as file:
            content = file.read()
        lines.append(f"{name} {len(content)} {crc32(content):08x}\n")
    return "".join(lines)


def is_whole(place: str) -> bool:
    """Every file of machine code in `place` is as it was made."""
    try:
        with open(os.path.join(place, SUMS), encoding="utf-8") as file:
            return file.read() == sums(place)
    except (OSError, ValueError):
        return False


def use_what_fits() -> None:
    """Use the machine code that was made of these sources, if there is any."""
    if os.environ.get(SWITCH) == "python" or not _any_made():
        return
    place = folder()
    if not os.path.isdir(place):
        return
    if not is_whole(place):
        _unusable.append(f"{place} is damaged; `make setup` makes it again")
        return
    try:
        use(place)
    except ImportError as error:
        _unusable.append(f"{place} cannot be loaded: {error}")


_unusable: list[str] = []


def complaint() -> str:
    """Why machine code that is there for these sources is not used, although it was not switched off; else empty."""
    return f"the compiled core is not used, runs are slower: {_unusable[0]}" if _unusable else ""


def advice() -> str:
    """Why this process is slow and what ends that, where it runs from a checkout that the core was not compiled in;
    else empty: a wheel has nothing to compile, and `complaint` tells what cannot be used."""
    can_be_made = os.path.exists(os.path.join(_ROOT, "tools", "compile_core.py"))
    if in_use() == "compiled" or os.environ.get(SWITCH) == "python" or _unusable or not can_be_made:
        return ""
    return (
        "the core runs in Python here, with the same results: runs in virtual time take four times the CPU time, "
        f"on the kernel a third more; {_remedy()} compiles it, in about two minutes"
    )


def _remedy() -> str:
    from sysconfig import get_paths

    headers = os.path.exists(os.path.join(get_paths()["include"], "Python.h"))
    return "`make setup`" if headers else "`apt-get install libpython3-dev`, then `make setup`,"


def _any_made() -> bool:
    """Spares everybody without machine code the reading of all sources."""
    try:
        return any(name.startswith("core-") for name in os.listdir(CACHE))
    except OSError:
        return False


def in_use() -> str:
    """`compiled` or `Python`: how the core of this process runs."""
    return "compiled" if any(isinstance(finder, _Finder) for finder in sys.meta_path) else "Python"


def described() -> str:
    """`in_use`, and for Python why that is."""
    if in_use() == "compiled":
        return "compiled"
    if os.environ.get(SWITCH) == "python":
        return f"Python ({SWITCH}=python)"
    if _unusable:
        return f"Python ({_unusable[0]})"
    return "Python (not compiled here; make setup does it if there is clang and libpython3-dev)"
