"""What of a file is readable, so that rules across its keys are checked although some keys are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import getitem
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mrc_testbed.testbed.expect import Expectation
from mrc_testbed.testbed.scenario.faults import Entry
from mrc_testbed.testbed.scenario.model.captures import Capture
from mrc_testbed.testbed.scenario.model.expectations import placed_lines
from mrc_testbed.testbed.scenario.model.flow_models import FlowEntry
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.step_models import StepEntry
from mrc_testbed.testbed.scenario.text.denylist import Denial
from mrc_testbed.testbed.scenario.text.source import KeyPath

T = TypeVar("T")

_STAND_INS: Mapping[str, Any] = {
    "name": "unreadable",
    "workload": [{"latency": {"from": "h0", "to": "h1", "iterations": 1}}],
}
"""Values of required keys that are lost; no rule looks at them."""


@dataclass(frozen=True)
class Readable:
    """A scenario without its wrong keys and entries, which have their usual values.

    `lost`: their paths in the file. Lists of the scenario lack their lost entries; here entries have the numbers of the
    file.
    """

    scenario: Scenario
    lost: frozenset[KeyPath] = frozenset()

    def loses(self, *path: str) -> bool:
        """True if the key is lost, or something below it."""
        return any(lost[: len(path)] == path for lost in self.lost)

    @property
    def whole_fabric(self) -> bool:
        """True if what names switches and links is readable: all of `fabric` but its `switch`."""
        return not any(lost[0] == "fabric" and lost != ("fabric", "switch") for lost in self.lost)

    @property
    def steps(self) -> dict[int, StepEntry]:
        """The jobs of steps."""
        return {index: item.steps for index, item in self._numbered(self.scenario.workload, "workload") if item.steps}

    @property
    def flows(self) -> dict[int, FlowEntry]:
        """The entries of flows."""
        return {index: item.flows for index, item in self._numbered(self.scenario.workload, "workload") if item.flows}

    @property
    def faults(self) -> dict[int, Entry]:
        """The faults."""
        return dict(self._numbered(self.scenario.faults, "faults"))

    @property
    def captures(self) -> dict[int, Capture]:
        """The captures."""
        return dict(self._numbered(self.scenario.capture, "capture"))

    @property
    def denylist(self) -> dict[int, Denial]:
        """The paths that are denied all the time."""
        return dict(self._numbered(self.scenario.endpoint.denylist, "endpoint", "denylist"))

    @property
    def expectations(self) -> dict[KeyPath, Expectation]:
        """The expectations of all cells, by the place of their text."""
        lines = self._numbered(self.scenario.given_expect, "expect")
        return dict(placed for index, line in lines for placed in placed_lines(index, line))

    @property
    def shows(self) -> dict[int, int]:
        """Which expectations `paper` names."""
        paper = self.scenario.paper
        return dict(self._numbered(paper.shows if paper else (), "paper", "shows"))

    @property
    def expect_size(self) -> int | None:
        """Entries of `expect`, readable or not; None if it is no list."""
        lost = [path for path in self.lost if path[0] == "expect"]
        return None if ("expect",) in lost else len(self.scenario.given_expect) + len(lost)

    def _numbered(self, items: Iterable[T], *path: str) -> Iterable[tuple[int, T]]:
        """The items of the list at `path` with their numbers in the file; none if the list itself is lost."""
        if _inside(path, self.lost):
            return ()
        return zip((number for number in count() if (*path, number) not in self.lost), items, strict=False)


def _inside(path: KeyPath, lost: frozenset[KeyPath]) -> bool:
    """True if the key is lost, or one above it."""
    return any(path[:size] in lost for size in range(1, len(path) + 1))


def read(data: Any, model: type[Scenario]) -> tuple[Readable | None, list[ErrorDetails]]:
    """The readable part, and what is wrong with the rest. None: nothing is. A sound file is read once."""
    found: list[ErrorDetails] = []
    lost: frozenset[KeyPath] = frozenset()
    while True:
        kept = _without(data, lost)
        try:
            return Readable(model.model_validate(kept), lost), found
        except ValidationError as error:
            errors = error.errors(include_url=False)
        found = found or errors
        more = {_culprit(each["loc"], kept, lost) for each in errors}
        if any(not path or _inside(path, lost) for path in more):
            return None, found
        lost |= more


def _without(data: Any, lost: frozenset[KeyPath]) -> Any:
    """The data without what is lost, and with stand-ins for required keys."""
    if not lost:
        return data
    kept = deepcopy(data)
    outermost: list[Any] = [path for path in lost if not _inside(path[:-1], lost)]
    for path in sorted(outermost, key=lambda path: (isinstance(path[-1], int), path[-1]), reverse=True):
        above, key = reduce(getitem, path[:-1], kept), path[-1]
        if isinstance(above, list) or key in above:
            del above[key]
    return {**{key: usual for key, usual in _STAND_INS.items() if (key,) in lost}, **kept}


def _culprit(loc: KeyPath, kept: Any, lost: frozenset[KeyPath]) -> KeyPath:
    """The entry of a list, else the key at most one level down, that a validation error is about, as in the file."""
    deep = next((place for place, key in enumerate(loc) if isinstance(key, int)), 1)
    path: list[str | int] = []
    for key in loc[: deep + 1]:
        there = key in kept if isinstance(kept, dict) else isinstance(kept, list) and isinstance(key, int)
        if not there:
            break
        kept = kept[key]
        path.append(_in_file(key, path, lost) if isinstance(key, int) else key)
    return tuple(path) or tuple(key for key in loc[:1] if key in _STAND_INS)


def _in_file(position: int, path: list[str | int], lost: frozenset[KeyPath]) -> int:
    """The number in the file of an entry, whose list has lost some."""
    kept = (number for number in count() if (*path, number) not in lost)
    return next(number for place, number in enumerate(kept) if place == position)
