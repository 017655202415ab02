"""Answers that are the address of a path: its uSIDs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ValidationError

from mrc_testbed.testbed.lessons.evidence import Evidence
from mrc_testbed.testbed.lessons.kinds.kind import Judgement, Unusable, plain_text
from mrc_testbed.testbed.lessons.kinds.names import OfNoRun
from mrc_testbed.testbed.lessons.reading import Keys
from mrc_testbed.testbed.scenario.model.families import family_choice
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.registry import FAMILIES
from mrc_testbed.topos.graph import Family, ShapeError, SwitchPlace, Way
from mrc_testbed.topos.names import host_name, parse_host, parse_switch, switch_name
from mrc_testbed.topos.usid import Segments, outer_address, split_outer

USUAL_HOSTS_PER_T0 = 4
"""Of the standard fabric."""
_EXAMPLE = "{from: h0, to: h5, via: p1-t1-2}"
_CHOICE = family_choice(FAMILIES)


@dataclass(frozen=True, slots=True)
class PathEnds:
    """Two hosts, and a switch between their T0s that a path crosses, or their T0, in any plane."""

    source: int
    target: int
    via: SwitchPlace

    def ways(self, family: Family) -> list[Way]:
        """The ways over it; none where the family has not these hosts."""
        if max(self.source, self.target) >= family.hosts:
            return []
        ways = family.ways_of(family.t0_of(self.source), family.t0_of(self.target))
        return [way for way in ways if self.via in (way[1:-1] or way)]

    def path(self, family: Family, plane: int) -> Segments | None:
        """The only path over it, if there is one."""
        found = self.ways(family)
        if len(found) != 1:
            return None
        return Segments(plane, found[0], family.below[family.t0_of(self.target)].index(self.target))


@dataclass(frozen=True, slots=True)
class PathAddress(OfNoRun):
    """An IPv6 address whose uSIDs are the path from a host to another over a switch. `ends`: None where they are not
    known."""

    word: ClassVar[str] = "path"
    path: Segments
    title: str
    ends: PathEnds | None = None

    @classmethod
    def read(cls, keys: Keys) -> PathAddress:
        """Key `path` with `from`, `to`, `via`, and `hosts_per_t0` or `family`."""
        none = cls(Segments(0, (), 0), "")
        below = keys.below("path", _EXAMPLE)
        if below is None:
            return none
        source, target = (_host_at(below, key, example) for key, example in (("from", "h0"), ("to", "h5")))
        via = below.text("via", "p1-t1-2", needed=True)
        plane, tier, index = parse_switch(via) or (0, -1, 0)
        ends = PathEnds(source, target, SwitchPlace(tier, index))
        family = _family(below, ends)
        below.refuse_others()
        path = ends.path(family, plane) if family else None
        if family and path is None:
            below.complain(_no_path(len(ends.ways(family))), "via")
        return cls(path, f"{host_name(source)} to {host_name(target)} over {via}", ends) if path else none

    def misfit(self, family: Family) -> str:
        """What is wrong where the scenario has this family; empty if its path has the same address."""
        if self.ends is None or self.ends.path(family, self.path.plane) == self.path:
            return ""
        if isinstance(family, Clos2):
            return f"the scenario has hosts_per_t0 {family.hosts_per_t0}; write it here too"
        word = f"family: {{{family.word}: ...}}"
        return f"in the fabric of the scenario that is another path; write {word} here as the scenario has it"

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Parsed as switches would, so any spelling of the address counts."""
        text = plain_text(given)
        try:
            path = split_outer(text)
        except ValueError as error:
            raise Unusable(f"{text!r} is no address of a path: {error}") from None
        right = path == self.path
        return Judgement(right, outer_address(self.path), "" if right else f"its uSIDs name {_described(path)}")

    @property
    def form(self) -> str:
        """An address."""
        return "an IPv6 address, such as fcbb:bb00:..."


def _no_path(ways: int) -> str:
    if ways:
        return f"{ways} ways lead over it; write the highest switch of one, such as p1-t2-3"
    return "must be a T1, or for two hosts of one T0 that switch, such as p1-t1-2; over three tiers a T2 between pods"


def _family(keys: Keys, ends: PathEnds) -> Family | None:
    """As `family` says, or two tiers with `hosts_per_t0`. None after a complaint."""
    written = keys.below("family", "{clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}")
    if written is None:
        hosts = keys.whole("hosts_per_t0", USUAL_HOSTS_PER_T0, 1)
        groups = max(ends.source, ends.target) // hosts + 1
        return Clos2(groups, max(ends.via.number, 0) + 1, max(hosts, 2 // groups))
    try:
        return _CHOICE.model_validate(written.data).topology()
    except ValidationError as error:
        first = error.errors()[0]
        keys.complain(f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": "), "family")
    except ShapeError as error:
        keys.complain(f"{error.field}: {error.limit}", "family")
    return None


def _host_at(keys: Keys, key: str, example: str) -> int:
    name = keys.text(key, example, needed=True)
    number = parse_host(name)
    if name and number is None:
        keys.complain(f"must be a host, such as {example}", key)
    return number or 0


def _described(path: Segments) -> str:
    """The switches that an address names, in order, and the host's port."""
    switches = ", ".join(switch_name(path.plane, *place) for place in path.way)
    return f"{switches} and its host number {path.downlink}"
