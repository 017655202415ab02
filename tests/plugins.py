"""Fault kinds of docs/examples, as a scenario finds them that names their file."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.scenario.faults import Fault
from mrc_testbed.testbed.scenario.plugins.load import load_plugins

MTU_FAULT = Path(__file__).parents[1] / "docs/examples/mtu_fault.py"


def mtu_kind() -> type[Fault]:
    """The class of the example."""
    offered, wrong = load_plugins([str(MTU_FAULT)], "s.yaml")
    assert not wrong
    kind: type[Fault] = offered.named("fault")["link-mtu"]
    return kind
