"""Connection matrices of htsim (`.cm`, `.tm`), as `connection_matrix.cpp` of csg-htsim and uet-htsim reads them.

`Nodes N`, `Connections C`, where they exist `Triggers T` and `Failures F`, then a line for each. Starts are ps there,
although the class itself writes us, with decimals; so a start with decimals needs its unit. Triggers make it a graph:
what fires one is the end of a flow at its sender, or its arrival at its receiver; the flow that it starts may begin at
a third node, and then an empty message carries the news. Failed links are those of a fat tree (`fat_tree.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from mrc_testbed.testbed.interchange.building import GraphBuilder
from mrc_testbed.testbed.interchange.fat_tree import FailedLink, FatTree, ports_of
from mrc_testbed.testbed.interchange.found import MOST_FLOWS, FlowLine, Found, LeftOut
from mrc_testbed.testbed.interchange.text import FilePlace, lines_of, shown, size_of
from mrc_testbed.testbed.workloads.graph import COMPUTE, MAX_BYTES, MAX_NS, MAX_RANKS, RECV, SEND

KIND = "htsim"
UNITS_PS = {"ps": 1, "ns": 10**3, "us": 10**6}
_COUNTS = {"Nodes": MAX_RANKS, "Connections": MOST_FLOWS, "Triggers": MOST_FLOWS, "Failures": MOST_FLOWS}
_MOST_PS = 10**18
_START = re.compile(r"[0-9]{1,19}(\.[0-9]{0,18})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_TRIGGER_KINDS = ("oneshot", "multishot", "barrier")
_FAILURE = ("switch_type", "switch_id", "link_id")
_TIERS = ("TOR", "AGG", "CORE")
_SHORT_PS = 10**6
_NEWS = 1 << 32
"""Tags of empty messages begin here; flows have their lines."""


@dataclass(slots=True)
class _Connection:
    src: int
    dst: int
    line: int
    values: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Trigger:
    """`count`: events until it fires, more than one of a barrier."""

    line: int
    count: int


_KEYS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "msg")
_LOST = {
    "prio": "priority: all flows of a host are alike here",
    "msg": "size of messages: the scenario's `message` has it",
}


class _Matrix:
    """A file while it is read."""

    def __init__(self, place: FilePlace, unit_ps: int | None) -> None:
        self.place, self.unit_ps, self.losses = place, unit_ps, LeftOut()
        self.counts: dict[str, int] = {}
        self.connections: list[_Connection] = []
        self.triggers: dict[int, _Trigger] = {}
        self.failures: dict[tuple[str, FailedLink], int] = {}
        """Tier and link, and the line of each."""

    def read(self) -> None:
        """All lines, and whether there are as many as the header says."""
        for line in lines_of(self.place):
            words = line.partition("#")[0].split()
            if words:
                self._line(words)
        for key, found in (
            ("Connections", len(self.connections)),
            ("Triggers", len(self.triggers)),
            ("Failures", len(self.failures)),
        ):
            said = self.counts.get(key, 0)
            if said != found:
                raise self.place.wrong(f"the header says {key} {said}, and the file has {found}")
        if not self.connections:
            raise self.place.wrong("has no connections")

    def _line(self, words: list[str]) -> None:
        if words[0] != "Nodes" and "Nodes" not in self.counts:
            raise self.place.wrong("the first line must be `Nodes N`")
        if words[0] in _COUNTS:
            self._count(words)
        elif "->" in words[0]:
            self._connection(words)
        elif words[0] == "trigger":
            self._trigger(words)
        elif words[0] == "failure":
            self._failure(words)
        else:
            raise self.place.wrong(f"{shown(words[0])} is none of Nodes, Connections, SRC->DST, trigger, failure")

    def _failure(self, words: list[str]) -> None:
        given = dict(zip(words[1::2], words[2::2], strict=False))
        if len(words) != 7 or given.keys() != set(_FAILURE) or given["switch_type"] not in _TIERS:
            raise self.place.wrong(f"must be `failure switch_type {'|'.join(_TIERS)} switch_id N link_id M`")
        switch, link = (self.place.whole(given[key], key, MAX_RANKS) for key in _FAILURE[1:])
        found = given["switch_type"], FailedLink(switch, link)
        if found in self.failures:
            raise self.place.wrong(f"this link has failed in line {self.failures[found]}, too")
        if len(self.failures) == MOST_FLOWS:
            raise self.place.wrong(f"more than {MOST_FLOWS} failures")
        self.failures[found] = self.place.line

    def fat_tree(self) -> FatTree | None:
        """The fat tree with these nodes, and those failures that it can have; None for no failure."""
        tree = FatTree(ports_of(self.counts["Nodes"]), ())
        failed = [one for tier, one in self.failures if tier == "AGG" and tree.has(one)]
        if others := len(self.failures) - len(failed):
            self.losses.note(
                f"failure of a link that the fat tree of {self.counts['Nodes']} nodes lacks, or of a TOR or CORE: add "
                "`link-down` to `faults`",
                others,
            )
        return tree._replace(failed=tuple(failed)) if failed else None

    def _count(self, words: list[str]) -> None:
        key = words[0]
        if len(words) != 2:
            raise self.place.wrong(f"must be `{key} N`")
        if key in self.counts:
            raise self.place.wrong(f"a second {key}")
        self.counts[key] = self.place.whole(words[1], key, _COUNTS[key])

    def _connection(self, words: list[str]) -> None:
        src, _, dst = words[0].partition("->")
        last = self.counts["Nodes"] - 1
        found = _Connection(
            self.place.whole(src, "a node", last), self.place.whole(dst, "a node", last), self.place.line
        )
        if found.src == found.dst:
            raise self.place.wrong(f"node {found.src} sends to itself")
        found.values = self._pairs(words[1:])
        if ("start" in found.values) == ("trigger" in found.values):
            raise self.place.wrong("needs `start` or `trigger`, one of the two")
        if found.values.get("size", 0) < 1:
            raise self.place.wrong("needs `size` in bytes: a flow without an end has no completion time")
        if "trigger" in found.values and not found.values.get("id"):
            raise self.place.wrong("a flow with `trigger` needs an `id` other than 0")
        if len(self.connections) == MOST_FLOWS:
            raise self.place.wrong(f"more than {MOST_FLOWS} connections")
        self.connections.append(found)

    def _pairs(self, words: Sequence[str]) -> dict[str, int]:
        if len(words) % 2:
            raise self.place.wrong(f"{shown(words[-1])} has no value")
        found: dict[str, int] = {}
        for key, value in zip(words[::2], words[1::2], strict=True):
            if key not in _KEYS:
                raise self.place.wrong(f"unknown key {shown(key)}; known keys: {', '.join(_KEYS)}")
            if key in found:
                raise self.place.wrong(f"`{key}` is there twice")
            found[key] = self._start_ps(value) if key == "start" else self.place.whole(value, key, MAX_BYTES)
            if key in _LOST:
                self.losses.note(_LOST[key])
        return found

    def _start_ps(self, text: str) -> int:
        start = Decimal(text) if _START.fullmatch(text) else Decimal(-1)
        if start > 0 and "." in text and self.unit_ps is None:
            why = "starts with decimals are us where htsim wrote the file, and ps where it reads it"
            raise self.place.wrong(f"{why}; say which by --start-unit")
        ps = start * (self.unit_ps or 1)
        if not 0 <= ps <= _MOST_PS:
            raise self.place.wrong(f"start is {shown(text)}, and must be a number from 0 to {_MOST_PS} ps")
        return int(ps)

    def _trigger(self, words: list[str]) -> None:
        if len(words) not in (4, 6) or words[1] != "id" or words[3] not in _TRIGGER_KINDS:
            raise self.place.wrong(f"must be `trigger id N {'|'.join(_TRIGGER_KINDS)} [count N]`")
        number = self.place.whole(words[2], "id", MAX_BYTES)
        if number in self.triggers:
            raise self.place.wrong(f"a second trigger {number}; the first is in line {self.triggers[number].line}")
        count = 1
        if len(words) == 6:
            if words[4] != "count":
                raise self.place.wrong(f"{shown(words[4])} must be `count`")
            count = self.place.whole(words[5], "count", MOST_FLOWS, 1)
        self.triggers[number] = _Trigger(self.place.line, count)


def read_htsim(file: Path, unit_ps: int | None = None) -> Found:
    """A connection matrix. `unit_ps`: of its starts, ps where nothing is said. Raises FormatError."""
    matrix = _Matrix(FilePlace(file), unit_ps)
    matrix.read()
    tree = matrix.fat_tree()
    more = _warnings(matrix)
    nodes = matrix.counts["Nodes"]
    if not any("trigger" in one.values for one in matrix.connections):
        flows = tuple(FlowLine(one.values["start"], one.src, one.dst, one.values["size"]) for one in matrix.connections)
        return Found(KIND, nodes, flows, lost=matrix.losses.lines(more), fat_tree=tree)
    builder = _graph(file, matrix)
    return Found(KIND, nodes, graph=builder.graph(nodes), lost=matrix.losses.lines(more), fat_tree=tree)


def _warnings(matrix: _Matrix) -> list[str]:
    starts = [one.values["start"] for one in matrix.connections if "start" in one.values]
    if matrix.unit_ps is None and 0 < max(starts, default=0) < _SHORT_PS:
        return [f"the last flow starts at {max(starts)} ps; if that is not meant, give --start-unit us"]
    return []


def _graph(file: Path, matrix: _Matrix) -> GraphBuilder:
    """Every flow as a send and its recv; a start as a computation before it."""
    builder = GraphBuilder(file, size_of(file))
    firing: dict[int, list[int]] = {}
    sends = []
    for one in matrix.connections:
        send = builder.add(SEND, one.src, one.values["size"], one.dst, one.line, one.line)
        recv = builder.add(RECV, one.dst, one.values["size"], one.src, one.line, one.line)
        sends.append(send)
        start_ns = min(one.values.get("start", 0) // 1000, MAX_NS)
        if start_ns:
            builder.wait(send, builder.add(COMPUTE, one.src, start_ns, place=one.line))
        for key, fires in (("send_done_trigger", send), ("recv_done_trigger", recv)):
            if key in one.values:
                firing.setdefault(one.values[key], []).append(fires)
    for one, send in zip(matrix.connections, sends, strict=True):
        if "trigger" in one.values:
            _start(builder, matrix, one, send, firing)
    return builder


def _start(builder: GraphBuilder, matrix: _Matrix, one: _Connection, send: int, firing: dict[int, list[int]]) -> None:
    """Let a flow wait for its trigger."""
    number, place = one.values["trigger"], matrix.place
    place.line = one.line
    if number not in matrix.triggers:
        raise place.wrong(f"trigger {number} is not defined")
    causes, needed = firing.get(number, []), matrix.triggers[number].count
    if len(causes) < needed:
        raise place.wrong(f"trigger {number} needs {needed} events, and {len(causes)} flows fire it")
    if len(causes) > needed:
        matrix.losses.note("trigger fired more often than it needs: the flow waits for the first ones of the file")
    for cause in causes[:needed]:
        src = builder.rank_of(cause)
        if src == one.src:
            builder.wait(send, cause)
            continue
        matrix.losses.note("trigger of another node: an empty message carries it, so it comes half a round trip later")
        told = builder.add(SEND, src, 0, one.src, _NEWS + one.line, one.line)
        builder.wait(told, cause)
        builder.wait(send, builder.add(RECV, one.src, 0, src, _NEWS + one.line, one.line))
