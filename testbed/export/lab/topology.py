"""The topology file of containerlab.

Source: containerlab's schema of topology files (srl-labs/containerlab, schemas/clab.schema.json).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from mrc_testbed.testbed.fabric.commands import MTU
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan


@dataclass(frozen=True, slots=True)
class LabNode:
    """A node: its `kind` and `image`, the files of the folder that it sees (`binds`), what it executes once all its
    links are there, and what its interfaces are called, by our names, where not as ours."""

    kind: str
    image: str
    binds: Mapping[str, str] = field(default_factory=dict)
    exec: tuple[str, ...] = ()
    ports: Mapping[str, str] = field(default_factory=dict)

    def as_row(self) -> dict[str, Any]:
        """As the file has it."""
        rows = {
            "kind": self.kind,
            "image": self.image,
            "binds": [f"{own}:{theirs}" for own, theirs in self.binds.items()],
            "exec": list(self.exec),
        }
        return {key: value for key, value in rows.items() if value}


def topology_text(name: str, plan: Plan, nodes: Mapping[str, LabNode], notes: Iterator[str]) -> str:
    """The file, with `notes` as comments before it."""
    links = [{"endpoints": [_endpoint(end, nodes[end.node]) for end in link.ends], "mtu": MTU} for link in plan.links]
    topology = {"nodes": {node: row.as_row() for node, row in nodes.items()}, "links": links}
    text = StringIO()
    yaml = YAML()
    yaml.width = 4096
    yaml.dump({"name": name, "topology": topology}, text)
    return "".join(f"# {note}\n" for note in notes) + text.getvalue()


def _endpoint(end: Interface, node: LabNode) -> str:
    return f"{end.node}:{node.ports.get(end.name, end.name)}"
