"""Who and what is trusted: users whose files count as the caller's own, and whether the caller has asked for the code
that a scenario names, the plugins beside it (mrc_testbed.testbed.scenario.plugins)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from mrc_testbed.testbed.state import state_paths, sudo_caller

TRUST = "MRC_TRUST_PLUGINS"
"""With this in the environment, as 1, any plugin is run."""
NOTES = "plugins.sha256"
"""The file of hashes of code that was run here."""
OWNERS = "MRC_TRUST_OWNERS"
"""Numbers of users, with commas between them; or `all`, as in a container, where no other user lives."""
_OUTSIDE = Path("/proc/sys/fs/overflowuid"), Path("/proc/self/uid_map")


def trusts(what: int | str) -> bool:
    """Whether a user, by number, or code, by the SHA-256 of its bytes, is trusted.

    A user: root, the caller, the user behind sudo, and those whom `MRC_TRUST_OWNERS` names: what they may exchange is
    as safe as what the caller may. Everybody where users have no numbers; in a user namespace, where root of the
    machine and all others outside of it are one user, that one. Code: what this user ran or validated here before; all
    of it by `MRC_TRUST_PLUGINS=1`."""
    if isinstance(what, str):
        return os.environ.get(TRUST) == "1" or not not_noted((what,))
    if not hasattr(os, "geteuid"):
        return True
    named = os.environ.get(OWNERS, "").replace(" ", "").split(",")
    known = {0, os.geteuid(), *(sudo_caller() or ())[:1], _outside()}
    return what in known or str(what) in named or named == ["all"]


def not_noted(hashes: Iterable[str]) -> list[str]:
    """Hashes that are not recorded yet, each once."""
    noted = set[str]().union(*map(_noted, state_paths(NOTES)))
    return [each for each in dict.fromkeys(hashes) if each not in noted]


def notes_file() -> Path:
    """The file of recorded hashes, one per line."""
    return next(state_paths(NOTES))


def _noted(path: Path) -> set[str]:
    try:
        return set(path.read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):  # nothing is noted in a file that is not there or not ours
        return set()


@cache
def _outside() -> int:
    """As whom a user namespace sees those who are not in it; 0 where everybody is."""
    try:
        number, inside = (path.read_text(encoding="ascii").split() for path in _OUTSIDE)
        return 0 if inside[-1] == str((1 << 32) - 1) else int(number[0])
    except (OSError, ValueError):
        return 0


class Consent:
    """As in this process at this time. A program that loads a scenario has asked for its code."""

    of_scenarios = True


@contextmanager
def known_code_alone() -> Iterator[None]:
    """Meanwhile only plugins are run that were run here before, until `run_what_scenarios_name`: each command begins
    so."""
    before, Consent.of_scenarios = Consent.of_scenarios, False
    try:
        yield
    finally:
        Consent.of_scenarios = before


def run_what_scenarios_name() -> None:
    """The command is one that carries out, or checks, the scenarios that its caller names."""
    Consent.of_scenarios = True
