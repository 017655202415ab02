"""What a student's scenario must and must not change: gates before its run is judged."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar, Protocol

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.expect import OPERATORS
from mrc_testbed.testbed.lessons.beside import Beside, same_bytes
from mrc_testbed.testbed.lessons.cells import bracketed
from mrc_testbed.testbed.lessons.evidence import value_of
from mrc_testbed.testbed.lessons.kinds.names import same_name
from mrc_testbed.testbed.lessons.reading import Keys, only_one
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario
from mrc_testbed.testbed.scenario.text.units import DURATION, UnitError, format_duration
from mrc_testbed.topos.units import some

ALL = "all"
_NOT_COMPARED = ("name", "about", "seed", "world", "scale", "virtual")
"""What a student may change in any case: it says how a run is made or called, not what it is."""
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_HOLDS = re.compile(rf"([a-z0-9_.-]+)\s*({'|'.join(OPERATORS)})\s*(\S.*)")


def inside(key: str, other: str) -> bool:
    """Whether a dotted key is another one or a part of it."""
    return f"{key}.".startswith(f"{other}.")


class Requirement(Protocol):
    """One condition on a student's scenario. `everywhere`: in the file and in each of its cells; else in one that is
    run."""

    everywhere: ClassVar[bool]

    def unmet(self, one: Beside) -> str:
        """Why it is not met; empty if it is."""


@dataclass(frozen=True, slots=True)
class Required:
    """A condition, and the run whose scenario it is about. `why`: the lesson's own words for it."""

    run: str
    condition: Requirement
    why: str

    def unmet(self, cells: Iterable[Beside]) -> str:
        """Why it is not met, with the lesson's own words; empty if it is."""
        asked = tuple(cells)
        if not self.condition.everywhere:
            asked = tuple(one for one in asked if one.settings) or asked
        broken = [self._broken(one) for one in asked]
        first = next(filter(None, broken), "")
        if not first or not (self.condition.everywhere or all(broken)):
            return ""
        return f"{first}: {self.why}" if self.why else first

    def _broken(self, one: Beside) -> str:
        found = self.condition.unmet(one)
        return " ".join(filter(None, (found, bracketed(one.settings)))) if found else ""


@dataclass(frozen=True, slots=True)
class Same:
    """Keys that are as in the starter, compared as typed values; `all`: the whole scenario."""

    word: ClassVar[str] = "same"
    everywhere: ClassVar[bool] = True
    keys: tuple[str, ...]

    def unmet(self, one: Beside) -> str:
        """The first key that differs."""
        keys = self.keys
        if ALL in keys:
            keys = tuple(key for key in one.mine.model_dump(by_alias=True) if key not in _NOT_COMPARED)
        other = next((key for key in keys if value_of(one.mine, key) != value_of(one.starter, key)), None)
        return f"{other} must stay as it was" if other else ""


@dataclass(frozen=True, slots=True)
class Changed:
    """Keys that are not as in the starter. A variant may leave one as it was."""

    word: ClassVar[str] = "changed"
    everywhere: ClassVar[bool] = False
    keys: tuple[str, ...]

    def unmet(self, one: Beside) -> str:
        """The first key that is still the same."""
        same = next((key for key in self.keys if value_of(one.mine, key) == value_of(one.starter, key)), None)
        return f"{same} is still as it was; change it" if same else ""


@dataclass(frozen=True, slots=True)
class Holds:
    """A key compared with a value, which is written as in a scenario: `fabric.rtt >= 20ms`. What a variant of the
    starter's own says is not the student's."""

    word: ClassVar[str] = "holds"
    everywhere: ClassVar[bool] = True
    key: str
    op: str
    written: str

    def unmet(self, one: Beside) -> str:
        """What it is instead."""
        if any(inside(self.key, key) or inside(key, self.key) for key in one.handed_out):
            return ""
        value, bound = value_of(one.mine, self.key), self.bound(one.starter)
        if value is None:
            return f"{self.key} must be there, and {self.op} {self.written}"
        return "" if _COMPARE[self.op](value, bound) else f"{self.key} must be {self.op} {self.written}"

    def bound(self, starter: Scenario) -> Any:
        """The typed value: what the key would have in the starter if it were written there. Raises ScenarioError."""
        changed = load_scenario(starter.file, [f"{self.key}={self.written}"], judged=False)
        return value_of(changed.as_written, self.key)


@dataclass(frozen=True, slots=True)
class Hit:
    """Every part of the fabric whose name fits a pattern is a target of a fault of that kind (any kind if empty), which
    lasts `least_ns` at least, and begins and ends inside of `from_ns` and `to_ns` (0: whenever)."""

    word: ClassVar[str] = "hit"
    everywhere: ClassVar[bool] = True
    kind: str
    patterns: tuple[str, ...]
    least_ns: int = 0
    from_ns: int = 0
    to_ns: int = 0

    def unmet(self, one: Beside) -> str:
        """Those that are not hit."""
        scenario = one.mine
        faults = scenario.written_occurrences(scenario.seed)
        hit = {same_name(target) for fault in faults if self._counts(fault) for target in fault.targets}
        left = [name for name in self.wanted(scenario) if same_name(name) not in hit]
        return f"no {self.kind or 'fault'}{self._when()} hits {some(left, 3)}" if left else ""

    def _counts(self, one: Occurrence) -> bool:
        inside = one.begin_ns >= self.from_ns and (not self.to_ns or one.end_ns <= self.to_ns)
        return self.kind in ("", one.kind) and inside and one.end_ns - one.begin_ns >= self.least_ns

    def _when(self) -> str:
        words = (("of at least", self.least_ns), ("after", self.from_ns), ("until", self.to_ns))
        return "".join(f" {word} {format_duration(ns)}" for word, ns in words if ns)

    def wanted(self, scenario: Scenario) -> list[str]:
        """The names that fit, of switches and links."""
        plan = scenario.written_plan()
        names = [*(one.name for one in plan.switches), *(one.name for one in plan.links)]
        return [name for name in names if any(_fits(name, pattern) for pattern in self.patterns)]


@dataclass(frozen=True, slots=True)
class Wired:
    """The fabric has at most that number of hosts, switches in each plane, and ports at each switch (0: any number)."""

    word: ClassVar[str] = "wired"
    everywhere: ClassVar[bool] = True
    hosts: int = 0
    switches: int = 0
    ports: int = 0

    def unmet(self, one: Beside) -> str:
        """The first number that is too large, with the part that has it."""
        plan = one.mine.written_plan()
        ports = Counter(end.node for link in plan.links for end in link.ends)
        planes = Counter(f"plane {switch.plane}" for switch in plan.switches)
        counts = (
            ("hosts", self.hosts, {"the fabric": len(plan.hosts)}),
            ("switches", self.switches, planes),
            ("ports", self.ports, {switch.name: ports[switch.name] for switch in plan.switches}),
        )
        return next(filter(None, (_too_many(*each) for each in counts)), "")


def _too_many(what: str, most: int, found: Mapping[str, int]) -> str:
    where = max(found, key=found.__getitem__)
    return f"{where} has {found[where]} {what}; at most {most}" if 0 < most < found[where] else ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Files of programs that are, byte for byte, as they were handed out."""

    word: ClassVar[str] = "kept"
    everywhere: ClassVar[bool] = True
    names: tuple[str, ...]

    def unmet(self, one: Beside) -> str:
        """The first that is not."""
        mine, starter = (Path(scenario.file).parent for scenario in (one.mine, one.starter))
        other = next((name for name in self.names if not same_bytes(mine / name, starter / name)), None)
        return f"{other} must stay as it was" if other else ""


def _fits(name: str, pattern: str) -> bool:
    """End by end: a pattern without a colon is one of switches."""
    ends, patterns = name.split(":"), pattern.split(":")
    return len(ends) == len(patterns) and all(map(fnmatchcase, ends, patterns))


def read_required(keys: Keys, runs: Sequence[str]) -> Required | None:
    """An entry of `requires`; mistakes are noted."""
    word = only_one(keys, (Same.word, Changed.word, Holds.word, Hit.word, Wired.word, Kept.word), "condition")
    run = keys.text("run", "scenario") or (runs[0] if runs else "")
    if run not in runs:
        where = "run" if keys.has("run") else None
        keys.complain(f"there is no run {run!r}; there are {', '.join(runs) or 'none'}", where)
    condition = _read(keys, word) if word else None
    why = keys.text("why", "a sentence")
    keys.refuse_others()
    return Required(run, condition, why) if condition else None


def _read(keys: Keys, word: str) -> Requirement | None:
    if word == Hit.word:
        below = keys.below(word, "{kind: switch-reboot, targets: p0-t1-*}")
        return _read_hit(below) if below else None
    if word == Wired.word:
        below = keys.below(word, "{switches: 5, ports: 8}")
        return _read_wired(below) if below else None
    if word == Kept.word:
        return Kept(keys.texts(word, "[job.py]"))
    if word == Holds.word:
        written = _HOLDS.fullmatch(keys.text(word, "endpoint.ev_active <= 32").strip())
        if written is None:
            keys.complain("must be a key, an operator and a value, such as endpoint.ev_active <= 32", word)
        return Holds(*written.groups()) if written else None
    names = keys.texts(word, "fabric.planes")
    return Same(names) if word == Same.word else Changed(names)


def _read_hit(keys: Keys) -> Hit:
    found = Hit(
        keys.text("kind", "switch-reboot"),
        keys.texts("targets", "p0-t1-*"),
        *(_duration(keys, key) for key in ("for", "from", "to")),
    )
    keys.refuse_others()
    return found


def _read_wired(keys: Keys) -> Wired:
    found = Wired(*(keys.whole(key, 0, 1) for key in ("hosts", "switches", "ports")))
    keys.refuse_others()
    return found


def _duration(keys: Keys, key: str) -> int:
    text = keys.text(key, "2s")
    try:
        return DURATION.parse(text) if text else 0
    except UnitError as error:
        keys.complain(str(error), key)
        return 0


def misfit(condition: Requirement, starter: Scenario) -> str:
    """Why the starter shows that a condition makes no sense, else empty: a key or a name that there is not."""
    if isinstance(condition, Hit):
        return "" if condition.wanted(starter) else "no switch or link has such a name"
    if isinstance(condition, Kept):
        lacking = next((name for name in condition.names if not (Path(starter.file).parent / name).is_file()), None)
        return f"there is no file {lacking}" if lacking else ""
    if isinstance(condition, Holds):
        try:
            bound = condition.bound(starter)
        except ScenarioError as error:
            return error.problems[0].message
        return "" if bound is not None else f"there is no key {condition.key}"
    if isinstance(condition, Same | Changed):
        unknown = next((key for key in condition.keys if key != ALL and not _is_key(key, starter)), None)
        return f"there is no key {unknown}" if unknown else ""
    return ""


def _is_key(key: str, starter: Scenario) -> bool:
    """Below a list or an absent section a student may write what the starter lacks."""
    value: Any = starter.model_dump(by_alias=True)
    for part in key.split("."):
        if not isinstance(value, dict):
            return value is None or not isinstance(value, int | str | float)
        if part not in value:
            return False
        value = value[part]
    return True
