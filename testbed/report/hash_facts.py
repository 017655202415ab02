"""What the summary tells of how switches hashed the QPs of a run to uplinks. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.topos.layout import title
from mrc_testbed.topos.units import plural, some
from mrc_testbed.topos.usid import PathId

_NAMED = 4
"""Flows that are named; of others there is a count."""


def hash_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """`8 QPs on 5 of 8 uplinks; most on one: 3 (h0>h4, 2 x h1>h5 on p0-t0-0:p0-t1-2)`, before any fault of the
    workload. How they choose instead, where that is packet by packet. Nothing where hosts choose paths, or the run
    ended too early."""
    if "adaptive_routing" in record.environment:
        yield "uplinks", str(record.environment["adaptive_routing"])
        return
    if record.scenario.transport.has_paths:
        return
    if record.environment.get("uplinks"):  # a transport of a plugin may not say which flows it hashes
        yield "hash", _words(record, _by_uplink(record))
    elif "uplinks_unknown" in record.environment:
        yield "hash", f"uplinks not known: {record.environment['uplinks_unknown']}"


def _by_uplink(record: RunRecord) -> dict[str, list[str]]:
    """By name of the link: `FROM>TO` of each QP or subflow that takes it upwards. Those within a T0 group have none."""
    found: dict[str, list[str]] = defaultdict(list)
    plan = record.plan
    for row in record.environment["uplinks"]:
        if row["uplink"] is not None:
            ends = plan.host_by_name[row["from"]], plan.host_by_name[row["to"]]
            switches = plan.switches_on_path(*ends, PathId(int(row["plane"]), int(row["uplink"])))
            for one, other in pairwise(switches):
                link = plan.link_between(one, other)
                if link.near.node == one:
                    found[link.name].append(f"{row['from']}>{row['to']}")
    return found


def _words(record: RunRecord, by_uplink: dict[str, list[str]]) -> str:
    if not by_uplink:
        return f"no {_noun(record)} leaves its {title(record.scenario.shape().family, 0)}"
    shape, noun = record.scenario.shape(), _noun(record)
    of = plural(shape.planes * shape.family.cable_count, "uplink")
    hashed = sum(row["uplink"] is not None for row in record.environment["uplinks"])
    spread = f"{plural(hashed, noun)} on {len(by_uplink)} of {of}"
    link, fullest = max(by_uplink.items(), key=lambda item: len(item[1]))
    if len(fullest) == 1:
        return f"{spread}; none shares one"
    return f"{spread}; most on one: {len(fullest)} ({_flows(fullest)} on {link})"


def _noun(record: RunRecord) -> str:
    return "subflow" if record.scenario.transport.subflows else "QP"


def _flows(of_qps: Sequence[str]) -> str:
    flows = [f"{count} x {flow}" if count > 1 else flow for flow, count in Counter(of_qps).items()]
    return some(flows, _NAMED)
