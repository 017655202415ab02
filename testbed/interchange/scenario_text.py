"""A scenario that names the data of a file of others, and the data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.interchange.distributions import size_lines
from mrc_testbed.testbed.interchange.flow_lists import flow_lines
from mrc_testbed.testbed.interchange.found import Found
from mrc_testbed.testbed.interchange.layout import HostLayout
from mrc_testbed.testbed.workloads.graph import Graph, graph_lines
from mrc_testbed.topos.names import host_name

_STRETCH = 8000
"""What is written runs that many times faster with `scale: real`: usual ports then have 100 Gb/s."""
_ALWAYS = "100000s"
"""For links that have failed: they heal at the end of the workload."""
_COMMENT_COLUMNS = 120
_QPS_IN_ALL, _USUAL_QPS = 1024, 4
"""The most of a scenario, and those of each pair of hosts that has flows."""


@dataclass(frozen=True, slots=True)
class ScenarioFiles:
    """A scenario as text, and the data file beside it."""

    scenario: str
    data_name: str
    data: Callable[[], Iterator[str]]


def scenario_files(found: Found, layout: HostLayout, source: str, target: Path) -> ScenarioFiles:
    """What is written: `target` is the file of the scenario, `source` the name of what was read."""
    suffix = ".flows.csv" if found.flows else ".graph.jsonl" if found.graph else ".sizes.cdf"
    data_name = f"{target.stem}{suffix}"
    if found.graph:
        graph, hosts = _on_hosts(found.graph, layout)
        entry = f"graph: {{file: {data_name}, stretch: {_STRETCH}, hosts: [{', '.join(hosts)}]}}"
        return ScenarioFiles(_text(found, layout, source, target, entry), data_name, lambda: graph_lines(graph))
    if found.flows:
        entry = f"trace: {{file: {data_name}, stretch: {_STRETCH}{_fewer_qps(found)}}}"
        text = _text(found, layout, source, target, entry)
        return ScenarioFiles(
            text, data_name, lambda: flow_lines(found.flows, lambda node: host_name(layout.host_of[node]))
        )
    entry = f"poisson: {{sizes: {data_name}, load: 50%, for: 40s}}"
    return ScenarioFiles(_text(found, layout, source, target, entry), data_name, lambda: size_lines(found.sizes))


def _fewer_qps(found: Found) -> str:
    """The key `qps`, where all pairs together would have too many with the usual number."""
    pairs = len({(flow.src, flow.dst) for flow in found.flows})
    fitting = max(1, _QPS_IN_ALL // pairs)
    return f", qps: {fitting}" if fitting < _USUAL_QPS else ""


def _on_hosts(graph: Graph, layout: HostLayout) -> tuple[Graph, list[str]]:
    """The graph of those ranks alone that do anything, and their hosts by rank."""
    used = sorted(layout.host_of)
    rank_of = {node: rank for rank, node in enumerate(used)}
    nodes = tuple(
        node._replace(rank=rank_of[node.rank], peer=rank_of[node.peer] if node.peer >= 0 else -1)
        for node in graph.nodes
    )
    return Graph(len(used), nodes), [host_name(layout.host_of[node]) for node in used]


def _text(found: Found, layout: HostLayout, source: str, target: Path, entry: str) -> str:
    return "\n".join(
        (
            f"# {_said(found, source)}",
            "#",
            f"#   mrc-testbed run {target.name}",
            "#",
            *_comments((*found.lost, *layout.lost)),
            "# The file says nothing of the network: fabric and rates are ours. All of it is written "
            f"{_STRETCH} times slower",
            "# than it runs: `scale: real` gives ports of 100 Gb/s, T = 5 us, and the times of the file.",
            f"name: {name_of(target)}",
            "world: virtual",
            "scale: real",
            f"fabric: {{{layout.fabric}}}",
            "workload:",
            f"  - {entry}",
            *_faults(layout),
            "expect:",
            "  - qp_errors == 0",
            "",
        )
    )


def _faults(layout: HostLayout) -> Iterator[str]:
    """Failed links are down from before the workload to its end."""
    if layout.fat_tree:
        yield "faults:"
        yield f"  - {{at: cold-start, for: {_ALWAYS}, name: failed-links, link-down: ["
        yield from (f"      '{link}'," for link in layout.fat_tree.links)
        yield "    ]}"


def _said(found: Found, source: str) -> str:
    """One line about what was read."""
    if found.sizes:
        return (
            f"Flow sizes of {source} ({found.kind}): {len(found.sizes)} points, up to {found.sizes[-1].bytes:g} bytes."
        )
    count = f"{len(found.flows)} flows" if found.graph is None else f"{len(found.graph.nodes)} operations"
    of = f"of {found.nodes} nodes" if found.nodes > len(found.used) else "nodes"
    return f"{count} between {len(found.used)} {of}, {found.total_bytes} bytes, from {source} ({found.kind})."


def _comments(lost: tuple[str, ...]) -> Iterator[str]:
    """What has no counterpart, as comments of at most 120 columns."""
    if not lost:
        return
    yield "# Without a counterpart here:"
    for line in lost:
        words, row = line.split(" "), "# -"
        for word in words:
            if len(row) + 1 + len(word) > _COMMENT_COLUMNS:
                yield row
                row = "#  "
            row += f" {word}"
        yield row
    yield "#"


def name_of(target: Path) -> str:
    """A name that scenarios may have, from that of a file."""
    name = re.sub(r"[^a-z0-9]+", "-", target.stem.lower()).strip("-")
    return name if name and name[0].isalpha() else f"imported-{name}".rstrip("-")
