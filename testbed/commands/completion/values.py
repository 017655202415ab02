"""The values that an option or argument may have, by its metavar: names that we ship, and names in folders of results.

Only names are read here, never a scenario, so nothing that a folder holds is run. A name with a character that some
shell might obey is left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.scenario.load.shipped import FOLDER, shipped

FILES, FOLDERS = ":files", ":folders"
"""Asks the shell for names of files, or of folders."""
_RESULTS = "results"
_HARMLESS = re.compile(r"[\w./+@%,-]+")
_NEWEST = 200
"""Runs that are offered, at most."""
Source = Callable[[Sequence[str], Path], Iterable[str]]
"""Names, by the arguments given before, and the folder of results."""


def values(parameter: Any, command: Any, given: Sequence[str], results: str = "") -> list[str]:
    """What an option or argument of a command of Typer may have. `given`: the arguments before it; `results`: where
    runs are, unless in results/."""
    if not (sources := sources_of(parameter)):
        return [*_choices(parameter, command)]
    found = dict.fromkeys(name for source in sources for name in source(given, Path(results or _RESULTS)))
    return [name for name in found if name in (FILES, FOLDERS) or _HARMLESS.fullmatch(name)]


def sources_of(parameter: Any) -> list[Source]:
    """Where its values are listed, by its metavar, such as `SCENARIO|RUN...`; none for free values and choices."""
    known = {**_OF_BOTH, **(_OF_ARGUMENTS if parameter.param_type_name == "argument" else {})}
    kinds = re.split(r"[|\[\]]|\.\.\.", parameter.metavar or parameter.name.upper())
    return [known[kind] for kind in kinds if kind in known]


def _choices(parameter: Any, command: Any) -> Iterable[str]:
    """Of an enumeration, or words that the metavar itself lists."""
    if "|" in (metavar := parameter.metavar or ""):
        return metavar.split("|")
    return (item.value for item in parameter.shell_complete(typer.Context(command), "") if item.type == "plain")


def _scenarios(given: Sequence[str], results: Path) -> list[str]:
    return [*_shipped(given, results), FILES]


def _shipped(given: Sequence[str], results: Path) -> list[str]:
    try:
        return [one.name for one in shipped()]
    except UsageError:
        return []


def _runs(given: Sequence[str], results: Path) -> list[str]:
    """The newest first."""
    begun = sorted((name for name in _names(results) if (results / name / "scenario.yaml").is_file()), reverse=True)
    return [*begun[:_NEWEST], FOLDERS]


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _of_plan(part: str, given: Sequence[str], results: Path) -> list[str]:
    """Names of hosts or switches: of the run that is given first, else of the latest."""
    named = Path(given[0]) if given else Path("latest")
    for folder in (results / named, named):
        try:
            with (folder / "plan.json").open("rb") as file:
                return [str(one["name"]) for one in json.load(file)[part]]
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return []


def _in_shipped(place: str, pattern: str, given: Sequence[str], results: Path) -> list[str]:
    return sorted(path.name for path in (FOLDER / place).glob(pattern) if path.is_dir())


def _sets(given: Sequence[str], results: Path) -> list[str]:
    folder = Path(__file__).parents[2] / "scenario" / "model" / "sets"
    return [*sorted(path.stem for path in folder.glob("*.yaml")), FILES]


def _always(*names: str) -> Source:
    return lambda given, results: names


_lessons = partial(_in_shipped, "lessons", "[0-9]*")
_OF_BOTH: Mapping[str, Source] = {
    "SCENARIO": _scenarios,
    "RUN": _runs,
    "SET": _sets,
    "FILE": _always(FILES),
    "LIST.json": _always(FILES),
    **dict.fromkeys(("FOLDER/matrix.html", "PAGE.html", "DIR|FILE"), _always(FILES)),
    "HOST": lambda given, results: _of_plan("hosts", (), results),
    "SWITCH": partial(_of_plan, "switches"),
    "PACK": _always("paper", "multiplane"),
    "ENGINE": _always("local"),
    "SIZE": _always("small", "draft"),
    **dict.fromkeys(("DIR", "FOLDER", "SWEEP", "CASE", "COURSE", "MORE"), _always(FOLDERS)),
}
_OF_ARGUMENTS: Mapping[str, Source] = {
    "NAME": _shipped,
    "N": _lessons,
}
