"""A small fabric as a lab, for the tests of `export --to containerlab`, `frr` and `sonic`."""

from __future__ import annotations

from mrc_testbed.testbed.export.lab.lab import Lab, LabTool, lab_of
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text

SMALL = """
name: lab-1
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 10mbit, rtt: 20ms}
workload:
  - write: {from: h0, to: h3, bytes: 64KiB}
"""
HASHED = SMALL + "transport: roce\nrouting: ecmp-static\n"


def scenario_of(text: str = SMALL) -> Scenario:
    """The scenario of a text."""
    return load_scenario_text(text)


def lab(tool: LabTool, text: str = SMALL, shaped: bool = False) -> Lab:
    """Its lab."""
    return lab_of(scenario_of(text), tool, shaped)
