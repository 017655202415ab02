"""The scenario of a hunt: with another seed, with other faults, and as the text of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import ScenarioError, UsageError
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.faults import UnsettledError
from mrc_testbed.testbed.scenario.faults.kinds.withdrawn import Deny
from mrc_testbed.testbed.scenario.load.effective import on_one_line, plain_text
from mrc_testbed.testbed.scenario.load.loader import changed_data, load_scenario_text, load_source, read_changes
from mrc_testbed.testbed.scenario.load.shipped import scenario_file
from mrc_testbed.testbed.scenario.model.matrix import AXES
from mrc_testbed.testbed.scenario.model.single_faults import SingleFault, occurrences_of, settled_entries, single_faults
from mrc_testbed.testbed.scenario.rules.switch_rules import too_many_rules
from mrc_testbed.testbed.scenario.text.source import Override, Source
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source, read_source

_EXPECT = "expect"
_VIRTUAL = Override(("world",), "virtual", "--set world=virtual")
_NOT_CAPTURED = Override(("capture",), [], "--set capture=[]")


@dataclass(frozen=True, slots=True)
class HuntRequest:
    """What a hunt is about, as typed: it goes to other processes. `move`: None: where nothing is left to the seed;
    `text`: of standard input, which those processes do not have."""

    file: Path
    overrides: tuple[str, ...] = ()
    move: bool | None = None
    text: str = ""

    @property
    def source(self) -> Source:
        """The scenario. Raises ScenarioError."""
        return parse_source(self.text, str(self.file)) if self.text else read_source(scenario_file(self.file))


class ImpossibleError(Exception):
    """A schedule that this fabric cannot have; the text says why."""


class Subject:
    """A scenario in virtual time without captures; `scenario` is as it is written, what is tried at its scale."""

    def __init__(self, request: HuntRequest) -> None:
        """Raises ScenarioError; UsageError for a scenario with several cells, without expectations or faults, or with
        a kind of fault that cannot be written as a single one."""
        source = request.source
        changes = [*read_changes(request.overrides, None), _VIRTUAL]
        data = changed_data(source, changes)
        if any(data.get(axis) for axis in AXES):
            raise UsageError(f"{request.file}: has several cells; hunt in the scenario.yaml of a run of one of them")
        changes += [_NOT_CAPTURED] if "capture" in data else []
        self.file = source.file
        self.scenario = load_source(source, changes).as_written
        self._data: Mapping[str, Any] = changed_data(source, changes)
        self.move = not any(entry.drawn for entry in self.scenario.faults) if request.move is None else request.move
        self._refuse_what_cannot_fail()

    def _refuse_what_cannot_fail(self) -> None:
        if not self.scenario.expect:
            raise UsageError(f"{self.file}: has no expectations, so nothing can fail; add `expect`")
        if not self.scenario.faults:
            raise UsageError(f"{self.file}: has no faults to vary; add `faults`, such as chaos")
        if not self.scenario.judged:
            raise UsageError(f"{self.file}: its expectations are not judged (`judge`); remove that key")
        parts = (part.fault for entry in self.scenario.faults for part in entry.parts())
        unable = next((fault.kind for fault in parts if fault.once(1) is None), None)
        if unable:
            raise UsageError(f"{self.file}: {unable} cannot be written as a single outage; derive it from Lasting")

    @cached_property
    def _written_faults(self) -> Sequence[Mapping[str, Any]]:
        written: Sequence[Mapping[str, Any]] = self._data["faults"]
        return written

    def with_seed(self, seed: int) -> Scenario:
        """Its faults as another seed has them. Raises ImpossibleError."""
        scenario = self.scenario
        try:
            entries = settled_entries(scenario, seed, self.move)
            tried = scenario.tried(seed, occurrences_of(entries, scenario.written_plan(), seed))
        except UnsettledError as error:
            raise ImpossibleError(str(error)) from None
        mistake = next(too_many_rules({0: tried.occurrences}), None)
        if mistake:
            raise ImpossibleError(mistake.message)
        if any(one.kind == Deny.kind for one in tried.occurrences):
            self.text(seed, self.faults_of(seed))  # only there is it seen whether denials meet or leave no path
        return tried.at_scale()

    def without_faults(self) -> Scenario:
        """With its own seed."""
        return self.scenario.tried(self.scenario.seed, ()).at_scale()

    def faults_of(self, seed: int) -> tuple[SingleFault, ...]:
        """The outages of a seed, by begin."""
        entries, plan = settled_entries(self.scenario, seed, self.move), self.scenario.written_plan()
        found = single_faults(entries, self._written_faults, plan, seed)
        return tuple(sorted(found, key=lambda one: one.begin_ns))

    def text(self, seed: int, faults: Sequence[SingleFault]) -> str:
        """The file with this seed and these faults alone, without expectations that need others. Raises
        ImpossibleError."""
        entries = [on_one_line(one.entry()) for one in faults]
        data = {"name": self.scenario.name, "seed": seed, **self._data} | {"seed": seed, "faults": entries}
        if "plugins" in data:
            data["plugins"] = [self._place_of(name) for name in data["plugins"]]
        try:
            return self._sound_text(data)
        except ScenarioError as error:
            lines = [place for place in (_expectation(problem.path) for problem in error.problems) if place is not None]
            if len(lines) < len(error.problems):
                raise ImpossibleError(str(error.problems[0])) from None
            kept = [line for index, line in enumerate(data[_EXPECT]) if index not in lines]
        try:
            return self._sound_text({**data, _EXPECT: kept})
        except ScenarioError as error:
            raise ImpossibleError(str(error)) from None

    def _sound_text(self, data: Mapping[str, Any]) -> str:
        text = plain_text(dict(data))
        load_scenario_text(text, self.file)
        return text

    def _place_of(self, plugin: str) -> str:
        """Of a file, from everywhere."""
        return str((Path(self.file).parent / plugin).resolve()) if plugin.endswith(".py") else plugin


def _expectation(path: str) -> int | None:
    """The index of the expectation that a mistake is in."""
    first, *rest = path.split(".")
    return int(rest[0]) if first == _EXPECT and rest and rest[0].isdecimal() else None
