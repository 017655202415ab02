"""Scenario file -> `Scenario`, or a ScenarioError with all mistakes and their places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from mrc_testbed.testbed.errors import Problem, ScenarioError
from mrc_testbed.testbed.expect.figure import UNKNOWN_METRIC
from mrc_testbed.testbed.expect.metrics import with_metrics
from mrc_testbed.testbed.scenario.faults import kind_of, with_kinds
from mrc_testbed.testbed.scenario.load.effective import effective_text
from mrc_testbed.testbed.scenario.load.shipped import scenario_file
from mrc_testbed.testbed.scenario.load.wording import mistake_of, model_at
from mrc_testbed.testbed.scenario.model.families import UNKNOWN_FAMILY
from mrc_testbed.testbed.scenario.model.matrix import AXES
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.offered import Offered, PluginStuck
from mrc_testbed.testbed.scenario.model.programs import program_metrics
from mrc_testbed.testbed.scenario.model.queue_pairs import spread_qps
from mrc_testbed.testbed.scenario.plugins.extended import scenario_model
from mrc_testbed.testbed.scenario.plugins.load import load_plugins
from mrc_testbed.testbed.scenario.rules.company import Company, company_mistakes, company_of
from mrc_testbed.testbed.scenario.rules.readable import Readable, read
from mrc_testbed.testbed.scenario.rules.rules import broken_rules
from mrc_testbed.testbed.scenario.text.beside import data_files_of
from mrc_testbed.testbed.scenario.text.keys import key_path
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.one_key import OneKey
from mrc_testbed.testbed.scenario.text.source import (
    SCENARIO_FILE,
    EffectiveText,
    KeyPath,
    Override,
    OverrideError,
    Source,
    apply_override,
    dotted,
    prefixes,
)
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source, parse_value, read_source
from mrc_testbed.testbed.transports.registry import offering

PLUGINS = "plugins"
_WITH_KEY = ("--set", "--matrix")
"""Options that name their key; mistakes elsewhere caused by them have their own place."""


@dataclass(frozen=True, slots=True)
class OptionProblem(Problem):
    """A mistake from the command line; `file` holds the option as typed, line and column are 0."""

    def __str__(self) -> str:
        option, _, typed = self.file.partition(" ")
        about = f"{self.path}: " if option in _WITH_KEY and self.path != typed.partition("=")[0] else ""
        return f"{self.file}: {about}{self.message}"


def load_scenario(
    path: str | Path, overrides: Sequence[str] = (), seed: int | None = None, judged: bool = True
) -> Scenario:
    """Load, change and check a scenario: a file, or a shipped scenario if no file has that name.

    `overrides` are `KEY=VALUE` with a dotted key (`faults.0.at=3s`) and a YAML value; `seed` replaces the file's. Not
    `judged`: nobody will compare it with its expectations, which may be about figures that it lacks. Raises
    ScenarioError with all mistakes of the file, or all of the options if one of those cannot be read.
    """
    return load_source(read_source(scenario_file(Path(path))), read_changes(overrides, seed), judged=judged)


def load_scenario_text(
    text: str, file: str = "<text>", overrides: Sequence[str] = (), seed: int | None = None
) -> Scenario:
    """The same for a text; `file` is the name in messages."""
    return load_source(parse_source(text, file), read_changes(overrides, seed))


def read_changes(options: Sequence[str], seed: int | None) -> list[Override]:
    """The changes by `--set` and `--seed`. Raises ScenarioError for the first unreadable one."""
    changes = [_override(option) for option in options]
    return changes if seed is None else [*changes, Override(("seed",), seed, f"--seed {seed}")]


def load_recorded(folder: Path, changes: Sequence[Override] = ()) -> Scenario:
    """The scenario of a run folder, with changes. Its plugins are run only if they were run on this machine before.
    Raises ScenarioError."""
    return load_source(read_source(folder / SCENARIO_FILE), changes, recorded=True)


def load_source(
    source: Source,
    changes: Sequence[Override],
    company: Company | None = None,
    recorded: bool = False,
    judged: bool = True,
) -> Scenario:
    """Check a parsed file with changes. `company`: the cells that it is one of, whose axes are then not checked;
    `recorded`: of a run folder; not `judged`: nobody will judge it. Raises ScenarioError."""
    changed = changed_data(source, changes)
    data = deepcopy(changed)
    for axis in AXES:
        changed.pop(axis, None)
        if company:
            data.pop(axis, None)
    offered, wrong = load_plugins(data.get(PLUGINS), source.file, recorded)
    model = scenario_model(offered)
    named = offered.named
    metrics = {**named("metric"), **program_metrics(data.get("workload"))}
    with with_metrics(metrics), with_kinds(named("fault")), offering(named("transport")):
        _number_faults(data)
        spread_qps(data)
        try:
            with offered.limited(), data_files_of(source.file):
                file, errors = read(data, model)
                mistakes = [
                    mistake_of(error, model) for error in errors if offered.whole or not _unknown_name(error, model)
                ]
                beside = None if recorded else company or company_of(data, judged)
                folder = None if recorded else Path(source.file).parent
                mistakes += _broken_rules(file, data, offered, beside, folder) if file else ()
        except PluginStuck as error:
            file, mistakes = None, [Mistake((PLUGINS,), str(error))]
        mistakes += [Mistake((PLUGINS, index), message) for index, message in wrong]
    if file is None or file.lost or mistakes:
        raise ScenarioError(_in_order(_problem(mistake, source, changes) for mistake in dict.fromkeys(mistakes)))
    scenario = file.scenario
    scenario._effective = EffectiveText(source, changes, partial(effective_text, source, changes, changed))
    scenario._offered = offered
    return scenario.at_scale()


def _broken_rules(
    file: Readable, data: Any, offered: Offered, company: Company | None, folder: Path | None
) -> list[Mistake]:
    """The rules, including those of plugins' workloads, whose exceptions are reported once."""
    try:
        return [*broken_rules(file, folder), *(company_mistakes(file, data, company) if company else ())]
    except Exception as error:
        blamed = offered.blame(error)
        if blamed is None:
            raise
        source, message = blamed
        return [Mistake((PLUGINS, data[PLUGINS].index(source.written)), message)]


def _override(option: str) -> Override:
    key, equals, value = option.partition("=")
    shown = f"--set {option}"
    if not equals or not all(key.strip().split(".")):
        raise bad_option(shown, key, "must be KEY=VALUE with a dotted key, such as `--set fabric.planes=2`")
    try:
        return Override(key_path(key.strip()), parse_value(value), shown)
    except ScenarioError as error:
        raise bad_option(shown, key, error.problems[0].message) from None


def changed_data(source: Source, changes: Sequence[Override]) -> Any:
    """A copy of the file's data with the changes applied. Raises ScenarioError for one that does not fit."""
    data = deepcopy(source.data)
    for change in changes:
        try:
            apply_override(data, change)
        except OverrideError as error:
            raise ScenarioError([_of_change(change, source, dotted(change.path), str(error))]) from None
    return data


def _of_change(change: Override, source: Source, path: str, message: str) -> Problem:
    if change.written is None:
        return OptionProblem(change.option, 0, 0, path, message)
    file = change.source or source
    place = file.value_position(change.written)
    return Problem(file.file, place.line, place.column, path, message)


def bad_option(option: str, path: str, message: str) -> ScenarioError:
    """The mistake of an option."""
    return ScenarioError([OptionProblem(option, 0, 0, path, message)])


def _number_faults(data: Any) -> None:
    """Name every unnamed fault `<kind>-<n>`, skipping names that the author uses."""
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


UNKNOWN = (
    ("fabric", UNKNOWN_FAMILY),
    ("expect", UNKNOWN_METRIC),
    ("faults", "unknown fault kind"),
    ("faults", "has no fault kind"),
)
"""Keys, and the message parts about unknown names below them."""


def _unknown_name(error: ErrorDetails, model: type[Scenario]) -> bool:
    """True of the name of a workload, fault, metric or family that we do not know; it may be of a plugin that is
    missing."""
    above = model_at(error["loc"][:-1], model)
    workload = error["type"] == "extra_forbidden" and above is not None and issubclass(above, OneKey)
    return workload or any(error["loc"][0] == key and words in error["msg"] for key, words in UNKNOWN)


def _problem(mistake: Mistake, source: Source, changes: Sequence[Override]) -> Problem:
    path = dotted(mistake.path)
    absent = mistake.path not in source.keys
    for change in changes:
        made = absent and mistake.path and change.path[: len(mistake.path)] == mistake.path
        if made or _concerns(change.path, mistake.path):
            return _of_change(change, source, path, mistake.message)
    place = source.position(mistake.path, mistake.at_key, mistake.column)
    return Problem(source.file, place.line, place.column, path, mistake.message)


def _concerns(changed: KeyPath, path: KeyPath) -> bool:
    return any(prefix == changed for prefix in prefixes(path))


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.line, problem.column))
