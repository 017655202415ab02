"""What a path is that the user gives: a benchmark over the MRC API, a plugin of NCCL's interface, or neither."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from enum import Enum
from pathlib import Path

from mrc_testbed.testbed.errors import MissingCapability, UsageError

VERSIONS = (9, 8, 7, 6)
"""Of NCCL's network interface: those that nccl_driver.c knows."""
_INTERPRETER = 3
"""The type of a program header (PT_INTERP) that programs have and libraries have not."""
_PLUGIN = re.compile(r" ncclNetPlugin_v(\d+)$", re.MULTILINE)


class Kind(Enum):
    """How a program is run."""

    BENCHMARK = "a benchmark over the MRC API"
    PLUGIN = "a plugin of NCCL's network interface"


def kind_of(path: Path) -> Kind:
    """Raises UsageError for a path that is missing or neither, MissingCapability without `nm`."""
    try:
        head = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if head is None:
        raise UsageError(f"{path}: {'is no file' if path.exists() else 'there is no such file'}")
    if head[:2] == b"#!" or _has_interpreter(head):
        return _executable(path)
    if head[:4] == b"\x7fELF":
        return _plugin(path)
    raise UsageError(f"{path}: is neither a program nor a shared object")


def _executable(path: Path) -> Kind:
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path}: may not be executed; chmod +x {path}")
    return Kind.BENCHMARK


def _plugin(path: Path) -> Kind:
    found = sorted({int(version) for version in _PLUGIN.findall(_symbols(path))})
    if set(found) & set(VERSIONS):
        return Kind.PLUGIN
    known = f"ncclNetPlugin_v{VERSIONS[-1]} to v{VERSIONS[0]}"
    has = f"only version {', '.join(map(str, found))}" if found else "none"
    raise UsageError(f"{path}: is no program, and as a plugin it would export one of {known}, but has {has}")


def _symbols(path: Path) -> str:
    if shutil.which("nm") is None:
        raise MissingCapability("there is no nm, which tells what a shared object exports", "apt-get install binutils")
    command = ["nm", "-D", "--defined-only", "--without-symbol-versions", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _has_interpreter(content: bytes) -> bool:
    """Of an ELF file for 64 bits, which every machine here has."""
    try:
        (offset,) = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        types = [struct.unpack_from("<I", content, offset + number * size)[0] for number in range(count)]
    except struct.error:
        return False
    return content[:5] == b"\x7fELF\x02" and _INTERPRETER in types
