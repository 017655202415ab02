"""What programs of the user need of this machine, asked before anything is built: commands, modules of Python, TUN."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from mrc_testbed.testbed.errors import MissingCapability, UsageError
from mrc_testbed.testbed.launcher.start import told_by
from mrc_testbed.testbed.runner.program_spec import ProgramSpec
from mrc_testbed.testbed.version import install_extra

TUN = Path("/dev/net/tun")
PYTHON = re.compile(r"python[0-9.]*")
"""The name of a command that can have modules."""
_LOOK_S = 60
_EXTRAS = ("torch",)
"""Modules that an extra of ours installs, by the same name."""
_LOOK = """\
import importlib.util, sys
sys.exit(next((name for name in sys.argv[1:] if importlib.util.find_spec(name) is None), 0))
"""


def require_needs(specs: Iterable[ProgramSpec]) -> None:
    """Raises UsageError for a command that is not there, MissingCapability for a module or for TUN."""
    specs = list(specs)
    for spec in specs:
        _require_command(spec)
    for python, module, job in dict.fromkeys(_modules(specs)):
        _require_module(python, module, job)
    if specs:
        _require_tun()


def _require_command(spec: ProgramSpec) -> None:
    name = spec.command[0]
    own = name.removeprefix("./") in spec.entry.files
    if not own and _found(spec) is None:
        fix = "install it, name it with its folder, or list it in `files`"
        raise UsageError(f"{spec.job}: {spec.host} cannot run {name}: there is no such command; {fix}")


def _found(spec: ProgramSpec) -> str | None:
    return shutil.which(spec.command[0], path=spec.place.environment["PATH"])


def _modules(specs: Iterable[ProgramSpec]) -> Iterable[tuple[str, str, str]]:
    """The Python, a module that it must have, and for which job."""
    for spec in specs:
        found = _found(spec)
        if found and PYTHON.fullmatch(Path(found).name):
            yield from ((found, module, spec.job) for module in spec.entry.modules)


def _require_module(python: str, module: str, job: str) -> None:
    # Isolated: nothing of the current folder is imported, and a module is looked for, not run.
    try:
        status, _ = told_by([python, "-I", "-c", _LOOK, module], _LOOK_S)
    except (OSError, TimeoutError) as error:
        why = str(error) or f"no answer within {_LOOK_S} s"
        raise UsageError(f"{job}: cannot ask {python} for {module}: {why}") from None
    if status:
        fix = install_extra(module) if module in _EXTRAS else f"{python} -m pip install {module}"
        raise MissingCapability(f"{job}: {python} has no module {module}", f"{fix}, or another Python in `command`")


def _require_tun() -> None:
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError as error:
        raise MissingCapability(f"programs need {TUN}: {error.strerror}", "run the same command with sudo") from None
    except OSError as error:
        raise MissingCapability(
            f"programs need {TUN}: {error.strerror}", "modprobe tun; in a container --device /dev/net/tun"
        ) from None
