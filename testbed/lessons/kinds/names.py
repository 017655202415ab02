"""Answers that name a part of the fabric: a host, switch, link or EV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from mrc_testbed.testbed.checks.windows import NoData, moments
from mrc_testbed.testbed.expect import Span, Window
from mrc_testbed.testbed.lessons.cells import InCell, split_cell
from mrc_testbed.testbed.lessons.evidence import CellRun, Evidence, NotKnown
from mrc_testbed.testbed.lessons.expression import ExpressionTerm
from mrc_testbed.testbed.lessons.kinds.kind import Judgement, Unusable, plain_text, plain_texts
from mrc_testbed.testbed.lessons.reading import Keys
from mrc_testbed.testbed.scenario.text.denylist import parse_paths
from mrc_testbed.topos.graph import MAX_TIERS
from mrc_testbed.topos.names import parse_host, parse_switch

_PARTS = ("plane", *(f"t{tier}" for tier in range(MAX_TIERS)), "host")


def same_name(text: str) -> frozenset[str]:
    """A name by its ends, in either order and any case: `p0-t1-0:p0-t0-0` is `p0-t0-0:p0-t1-0`."""
    return frozenset(re.split(r"[:_\s]+", text.strip().casefold()))


class Written:
    """An answer in words of one's own."""

    choices: ClassVar[tuple[str, ...]] = ()
    terms: ClassVar[tuple[ExpressionTerm, ...]] = ()


class OfNoRun(Written):
    """An answer that is the same whatever the runs say."""

    def own(self, evidence: Evidence) -> Any:
        """No run answers it."""
        raise LookupError


@dataclass(frozen=True, slots=True)
class Named(OfNoRun):
    """A fixed host, switch or link."""

    word: ClassVar[str] = "name"
    name: str

    @classmethod
    def read(cls, keys: Keys) -> Named:
        """Key `name`."""
        name = keys.text("name", "p0-t1-2")
        if any(parse_host(end) is None and parse_switch(end) is None for end in name.split(":")):
            keys.complain("is no host, switch or link, such as p0-t0-0:p0-t1-2", "name")
        return cls(name)

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """The ends of a link in either order."""
        return Judgement(same_name(plain_text(given)) == same_name(self.name), self.name)

    @property
    def form(self) -> str:
        """An example of another name."""
        return "a link, such as h0:p0-t0-0" if ":" in self.name else "a name, such as p0-t0-0"


@dataclass(frozen=True, slots=True)
class TargetOf(Written):
    """What a fault of the run hit. `part`: only that part of the name. `every`: all targets, else any of them."""

    word: ClassVar[str] = "target_of"
    fault: InCell
    part: str
    every: bool

    @classmethod
    def read(cls, keys: Keys) -> TargetOf:
        """Keys `target_of`, `part`, `all`."""
        part = keys.text("part", "plane")
        if part and part not in _PARTS:
            keys.complain(f"must be one of {', '.join(_PARTS)}", "part")
        return cls(split_cell(keys.text("target_of", "the name of a fault")), part, keys.flag("all"))

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """One of the targets, or all of them."""
        truth = self._targets(evidence)
        wanted = {same_name(name) for name in truth}
        found = {same_name(one) for one in plain_texts(given)}
        right = found == wanted if self.every else len(found) == 1 and found <= wanted
        return Judgement(right, ", ".join(truth))

    def own(self, evidence: Evidence) -> Any:
        """The first target, or all."""
        truth = self._targets(evidence)
        return truth if self.every else truth[0]

    def _targets(self, evidence: Evidence) -> list[str]:
        cell = evidence.one(self.fault.words)
        hit = [one for one in cell.record.occurrences if one.fault == self.fault.text]
        names = [name for one in hit for name in one.targets]
        parts = dict.fromkeys(part for name in names for part in self._of(name))
        if not parts:
            raise NotKnown(
                f"the fault {self.fault.text} of the run hit no {self.part}"
                if hit
                else f"the run has no fault {self.fault.text}"
            )
        return list(parts)

    def _of(self, name: str) -> Iterable[str]:
        return parts_of(name, self.part) if self.part else [name]

    @property
    def form(self) -> str:
        """What kind of name."""
        what = "the number of a plane" if self.part == "plane" else "a name, such as p0-t0-0 or h0:p0-t0-0"
        return f"{what}; all of them, with commas between" if self.every else what


def parts_of(name: str, part: str) -> Iterable[str]:
    """The plane, or the ends of one kind, in the name of a link, a switch or a plane."""
    for end in name.split(":"):
        switch, paths = parse_switch(end), parse_paths(end)
        if part == "host" and parse_host(end) is not None:
            yield end
        elif switch and part == "plane":
            yield str(switch[0])
        elif paths and part == "plane":
            yield str(paths.plane)
        elif switch and part == f"t{switch[1]}":
            yield end


@dataclass(frozen=True, slots=True)
class RetiredEv(Written):
    """An EV that a sender retired while a fault was on."""

    word: ClassVar[str] = "ev_of"
    sender: str
    peer: str
    fault: str
    words: tuple[str, ...]

    @classmethod
    def read(cls, keys: Keys) -> RetiredEv:
        """Keys `ev_of` (`h0->h4`) and `fault`."""
        pair, words = split_cell(keys.text("ev_of", '"h0->h4"'))
        sender, _, peer = (part.strip() for part in pair.partition("->"))
        if parse_host(sender) is None or parse_host(peer) is None:
            keys.complain("must be a sender and its peer, such as h0->h4", "ev_of")
        return cls(sender, peer, keys.text("fault", "cut", needed=True), words)

    def judge(self, given: Any, evidence: Evidence) -> Judgement:
        """Any of those that were retired."""
        text = plain_text(given).replace(" ", "")
        if not re.fullmatch(r"\d+/\d+", text):
            raise Unusable(f"{text!r} is no EV; write its plane and uplink, such as 0/2")
        truth = self._retired(evidence)
        return Judgement(text in truth, ", ".join(truth))

    def own(self, evidence: Evidence) -> str:
        """The first."""
        return self._retired(evidence)[0]

    def _retired(self, evidence: Evidence) -> list[str]:
        cell = evidence.one(self.words)
        changes = [one for one in cell.record.ev_changes if (one.host, one.peer) == (self.sender, self.peer)]
        during = _during(cell, self.fault)
        found = [f"{one.plane}/{one.uplink}" for one in changes if one.retired and during(one.t_ns)]
        if not found:
            raise NotKnown(f"{self.sender} retired no EV towards {self.peer} by {self.fault} in this run")
        return list(dict.fromkeys(found))

    @property
    def form(self) -> str:
        """Plane and uplink."""
        return "plane/uplink, such as 0/2"


def _during(cell: CellRun, fault: str) -> Callable[[float], bool]:
    """Whether a moment is in the fault's window. Raises NotKnown."""
    try:
        return moments(cell.record, Window(Span.FAULT, fault))
    except NoData as reason:
        raise NotKnown(str(reason)) from None
