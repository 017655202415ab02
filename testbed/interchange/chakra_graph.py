"""The traces of all ranks as one graph: computations, sends and recvs as they are, collectives as rings and trees."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mrc_testbed.testbed.interchange.bounds import bounds_of
from mrc_testbed.testbed.interchange.building import GraphBuilder
from mrc_testbed.testbed.interchange.chakra import (
    COLLECTIVE,
    COMM_RECV,
    COMM_SEND,
    COMP,
    MOST_TYPE,
    VERSION,
    ChakraNode,
    ChakraRank,
    files_of,
    read_rank,
)
from mrc_testbed.testbed.interchange.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    BARRIER,
    BROADCAST,
    NAMES,
    REDUCE,
    CollectiveGraph,
)
from mrc_testbed.testbed.interchange.found import Found, LeftOut
from mrc_testbed.testbed.interchange.protobuf import Meter
from mrc_testbed.testbed.interchange.text import FormatError, require_file, shown, size_of, unreadable
from mrc_testbed.testbed.workloads.graph import COMPUTE, MAX_BYTES, MAX_NS, RECV, SEND

KIND = "chakra"
_MOST_TAG = (1 << 32) - 1
_OF_COLLECTIVES = 1 << 33
"""Tags of collectives begin here."""
_GPU, _CPU = 0, 1
"""Streams: computations of a rank on either follow each other."""
_METADATA = 1
_MOST_GROUP_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class ChakraOptions:
    """What a trace does not say. `ops_per_s`: of computations that have a number of operations and no duration, 0 for
    unknown; `groups`: the file with the ranks of process groups; `each_gathers`: the size of an all-gather is that of
    each rank's part."""

    ops_per_s: float = 0.0
    groups: Path | None = None
    each_gathers: bool = False


class _Group(NamedTuple):
    """`parts`: of each member its collectives, in the order of its file."""

    members: tuple[int, ...]
    parts: Mapping[int, list[_Part]]


def _group_of(members: tuple[int, ...]) -> _Group:
    return _Group(members, {one: [] for one in members})


class _Part(NamedTuple):
    """A rank's part of a collective."""

    rank: int
    node: ChakraNode
    begin: int


def read_chakra(file: Path, options: ChakraOptions | None = None) -> Found:
    """A whole trace; `file` is that of any rank. Raises FormatError."""
    files = files_of(file)
    size = size_of(*files)
    meter = Meter(bounds_of(size))
    traces = [read_rank(one, meter) for one in files]
    reading = _Reading(file, size, traces, options or ChakraOptions())
    reading.nodes()
    reading.collectives()
    reading.dependencies()
    return Found(KIND, len(traces), graph=reading.builder.graph(len(traces)), lost=reading.losses.lines())


class _Reading:
    """A trace on its way into a graph."""

    def __init__(self, file: Path, size: int, traces: Sequence[ChakraRank], options: ChakraOptions) -> None:
        self.traces, self.options, self.losses = traces, options, LeftOut()
        self.builder = GraphBuilder(file, size, "node")
        self.groups = _groups(options.groups, len(traces)) if options.groups else {}
        self.begins: list[dict[int, int]] = [{} for _ in traces]
        self.ends: list[dict[int, int]] = [{} for _ in traces]
        self.everybody = _group_of(tuple(range(len(traces))))
        self.named: dict[str, _Group] = {}
        self.by_members = {self.everybody.members: self.everybody}

    def nodes(self) -> None:
        """All nodes but for what they need."""
        for rank, trace in enumerate(self.traces):
            if trace.version not in ("", VERSION):
                self.losses.note(f"version {shown(trace.version)}, read as {VERSION}")
            for node in trace.nodes:
                self._node(rank, trace, node)

    def _node(self, rank: int, trace: ChakraRank, node: ChakraNode) -> None:
        if not _METADATA <= node.type <= MOST_TYPE:
            raise trace.wrong(node, f"the unknown type {node.type}")
        if node.type in (COMM_SEND, COMM_RECV):
            number = self._message(rank, trace, node)
        elif node.type == COLLECTIVE:
            number = self.builder.add(COMPUTE, rank, 0, place=node.id)
            self._group(rank, trace, node).parts[rank].append(_Part(rank, node, number))
        else:
            on = (_CPU if node.attributes.get("is_cpu_op") else _GPU) if node.type == COMP else None
            number = self.builder.add(COMPUTE, rank, self._ns(trace, node), mark=on, place=node.id)
        self.begins[rank][node.id] = self.ends[rank][node.id] = number

    def _ns(self, trace: ChakraRank, node: ChakraNode) -> int:
        operations = node.attributes.get("num_ops", 0)
        if node.type == COMP and not node.duration_us and isinstance(operations, int | float) and operations > 0:
            if not self.options.ops_per_s:
                raise trace.wrong(node, f"{operations} operations and no duration; say how fast: --peak-ops 1e15")
            ns = round(min(operations / self.options.ops_per_s * 1e9, MAX_NS + 1))
        else:
            ns = node.duration_us * 1000
        if ns > MAX_NS:
            raise trace.wrong(node, f"computes for more than {MAX_NS // 10**9} s")
        if node.type not in (COMP, _METADATA):
            self.losses.note("memory or storage operation: it takes its duration, and nobody waits for the device")
        return ns

    def _message(self, rank: int, trace: ChakraRank, node: ChakraNode) -> int:
        kind, key = (SEND, "comm_dst") if node.type == COMM_SEND else (RECV, "comm_src")
        peer = _number(trace, node, key, len(self.traces) - 1)
        if peer == rank:
            raise trace.wrong(node, f"rank {rank} sends to itself")
        size, tag = (_number(trace, node, one, most, usual) for one, most, usual in _OF_MESSAGE)
        return self.builder.add(kind, rank, size, peer, tag, node.id)

    def _group(self, rank: int, trace: ChakraRank, node: ChakraNode) -> _Group:
        """That of a collective."""
        name = str(node.attributes.get("pg_name", ""))
        found = self._named(name) if name in self.groups else self.everybody
        if rank not in found.parts:
            raise trace.wrong(node, f"rank {rank} is not in the process group {shown(name)}")
        if name and self.options.groups and name not in self.groups:
            raise trace.wrong(node, f"the process group {shown(name)} is not in {self.options.groups}")
        if name and not self.options.groups:
            self.losses.note("collective of a process group: all ranks, without --groups FILE")
        return found

    def _named(self, name: str) -> _Group:
        """Names with the same ranks are one group."""
        if name not in self.named:
            members = self.groups[name]
            self.named[name] = self.by_members.get(members) or _group_of(members)
            self.by_members[members] = self.named[name]
        return self.named[name]

    def collectives(self) -> None:
        """The messages of all collectives: the n-th of a group is the same on all its ranks."""
        tag = _OF_COLLECTIVES
        for members, of_rank in self.by_members.values():
            counts = {rank: len(of_rank[rank]) for rank in members}
            most = max(counts, key=lambda rank: counts[rank])
            least = min(counts, key=lambda rank: counts[rank])
            if counts[most] > counts[least]:
                part = of_rank[most][counts[least]]
                raise self.traces[most].wrong(part.node, f"a collective of {len(members)} ranks; rank {least} has none")
            for parts in zip(*(of_rank[rank] for rank in members), strict=True):
                tag += 1
                self._collective(members, parts, tag)

    def _collective(self, members: Sequence[int], parts: Sequence[_Part], tag: int) -> None:
        terms = [self._terms(part) for part in parts]
        for part, found in zip(parts, terms, strict=True):
            if found != terms[0]:
                trace = self.traces[part.rank]
                why = f"{_said(found)}, where node {parts[0].node.id} of rank {parts[0].rank} has {_said(terms[0])}"
                raise trace.wrong(part.node, why)
        kind, size, root = terms[0]
        if kind == ALL_GATHER and self.options.each_gathers:
            size *= len(members)
        if len(members) == 1:
            return
        laid = CollectiveGraph(self.builder, members, [part.begin for part in parts], tag)
        for part, end in zip(parts, laid.laid_out(kind, size, root), strict=True):
            self.ends[part.rank][part.node.id] = end

    def _terms(self, part: _Part) -> tuple[int, int, int]:
        trace, node = self.traces[part.rank], part.node
        kind = _number(trace, node, "comm_type", len(NAMES) - 1)
        size = _number(trace, node, "comm_size", MAX_BYTES, 0 if kind == BARRIER else None)
        rooted = kind not in (ALL_REDUCE, ALL_GATHER, BARRIER) and kind < len(NAMES)
        root = _number(trace, node, "root", MAX_BYTES, 0) if rooted else 0
        if kind in (REDUCE, BROADCAST) and "root" not in node.attributes:
            self.losses.note("root of a broadcast or reduce that is not said: the first rank of its group")
        return kind, size, root

    def dependencies(self) -> None:
        """What each node needs."""
        for trace, begins, ends in zip(self.traces, self.begins, self.ends, strict=True):
            for node in trace.nodes:
                for need in node.needs:
                    if need not in ends:
                        raise trace.wrong(node, f"needs node {need}, which is not there")
                    self.builder.wait(begins[node.id], ends[need])


_OF_MESSAGE = (("comm_size", MAX_BYTES, None), ("comm_tag", _MOST_TAG, 0))


def _said(terms: tuple[int, int, int]) -> str:
    return f"{NAMES[terms[0]]} of {terms[1]} bytes"


def _number(trace: ChakraRank, node: ChakraNode, key: str, most: int, usual: int | None = None) -> int:
    value = node.attributes.get(key, usual)
    if value is None:
        raise trace.wrong(node, f"lacks the attribute {key}")
    if type(value) is not int or not 0 <= value <= most:
        raise trace.wrong(node, f"{key} is {shown(str(value))}, and must be a whole number from 0 to {most}")
    return value


def _groups(file: Path, ranks: int) -> Mapping[str, tuple[int, ...]]:
    """The ranks of each process group. Raises FormatError."""
    require_file(file)
    try:
        with file.open("rb") as content:
            raw = json.loads(content.read(_MOST_GROUP_BYTES))
    except OSError as error:
        raise unreadable(file, error) from None
    except (ValueError, RecursionError):
        raise FormatError(file, "", "is no JSON") from None
    if not isinstance(raw, dict):
        raise FormatError(file, "", 'must be an object of groups, such as {"0": [0, 1, 2, 3]}')
    for name, members in raw.items():
        if not isinstance(members, list) or not members or len(set(map(str, members))) < len(members):
            raise FormatError(file, f"group {shown(name)}", "must be a list of different ranks")
        wrong = [str(one) for one in members if type(one) is not int or not 0 <= one < ranks]
        if wrong:
            raise FormatError(file, f"group {shown(name)}", f"{shown(wrong[0])} is no rank from 0 to {ranks - 1}")
    return {name: tuple(members) for name, members in raw.items()}
