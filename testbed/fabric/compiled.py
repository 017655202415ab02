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
        # Debian's headers sit in a folder named after the machine, so the machine belongs to the key.
        key = hashlib.sha256(self.source.read_bytes() + " ".join((*self.flags, platform.machine())).encode())
        for header in self.headers:
            key.update(header.read_bytes())
        return Path(sys.prefix) / "var" / "mrc-testbed" / f"{self.stem}-{key.hexdigest()[:16]}{self.suffix}"

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
            self._run_compiler(made)
            _store(made, target, self.what)

    def _run_compiler(self, made: Path) -> None:
        include = f"-I/usr/include/{platform.machine()}-linux-gnu"
        command = [self.compiler, *self.flags, include, str(self.source), "-o", str(made)]
        try:
            result = subprocess.run(command, capture_output=True, check=False)
        except OSError as error:
            raise MissingCapability(f"clang cannot be started: {error.strerror}", self.fix) from None
        if result.returncode != 0:
            lines = result.stderr.decode("utf-8", "replace").splitlines()
            first = next((line for line in lines if "error" in line), "no message")
            raise MissingCapability(f"clang does not compile {self.what}: {first.strip()}", self.fix)


def _store(made: Path, target: Path, what: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fresh = shutil.copy(made, folder)
            os.replace(fresh, target)
        _hand_over(target)
    except OSError as error:
        raise MissingCapability(
            f"{what} cannot be stored: {error}", f"make {target.parent} a folder that can be written"
        ) from None


def _hand_over(target: Path) -> None:
    """Give a root-made file to the owner of the environment, who must be able to remove it."""
    owner = Path(sys.prefix).stat()
    if os.geteuid() == 0 and can_be_given_to(owner.st_uid, owner.st_gid):
        for path in (target, target.parent, target.parent.parent):
            os.chown(path, owner.st_uid, owner.st_gid)


def report_only(*recipes: Recipe) -> int:
    """Compile for `make setup`. A failure is only reported, once: what needs the program says so itself."""
    try:
        for recipe in recipes:
            recipe.compiled()
    except MissingCapability as missing:
        say(f"setup: {missing}", err=True)
    return 0
