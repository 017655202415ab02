"""GOAL, the text form (the grammar of `txt2bin.re` of spcl/atlahs): what each rank sends, receives and computes.

`num_ranks N`, then `rank R {` ... `}` with a statement a line: `[label:] send BYTESb to R [tag T] [cpu C] [nic K]`,
`[label:] recv BYTESb from R [tag T] [cpu C] [nic K]`, `[label:] calc NS [cpu C]`, `A requires B` (A begins after the
end of B) and `A irequires B` (after its begin). A send ends when it is acknowledged. A recv with -1 for its rank or its
tag is read where all sends that fit come from one rank with one tag: else who comes first decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.interchange.building import MOST_TAG, GraphBuilder
from mrc_testbed.testbed.interchange.found import Found, LeftOut
from mrc_testbed.testbed.interchange.text import (
    FilePlace,
    FormatError,
    lines_of,
    require_file,
    shown,
    size_of,
    unreadable,
)
from mrc_testbed.testbed.workloads.graph import COMPUTE, MAX_BYTES, MAX_NS, MAX_RANKS, RECV, SEND, possible_order

KIND = "goal"
_BINARY = (4223).to_bytes(4, "little"), (4223).to_bytes(4, "big")
_LABEL = r"(?:(?P<label>[A-Za-z][A-Za-z0-9_]*)\s*:\s*)?"
_OPTIONS = r"(?:\s+tag\s+(?P<tag>-?[0-9]+))?(?:\s+cpu\s+(?P<cpu>[0-9]+))?(?:\s+nic\s+(?P<nic>[0-9]+))?"
_SEND = re.compile(_LABEL + r"(?P<kind>send)\s+(?P<amount>[0-9]+)b\s+to\s+(?P<peer>[0-9]+)" + _OPTIONS, re.ASCII)
_RECV = re.compile(_LABEL + r"(?P<kind>recv)\s+(?P<amount>[0-9]+)b\s+from\s+(?P<peer>-?[0-9]+)" + _OPTIONS, re.ASCII)
_CALC = re.compile(_LABEL + r"(?P<kind>calc)\s+(?P<amount>[0-9]+)(?:\s+cpu\s+(?P<cpu>[0-9]+))?", re.ASCII)
_REQUIRES = re.compile(
    r"(?P<what>[A-Za-z][A-Za-z0-9_]*)\s+(?P<how>i?requires)\s+(?P<on>[A-Za-z][A-Za-z0-9_]*)", re.ASCII
)
_RANKS = re.compile(r"num_ranks\s+([0-9]+)", re.ASCII)
_BEGIN = re.compile(r"rank\s+([0-9]+)\s*\{", re.ASCII)
_ANY = "-1"
_MOST_CPU = 1 << 20


class _AnyRecv(NamedTuple):
    """A recv from any rank, or with any tag: None for either."""

    number: int
    rank: int
    peer: int | None
    tag: int | None
    line: int


class _Goal:
    """A file while it is read."""

    def __init__(self, file: Path) -> None:
        self.place, self.builder, self.losses = FilePlace(file), GraphBuilder(file, size_of(file)), LeftOut()
        self.ranks = 0
        self.rank: int | None = None
        self.begun: dict[int, int] = {}
        self.labels: dict[str, int] = {}
        self.begins: dict[int, list[int]] = defaultdict(list)
        """Those of an operation that it only waits for to begin."""
        self._comment = False
        self._anys: list[_AnyRecv] = []
        self._fitting: dict[tuple[int, int | None, int | None], set[tuple[int, int]]] = defaultdict(set)
        """Ranks and tags of the sends to a rank that fit a recv from a rank, with a tag, or any: two are enough."""

    def line(self, text: str) -> None:
        """The next line of the file."""
        text = self._without_comments(text)
        if not text:
            return
        if not self.ranks:
            found = _RANKS.fullmatch(text)
            if not found:
                raise self.place.wrong("the first line must be `num_ranks N`")
            self.ranks = self.place.whole(found[1], "num_ranks", MAX_RANKS, 1)
        elif self.rank is None:
            self._begin(text)
        elif text == "}":
            self.rank = None
        else:
            self._statement(text)

    def _without_comments(self, text: str) -> str:
        if self._comment:
            _, end, text = text.partition("*/")
            if not end:
                return ""
            self._comment = False
        text = re.sub(r"/\*.*?\*/", " ", text).partition("//")[0]
        before, begins, _ = text.partition("/*")
        self._comment = bool(begins)
        return before.strip()

    def _begin(self, text: str) -> None:
        found = _BEGIN.fullmatch(text)
        if not found:
            raise self.place.wrong(f"{shown(text)} must be `rank R {{`")
        self.rank = self.place.whole(found[1], "rank", self.ranks - 1)
        if self.rank in self.begun:
            raise self.place.wrong(f"rank {self.rank} is there twice; the first is in line {self.begun[self.rank]}")
        self.begun[self.rank] = self.place.line
        self.labels = {}

    def _statement(self, text: str) -> None:
        assert self.rank is not None
        if found := _REQUIRES.fullmatch(text):
            self._require(found)
            return
        found = _SEND.fullmatch(text) or _RECV.fullmatch(text) or _CALC.fullmatch(text)
        if not found:
            raise self.place.wrong(f"{shown(text)} is no statement of GOAL")
        number = self._calc(found) if found["kind"] == "calc" else self._message(found, self.rank)
        if label := found["label"]:
            if label in self.labels:
                raise self.place.wrong(f"a second label {shown(label)} of rank {self.rank}")
            self.labels[label] = number

    def _calc(self, found: re.Match[str]) -> int:
        assert self.rank is not None
        amount = self.place.whole(found["amount"], "calc", MAX_NS)
        cpu = self.place.whole(found["cpu"] or "0", "cpu", _MOST_CPU)
        return self.builder.add(COMPUTE, self.rank, amount, mark=cpu, place=self.place.line)

    def _message(self, found: re.Match[str], rank: int) -> int:
        amount = self.place.whole(found["amount"], "bytes", MAX_BYTES)
        if found["cpu"] not in (None, "0"):
            self.losses.note("cpu of a message: only computations have one")
        if found["nic"] not in (None, "0"):
            self.losses.note("nic of a message: a host has one, with a port in each plane")
        said_tag, line = found["tag"] or "0", self.place.line
        may_be_any = found["kind"] == "recv"
        peer = (
            None if may_be_any and found["peer"] == _ANY else self.place.whole(found["peer"], "a rank", self.ranks - 1)
        )
        tag = None if may_be_any and said_tag == _ANY else self.place.whole(said_tag, "tag", MOST_TAG)
        if peer == rank:
            raise self.place.wrong(f"rank {rank} sends to itself")
        if peer is None or tag is None:
            self._anys.append(_AnyRecv(self.builder.add(RECV, rank, amount, place=line), rank, peer, tag, line))
            return self._anys[-1].number
        if not may_be_any:
            self._note_send(rank, peer, tag)
        return self.builder.add(RECV if may_be_any else SEND, rank, amount, peer, tag, line)

    def _note_send(self, src: int, dst: int, tag: int) -> None:
        for fits in ((dst, None, None), (dst, src, None), (dst, None, tag)):
            if len(self._fitting[fits]) < 2:
                self._fitting[fits].add((src, tag))

    def _meet(self, one: _AnyRecv) -> None:
        """Let a recv from any rank be one from the only rank that it can be."""
        fitting = self._fitting.get((one.rank, one.peer, one.tag), set())
        whom = "from any rank" if one.peer is None else "with any tag"
        self.place.line = one.line
        if not fitting:
            raise self.place.wrong(f"no send fits this recv {whom}")
        if len(fitting) > 1:
            both = " and ".join(f"of rank {src} with tag {tag}" for src, tag in sorted(fitting))
            raise self.place.wrong(f"sends {both} fit this recv {whom}: who comes first would decide")
        self.builder.meet(one.number, *min(fitting))

    def _require(self, found: re.Match[str]) -> None:
        what, on = (self._labelled(found[one]) for one in ("what", "on"))
        if found["how"] == "requires":
            self.builder.wait(what, on)
        else:
            self.begins[what].append(on)
            self.losses.note("`irequires`: it waits for what the other waits for")

    def _labelled(self, label: str) -> int:
        if label not in self.labels:
            raise self.place.wrong(f"no label {shown(label)} above in rank {self.rank}")
        return self.labels[label]

    def found(self) -> Found:
        """All of it, when all lines are read."""
        if not self.ranks:
            raise self.place.wrong("is empty; the first line must be `num_ranks N`")
        if self.rank is not None:
            raise self.place.wrong(f"rank {self.rank} of line {self.begun[self.rank]} has no `}}`")
        missing = next((rank for rank in range(self.ranks) if rank not in self.begun), None)
        if missing is not None:
            raise self.place.wrong(f"rank {missing} is missing: num_ranks is {self.ranks}")
        for one in self._anys:
            self._meet(one)
        self._begin_together()
        return Found(KIND, self.ranks, graph=self.builder.graph(self.ranks), lost=self.losses.lines())

    def _begin_together(self) -> None:
        """Let what waits for others to begin wait for all that these wait for."""
        order, lacking = possible_order([self.begins.get(one, ()) for one in range(len(self.builder))])
        if len(order) < len(lacking):
            what = next(number for number, count in enumerate(lacking) if count)
            self.place.line = self.builder.line_of(what)
            raise self.place.wrong("operations wait for each other to begin")
        for what in order:
            for on in dict.fromkeys(self.begins.get(what, ())):
                self.builder.wait(what, *self.builder.gate(on))


def read_goal(file: Path) -> Found:
    """A schedule in GOAL. Raises FormatError."""
    require_file(file)
    try:
        with file.open("rb") as content:
            head = content.read(4)
    except OSError as error:
        raise unreadable(file, error) from None
    if head in _BINARY:
        raise FormatError(file, "", "is GOAL in binary, an image of memory; import the text that it was made from")
    goal = _Goal(file)
    for line in lines_of(goal.place):
        goal.line(line)
    return goal.found()
