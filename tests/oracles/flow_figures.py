"""Metrics of flows again, from the raw files: rates, shares, and times of messages. As tests/oracles/figures.py."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.oracles.raw import Raw, Row, Window

Values = list[float]
Found = Sequence[float] | float | None
WARM_UP_MESSAGES = 10
PAYLOAD, WIRE = 4096, 4096 + 142
"""Bytes of a full packet of MRC: what it carries, and what it takes of a port."""
LEAST_BYTES = 20 * PAYLOAD
SETTLE_NS = 800_000_000
"""Twenty round trips, which are longer than 200 ms in all of our runs."""
S = 1_000_000_000


class Greedy(NamedTuple):
    """A flow that takes all that it can get."""

    name: str
    begin_ns: int
    end_ns: int
    qps: int


def greedy(raw: Raw) -> list[Greedy]:
    """Flows of the scenario; times are whole seconds there."""
    found = []
    for entry in raw.scenario["workload"]:
        if flow := entry.get("write"):
            begin = raw.start_ns + _seconds(flow.get("start", "0s"))
            found.append(
                Greedy(f"{flow['from']}->{flow['to']}", begin, begin + _seconds(flow["for"]), flow.get("qps", 1))
            )
    return found


def _seconds(text: str) -> int:
    return int(text.removesuffix("s")) * S


def shares(raw: Raw, going: Sequence[Greedy]) -> dict[str, float]:
    """The share that each of the flows to one host gets of its ports, by its QPs, in bytes of payload a second. A flow
    may have no more than its sender's ports either; our runs have one sender for each flow, and one receiver."""
    ports = raw.scenario["fabric"]["planes"]
    rate_bps = float(raw.scenario["fabric"]["port_rate"].removesuffix("mbit")) * 1e6
    line = ports * rate_bps / 8 * PAYLOAD / WIRE
    all_qps = sum(flow.qps for flow in going)
    return {flow.name: line * flow.qps / all_qps for flow in going}


def steady(raw: Raw, window: Window, scope: str) -> Iterator[tuple[Greedy, Row, float]]:
    """Rows of stretches of 100 ms in which the same flows went on for a while already, with the fair rate."""
    flows = greedy(raw)
    edges = sorted({edge for flow in flows for edge in (flow.begin_ns, flow.end_ns)})
    for begin, end in itertools.pairwise(edges):
        going = [flow for flow in flows if flow.begin_ns <= begin and end <= flow.end_ns]
        fair = shares(raw, going)
        for flow in (flow for flow in going if scope in ("", flow.name, flow.name.split("->")[1])):
            for row in (row for row in raw.table("flows") if row["flow"] == flow.name):
                inside = begin + SETTLE_NS <= row["begin_ns"] and row["end_ns"] <= end
                if inside and window.counts(row["begin_ns"], row["end_ns"]):
                    yield flow, row, fair[flow.name]


def _figures(raw: Raw, window: Window, scope: str) -> dict[str, tuple[float, float, float]]:
    """By flow: bytes, bytes that were fair, and nanoseconds; nothing where some flow has too few bytes."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for flow, row, rate in steady(raw, window, scope):
        took = (row["end_ns"] - row["begin_ns"]) / flow.qps
        for number, more in enumerate((row["bytes"], rate * took / S, took)):
            found[flow.name][number] += more
    few = any(fair < LEAST_BYTES for _, fair, _ in found.values())
    return {} if few else {name: (one[0], one[1], one[2]) for name, one in found.items()}


def flow_goodput(raw: Raw, window: Window, scope: str) -> Found:
    return [moved * S / took for moved, _, took in _figures(raw, window, scope).values()] or None


def fair_share(raw: Raw, window: Window, scope: str) -> Found:
    return [moved / fair for moved, fair, _ in _figures(raw, window, scope).values()] or None


def balance(raw: Raw, window: Window, scope: str) -> Found:
    """The figure of several flows."""
    found = [moved / fair for moved, fair, _ in _figures(raw, window, scope).values()]
    return min(found) / max(found) if len(found) > 1 else None


def _messages(raw: Raw, window: Window, scope: str, kind: str) -> Values:
    pairs = {f"{entry[kind]['from']}->{entry[kind]['to']}" for entry in raw.scenario["workload"] if kind in entry}
    return [
        row["duration_ns"]
        for row in raw.table("messages")
        if row["flow"] in pairs
        and scope in ("", row["flow"], row["flow"].split("->")[1])
        and window.counts(row["end_ns"] - row["duration_ns"], row["end_ns"])
    ]


def message_time(raw: Raw, window: Window, scope: str) -> Found:
    return _messages(raw, window, scope, "write") or None


def latency(raw: Raw, window: Window, scope: str) -> Found:
    """Without the ten messages that do not count, which are earlier than every window of ours begins."""
    warm_up = WARM_UP_MESSAGES if window.words == "" else 0
    return [took / 2 for took in _messages(raw, window, scope, "latency")[warm_up:]] or None


def _traced(name: str) -> Callable[[Raw, Window, str], Found]:
    def values(raw: Raw, window: Window, scope: str) -> Found:
        return [
            row[name]
            for row in raw.table("flow_times")
            if scope in ("", row["flow"], row["flow"].split("->")[1]) and window.counts(row["begin_ns"], row["end_ns"])
        ] or None

    return values


FLOW_FIGURES: dict[str, Callable[[Raw, Window, str], Found]] = {
    **{"flow_goodput": flow_goodput, "fair_share": fair_share, "balance": balance},
    **{"message_time": message_time, "latency": latency},
    **{"flow_time": _traced("duration_ns"), "slowdown": _traced("slowdown")},
}
