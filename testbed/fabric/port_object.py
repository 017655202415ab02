"""Compiles the port program, once per state of its source: for packets of MRC, and for those without encapsulation.

The object lies in the Python environment (`.venv`), where `make setup` puts it as the user and `sudo` finds it. A run
without an object compiles it, if the machine has clang.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import MissingCapability

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
    target = cached_path(plain)
    if not target.exists():
        _compile(target, flags(plain))
    return target


def flags(plain: bool) -> tuple[str, ...]:
    """How clang is called."""
    return (*_FLAGS, *(_PLAIN if plain else ()))


def cached_path(plain: bool = False) -> Path:
    """Path of the object for the present source, whether it exists or not."""
    # Debian's headers sit in a folder named after the machine, so the machine belongs to the key.
    key = hashlib.sha256(SOURCE.read_bytes() + " ".join((*flags(plain), platform.machine())).encode())
    for header in sorted(_HEADERS.glob("*.h")):
        key.update(header.read_bytes())
    name = f"{'plain' if plain else 'port'}-{key.hexdigest()[:16]}.bpf.o"
    return Path(sys.prefix) / "var" / "mrc-testbed" / name


def _compile(target: Path, how: Sequence[str]) -> None:
    if shutil.which(_COMPILER) is None:
        raise MissingCapability("clang is missing and the port program has not been compiled before", FIX)
    content = _compiled(how)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder) / target.name
            fresh.write_bytes(content)
            os.replace(fresh, target)
        _hand_over(target)
    except OSError as error:
        raise MissingCapability(
            f"the port program cannot be stored: {error}", f"make {target.parent} a folder that can be written"
        ) from None


def _compiled(how: Sequence[str]) -> bytes:
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    command = [_COMPILER, *how, include, "-c", str(SOURCE), "-o", "-"]
    try:
        result = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise MissingCapability(f"clang cannot be started: {error.strerror}", FIX) from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").splitlines()
        first = next((line for line in lines if "error" in line), "no message")
        raise MissingCapability(f"clang does not compile the port program: {first.strip()}", FIX)
    return result.stdout


def _hand_over(target: Path) -> None:
    """Give a root-made file to the owner of the environment, who must be able to remove it."""
    owner = Path(sys.prefix).stat()
    if os.geteuid() == 0:
        for path in (target, target.parent, target.parent.parent):
            os.chown(path, owner.st_uid, owner.st_gid)


def main() -> int:
    """Compile for `make setup`. A failure is only reported: plain shapers still work."""
    try:
        for plain in (False, True):
            object_file(plain)
    except MissingCapability as missing:
        print(f"setup: {missing}", file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
