"""Compiles the C sources of this project, each once per state of its source.

What comes of them lies in the Python environment (`.venv`), where `make setup` puts it as the user and `sudo` finds it.
A run that finds nothing there compiles it, if the machine has clang.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric.privileges import can_be_given_to
from mrc_testbed.testbed.terminal import say


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one source is compiled. `what` names the program in messages; the file is called `stem`-HASH`suffix`.

    `headers`: files of ours that it includes.
    """

    source: Path
    flags: tuple[str, ...]
    what: str
    stem: str
    suffix: str
    fix: str
    compiler: str = "clang"
    headers: tuple[Path, ...] = ()

    def cached_path(self) -> Path:
        """Path of what comes of the present source, whether it exists or not."""
        return cached(self.stem, self.suffix, (self.source, *self.headers), self.flags)

    def compiled(self) -> Path:
        """The compiled file; made if the cache lacks this source.

        Raises MissingCapability without clang, or if clang rejects the source.
        """
        target = self.cached_path()
        if not target.exists():
            self._compile(target)
        return target

    def _compile(self, target: Path) -> None:
        if shutil.which(self.compiler) is None:
            raise MissingCapability(f"clang is missing and {self.what} has not been compiled before", self.fix)
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / target.name
            run_compiler([self.compiler, *self.flags, str(self.source), "-o", str(made)], self.what, self.fix)
            store(made, target, self.what)


def cached(stem: str, suffix: str, files: Sequence[Path], flags: Sequence[str]) -> Path:
    """Where what is made of these files with these flags lies."""
    # Debian's headers sit in a folder named after the machine, so the machine belongs to the key.
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files[:1]))
    key.update(" ".join((*flags, platform.machine())).encode())
    for file in files[1:]:
        key.update(file.read_bytes())
    return Path(sys.prefix) / "var" / "mrc-testbed" / f"{stem}-{key.hexdigest()[:16]}{suffix}"


def run_compiler(command: Sequence[str], what: str, fix: str, name: str = "clang") -> None:
    """Raises MissingCapability if the compiler, called `name` in messages, cannot be started or rejects the source."""
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    try:
        result = subprocess.run([command[0], include, *command[1:]], capture_output=True, check=False)
    except OSError as error:
        raise MissingCapability(f"{name} cannot be started: {error.strerror}", fix) from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").splitlines()
        first = next((line for line in lines if "error" in line), "no message")
        raise MissingCapability(f"{name} does not compile {what}: {first.strip()}", fix)


def store(made: Path, target: Path, what: str) -> None:
    """Put a file, or a folder with files, into the cache. Of two processes that make the same, one is enough."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = Path(folder) / made.name
            if made.is_dir():
                shutil.copytree(made, fresh, symlinks=True)
            else:
                shutil.copy(made, fresh)
            _rename(fresh, target)
        _hand_over(target)
    except OSError as error:
        raise MissingCapability(
            f"{what} cannot be stored: {error}", f"make {target.parent} a folder that can be written"
        ) from None


def _rename(fresh: Path, target: Path) -> None:
    try:
        os.replace(fresh, target)
    except OSError:
        if not target.is_dir():
            raise


def _hand_over(target: Path) -> None:
    """Give what root has made to the owner of the environment, who must be able to remove it."""
    owner = Path(sys.prefix).stat()
    if os.geteuid() == 0 and can_be_given_to(owner.st_uid, owner.st_gid):
        inside = target.iterdir() if target.is_dir() else ()
        for path in (target, target.parent, target.parent.parent, *inside):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def report_only(*recipes: Recipe) -> int:
    """Compile for `make setup`. A failure is only reported, once: what needs the program says so itself."""
    return report_missing(*(recipe.compiled for recipe in recipes))


def report_missing(*makers: Callable[[], Path]) -> int:
    """The same for functions that compile."""
    try:
        for make in makers:
            make()
    except MissingCapability as missing:
        say(f"setup: {missing}", err=True)
    return 0
