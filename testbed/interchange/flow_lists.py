"""Lists of flows: our own CSV `start_s,src,dst,bytes[,name]`, also with quotes, semicolons or tabs, and the lines of
HPCC's generator (`traffic_gen.py`): a count, then `src dst priority port bytes start_s`, which begin at 2 s."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from mrc_testbed.testbed.expect.reserved import can_name
from mrc_testbed.testbed.interchange.found import MOST_FLOWS, PS_PER_S, FlowLine, Found, LeftOut
from mrc_testbed.testbed.interchange.text import FilePlace, lines_of, shown
from mrc_testbed.testbed.workloads.graph import MAX_BYTES, MAX_RANKS

KIND = "flows"
COLUMNS = ("start_s", "src", "dst", "bytes")
_NAMES = "name"
ENTRY_NAME = "trace"
"""Of the workload that plays the flows, so none of them can have it."""
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{0,18})?([eE]-?[0-9]{1,2})?", re.ASCII)
_NODE = re.compile(r"h?([0-9]{1,9})", re.ASCII)
_HPCC_WORDS = 6
_AROUND = " \r\n"
"""Characters to strip around a line; a tab at its end is before an empty cell."""
_BETWEEN = ("\t", ";")
"""Between cells, where the first line has it; else a comma."""


def read_flows(file: Path) -> Found:
    """A list of flows of either form. Raises FormatError."""
    place, losses = FilePlace(file), LeftOut()
    lines = (line for line in lines_of(place, _AROUND) if line.strip() and not line.startswith("#"))
    header = next(lines, "")
    if not header:
        raise place.wrong(f"is empty; the first line must be {','.join(COLUMNS)}, or the number of flows")
    flows = list(
        _hpcc(place, header, lines, losses) if header.strip().isdecimal() else _csv(place, header, lines, losses)
    )
    if not flows:
        raise place.wrong("has no flows")
    flows.sort(key=lambda flow: flow.start_ps)
    nodes = 1 + max(max(flow.src, flow.dst) for flow in flows)
    return Found(KIND, nodes, tuple(flows), lost=losses.lines())


def _csv(place: FilePlace, header: str, lines: Iterator[str], losses: LeftOut) -> Iterator[FlowLine]:
    between = next((one for one in _BETWEEN if one in header), ",")
    columns = _cells(place, header, between)
    known = (*COLUMNS, _NAMES)
    if wrong := next((one for one in columns if one not in known or columns.count(one) > 1), None):
        raise place.wrong(f"{shown(wrong)} is no column, or is there twice; the columns are {','.join(known)}")
    if missing := next((one for one in COLUMNS if one not in columns), None):
        raise place.wrong(f"the column {missing} is missing; write {','.join(COLUMNS)}")
    places = [columns.index(one) for one in COLUMNS]
    for count, line in enumerate(lines):
        if count == MOST_FLOWS:
            raise place.wrong(f"more than {MOST_FLOWS} flows; cut the list")
        cells = _cells(place, line, between)
        if len(cells) != len(columns):
            raise place.wrong(f"has {len(cells)} cells, and the first line names {len(columns)} columns")
        name = cells[columns.index(_NAMES)] if _NAMES in columns else ""
        yield _flow(place, [cells[one] for one in places])._replace(name=_kept(name, losses))


def _cells(place: FilePlace, line: str, between: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader((line,), delimiter=between, strict=True))]
    except csv.Error as error:
        raise place.wrong(f"has broken quotes: {error}") from None


def _kept(name: str, losses: LeftOut) -> str:
    """A name that expectations can use; else empty."""
    if not name or (can_name(name) and name != ENTRY_NAME):
        return name
    losses.note("name of a flow: names have lower-case letters, digits and dashes, and no meaning of their own here")
    return ""


def _hpcc(place: FilePlace, header: str, lines: Iterator[str], losses: LeftOut) -> Iterator[FlowLine]:
    count = place.whole(header.strip(), "the number of flows", MOST_FLOWS, 1)
    found: list[FlowLine] = []
    for line in lines:
        words = line.split()
        if len(words) != _HPCC_WORDS:
            raise place.wrong(f"has {len(words)} words; must be `src dst priority port bytes start_s`")
        src, dst, _, _, size, start = words
        found.append(_flow(place, [start, src, dst, size]))
        losses.note("priority and port of a flow: all flows are alike here")
        if len(found) > count:
            raise place.wrong(f"the first line says {count} flows, and here is one more")
    if len(found) < count:
        raise place.wrong(f"the first line says {count} flows, and the file has {len(found)}")
    first = min(flow.start_ps for flow in found)
    if first:
        losses.note(f"begin of {first / PS_PER_S:g} s before the first flow: all begin that much sooner")
    yield from (flow._replace(start_ps=flow.start_ps - first) for flow in found)


def _flow(place: FilePlace, cells: Sequence[str]) -> FlowLine:
    start, src, dst, size = cells
    flow = FlowLine(
        _start_ps(place, start),
        _node(place, src, "src"),
        _node(place, dst, "dst"),
        place.whole(size, "bytes", MAX_BYTES, 1),
    )
    if flow.src == flow.dst:
        raise place.wrong(f"node {flow.src} sends to itself")
    return flow


def _start_ps(place: FilePlace, text: str) -> int:
    if not _SECONDS.fullmatch(text):
        raise place.wrong(f"start_s is {shown(text)}, and must be a number of seconds, without a unit")
    return int(Decimal(text) * PS_PER_S)


def _node(place: FilePlace, text: str, what: str) -> int:
    found = _NODE.fullmatch(text)
    if not found:
        raise place.wrong(f"{what} is {shown(text)}, and must be the number of a node, or a host such as h3")
    return place.whole(found[1], what, MAX_RANKS - 1)


def flow_lines(flows: Sequence[FlowLine], name: Callable[[int], str]) -> Iterator[str]:
    """The lines of our own CSV, without line ends; with names where any flow has one. `name`: of a node."""
    named = any(flow.name for flow in flows)
    yield ",".join((*COLUMNS, _NAMES) if named else COLUMNS)
    for flow in flows:
        seconds = f"{flow.start_ps // PS_PER_S}.{flow.start_ps % PS_PER_S:012d}".rstrip("0").rstrip(".")
        yield f"{seconds},{name(flow.src)},{name(flow.dst)},{flow.bytes}{f',{flow.name}' if named else ''}"


def htsim_lines(flows: Sequence[FlowLine], nodes: int) -> Iterator[str]:
    """The lines of a connection matrix of htsim with the same flows, without line ends."""
    yield f"Nodes {nodes}"
    yield f"Connections {len(flows)}"
    for number, flow in enumerate(flows, 1):
        yield f"{flow.src}->{flow.dst} id {number} start {flow.start_ps} size {flow.bytes}"
