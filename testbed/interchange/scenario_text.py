"""A scenario that names the data of a file of others, and the data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

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
_COLUMNS = 120
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
    name = f"{target.stem}{suffix}"
    entry, data = _workload(found, layout, DoubleQuotedScalarString(name))
    return ScenarioFiles(_text(found, layout, source, target, entry), name, data)


def _workload(found: Found, layout: HostLayout, name: str) -> tuple[Mapping[str, Any], Callable[[], Iterator[str]]]:
    """The entry that plays the data file of this name, and the lines of that."""
    if found.graph:
        graph, hosts = _on_hosts(found.graph, layout)
        return {"graph": {"file": name, "stretch": _STRETCH, "hosts": hosts}}, lambda: graph_lines(graph)
    if found.flows:
        trace = {"file": name, "stretch": _STRETCH, **_fewer_qps(found)}
        return {"trace": trace}, lambda: flow_lines(found.flows, lambda node: host_name(layout.host_of[node]))
    return {"poisson": {"sizes": name, "load": "50%", "for": "40s"}}, lambda: size_lines(found.sizes)


def _fewer_qps(found: Found) -> Mapping[str, int]:
    """The key `qps`, where all pairs together would have too many with the usual number."""
    pairs = len({(flow.src, flow.dst) for flow in found.flows})
    fitting = max(1, _QPS_IN_ALL // pairs)
    return {"qps": fitting} if fitting < _USUAL_QPS else {}


def _on_hosts(graph: Graph, layout: HostLayout) -> tuple[Graph, list[str]]:
    """The graph of those ranks alone that do anything, and their hosts by rank."""
    used = sorted(layout.host_of)
    rank_of = {node: rank for rank, node in enumerate(used)}
    nodes = tuple(
        node._replace(rank=rank_of[node.rank], peer=rank_of[node.peer] if node.peer >= 0 else -1)
        for node in graph.nodes
    )
    return Graph(len(used), nodes), [host_name(layout.host_of[node]) for node in used]


def _text(found: Found, layout: HostLayout, source: str, target: Path, entry: Mapping[str, Any]) -> str:
    comments = (
        f"# {_said(found, source)}",
        "#",
        f"#   mrc-testbed run {shlex.quote(target.name)}",
        "#",
        *_comments((*found.lost, *layout.lost)),
        "# The file says nothing of the network: fabric and rates are ours. All of it is written "
        f"{_STRETCH} times slower",
        "# than it runs: `scale: real` gives ports of 100 Gb/s, T = 5 us, and the times of the file.",
    )
    document = {
        "name": name_of(target),
        "world": "virtual",
        "scale": "real",
        "fabric": layout.fabric,
        "workload": [entry],
        **_faults(layout),
        "expect": ["qp_errors == 0"],
    }
    return "".join(f"{_in_one_line(line)}\n" for line in comments) + _yaml(document)


def _in_one_line(comment: str) -> str:
    """With a sign for what would end the comment, as the name of a file may have it."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in comment)


def _yaml(document: Mapping[str, Any]) -> str:
    yaml, text = YAML(pure=True), StringIO()
    yaml.width, yaml.default_flow_style = _COLUMNS, None
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(document, text)
    return text.getvalue()


def _faults(layout: HostLayout) -> Mapping[str, Any]:
    """Failed links are down from before the workload to its end."""
    if not layout.fat_tree:
        return {}
    links = list(layout.fat_tree.links)
    return {"faults": [{"at": "cold-start", "for": _ALWAYS, "name": "failed-links", "link-down": links}]}


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
            if len(row) + 1 + len(word) > _COLUMNS:
                yield row
                row = "#  "
            row += f" {word}"
        yield row
    yield "#"


def name_of(target: Path) -> str:
    """A name that scenarios may have, from that of a file."""
    name = re.sub(r"[^a-z0-9]+", "-", target.stem.lower()).strip("-")
    return name if name and name[0].isalpha() else f"imported-{name}".rstrip("-")
