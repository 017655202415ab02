"""A scenario file -> `Scenario`, or a ScenarioError with every mistake at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from testbed.errors import Problem, ScenarioError
from testbed.scenario.as_run import text_as_run
from testbed.scenario.faults import kind_of
from testbed.scenario.models import Scenario
from testbed.scenario.parts import salvage
from testbed.scenario.rules import broken_rules
from testbed.scenario.shipped import scenario_file
from testbed.scenario.source import AsRun, KeyPath, Override, OverrideError, Source, apply_override, dotted, prefixes
from testbed.scenario.wording import Mistake, mistake_of
from testbed.scenario.yaml_text import parse_source, parse_value, read_source


@dataclass(frozen=True, slots=True)
class OptionProblem(Problem):
    """A mistake that came in by the command line; `file` holds the option as typed, line and column are 0."""

    def __str__(self) -> str:
        key = self.file.removeprefix("--set ").partition("=")[0]
        about = f"{self.path}: " if self.path != key and self.file.startswith("--set") else ""
        return f"{self.file}: {about}{self.message}"


def load_scenario(path: str | Path, overrides: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """Load, change and check a scenario: a file, or the name of a shipped one where there is no such file.

    `overrides` are `KEY=VALUE` with a dotted key (`faults.0.at=3s`) and a YAML value; `seed` replaces the file's.
    Raises ScenarioError with all mistakes of the file, or all of the options when one of those cannot be read.
    """
    return _load(read_source(scenario_file(Path(path))), overrides, seed)


def load_scenario_text(
    text: str, file: str = "<text>", overrides: Sequence[str] = (), seed: int | None = None
) -> Scenario:
    """The same for a text; `file` is the name in messages."""
    return _load(parse_source(text, file), overrides, seed)


def _load(source: Source, options: Sequence[str], seed: int | None) -> Scenario:
    changes = [_override(option) for option in options]
    if seed is not None:
        changes.append(Override(("seed",), seed, f"--seed {seed}"))
    changed = _changed(source.data, changes)
    data = deepcopy(changed)
    _number_faults(data)
    scenario, mistakes = _validated(data)
    mistakes += broken_rules(salvage(data))
    if scenario is None or mistakes:
        raise ScenarioError(_in_order(_problem(mistake, source, changes) for mistake in dict.fromkeys(mistakes)))
    scenario._as_run = AsRun(source, changes, text_as_run(source, changes, changed))
    return scenario


def _override(option: str) -> Override:
    key, equals, value = option.partition("=")
    shown = f"--set {option}"
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise _bad_option(shown, key, "must be KEY=VALUE with a dotted key, such as `--set fabric.planes=2`")
    path = tuple(int(part) if part.isascii() and part.isdigit() and len(part) < 9 else part for part in parts)
    try:
        return Override(path, parse_value(value), shown)
    except ScenarioError as error:
        raise _bad_option(shown, key, error.problems[0].message) from None


def _changed(data: Any, changes: Sequence[Override]) -> Any:
    data = deepcopy(data)
    for change in changes:
        try:
            apply_override(data, change)
        except OverrideError as error:
            raise _bad_option(change.option, dotted(change.path), str(error)) from None
    return data


def _bad_option(option: str, path: str, message: str) -> ScenarioError:
    return ScenarioError([OptionProblem(option, 0, 0, path, message)])


def _number_faults(data: Any) -> None:
    """Give every fault without a name `<kind>-<n>`, passing over names that the author uses."""
    faults = data.get("faults")
    faults = [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []
    taken = {fault["name"] for fault in faults if isinstance(fault.get("name"), str)}
    for fault in faults:
        kind = kind_of(fault)
        if kind and "name" not in fault:
            number = 1
            while f"{kind}-{number}" in taken:
                number += 1
            fault["name"] = f"{kind}-{number}"
            taken.add(fault["name"])


def _validated(data: Any) -> tuple[Scenario | None, list[Mistake]]:
    try:
        return Scenario.model_validate(data), []
    except ValidationError as error:
        return None, [mistake_of(details) for details in error.errors(include_url=False)]


def _problem(mistake: Mistake, source: Source, changes: Sequence[Override]) -> Problem:
    path = dotted(mistake.path)
    for change in changes:
        if _concerns(change.path, mistake.path):
            return OptionProblem(change.option, 0, 0, path, mistake.message)
    place = source.key_position(mistake.path) if mistake.at_key else source.value_position(mistake.path)
    return Problem(source.file, place.line, place.column + mistake.column, path, mistake.message)


def _concerns(changed: KeyPath, path: KeyPath) -> bool:
    return any(prefix == changed for prefix in prefixes(path))


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.line, problem.column))
