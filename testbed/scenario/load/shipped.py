"""Shipped scenarios: the folder `scenarios`, beside `testbed` in a checkout and when installed."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.errors import Problem, ScenarioError, UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.inputs import STANDARD_STREAM

FOLDER = Path(__file__).resolve().parents[3] / "scenarios"
SUFFIX = ".yaml"
CHECK_FILE = "check.yaml"
"""The file that marks the folder of a lesson."""

SCHEMA_FILE = FOLDER / "scenario.schema.json"
"""The JSON Schema of scenarios, for editors (`load/schema.py`)."""

_HINT = re.compile(
    rf"^(# yaml-language-server: \$schema=)[./]*(scenarios/)?{re.escape(SCHEMA_FILE.name)}$", re.MULTILINE
)
"""The line by which editors find the schema of a shipped scenario, by its path from there."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """A scenario by name, such as `paper/fig14`, and its file."""

    name: str
    path: Path

    @property
    def group(self) -> str:
        """Its folder, such as `paper`; empty for the outermost."""
        return self.name.rpartition("/")[0]


def shipped(folder: Path = FOLDER) -> tuple[Shipped, ...]:
    """All shipped scenarios, by folder, numbers in names by value; without those inside of lessons, which students
    change. Raises UsageError if there are none."""
    paths = (path for path in folder.rglob(f"*{SUFFIX}") if not (path.parent / CHECK_FILE).exists())
    found = [Shipped(path.relative_to(folder).with_suffix("").as_posix(), path) for path in paths]
    if not found:
        raise UsageError(f"{folder}: the shipped scenarios are missing; reinstall mrc-testbed")
    return tuple(sorted(found, key=lambda one: (one.group, _by_size(one.name))))


def shipped_named(name: str) -> Shipped:
    """The scenario with this name. Raises UsageError, with the nearest name."""
    found = next((one for one in shipped() if one.name == name), None)
    if found is None:
        hint = near_names(name) or "; `mrc-testbed scenarios` lists all"
        raise UsageError(f"unknown shipped scenario {name!r}{hint}")
    return found


def with_own_hint(text: str) -> str:
    """A shipped scenario that leaves its folder: the line for editors names the schema by its whole path."""
    return _HINT.sub(lambda hint: f"{hint[1]}{SCHEMA_FILE.as_posix()}", text)


def near_names(word: str) -> str:
    """`; did you mean 'paper/fig14'?`, also for a name without its folder, or an empty text."""
    names = [one.name for one in shipped()]
    last = word.removesuffix(SUFFIX).rpartition("/")[2]
    same = next((name for name in names if name.rpartition("/")[2] == last), None)
    return f"; did you mean {same!r}?" if same else did_you_mean(word, names)


def scenario_file(given: Path) -> Path:
    """The file for `given`: a path, standard input, else the name of a shipped scenario. Raises ScenarioError if it is
    none of them.

    An existing but unreadable file is left to its reader.
    """
    if given == STANDARD_STREAM:
        return given
    try:
        if not stat.S_ISDIR(os.stat(given).st_mode):
            return given
        what = "is a directory, not a scenario file"
    except (FileNotFoundError, NotADirectoryError):
        what = "no such file"
    except (OSError, ValueError):
        return given
    name = given.as_posix()
    found = next((one.path for one in shipped() if one.name == name), None)
    if found is None:
        message = f"{what}, and no shipped scenario has that name{near_names(name)}"
        raise ScenarioError([Problem(str(given), 1, 1, "scenario", message)])
    return found


def _by_size(name: str) -> list[tuple[str, int]]:
    """Sorts `fig9a` before `fig12`."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"(\D*)(\d*)", name)]
