"""What the port program costs: packets per second through three switches with it and without, the machine saturated.

    sudo .venv/bin/python benchmarks/switch.py [ROUNDS]

Four hosts of one T0 group send to four of the other, 4 KiB of payload a packet, by sendmmsg and recvmmsg and nothing
else (benchmarks/bare_udp.py), over ports of 10 Gb/s. Sides: plain shapers; the program at egress alone; the program at
egress and ingress, as a run has it with no rule set; the same with a rule at every port that matches none of the
packets. The sides take turns. Printed are medians of packets that arrived, of CPU time a packet, and of the ratio to
the side named, taken round by round.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace

from benchmarks.endpoint import PAIRS, SCENARIO, Result, measure_bare
from mrc_testbed.testbed.fabric import capabilities, trials
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule

TARGET = 0.8
PLAIN, EGRESS, WHOLE, RULES = "plain shaper", "egress alone", "whole program", "and idle rules"
COMPARED = {EGRESS: PLAIN, WHOLE: PLAIN, RULES: WHOLE}
NOT_SENT_FROM = 200
"""A host number the fabric does not have."""


def build_sides() -> dict[str, Fabric]:
    """One fabric a side. Raises MissingCapability without the port program."""
    found = trials.probe_kernel()
    capabilities.require_port_program(found, "this benchmark")
    shape = load_scenario_text(SCENARIO).shape()
    chosen = replace(capabilities.choose(found, shape), delay="none")
    sides = {PLAIN: _build(replace(chosen, switch_ports="plain shaper"))}
    sides |= {name: _build(chosen) for name in (EGRESS, WHOLE, RULES)}
    for node, ports in sides[EGRESS].plan.ports.items():
        for own, _ in ports:
            sides[EGRESS].node(node).cmd(f"tc filter del dev {own.name} ingress")
    for link in sides[RULES].plan.links:
        for toward in ("near", "far"):
            sides[RULES].add_rule(link.name, toward, PortRule("drop", source=NOT_SENT_FROM))
    return sides


def _build(options: FabricOptions) -> Fabric:
    return Fabric.build(load_scenario_text(SCENARIO).plan(), options)


def compare(rounds: int) -> int:
    """Measure all sides in turn and print the table. Returns 0 when the target is met."""
    sides = build_sides()
    results: dict[str, list[Result]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, fabric in sides.items():
            results[name].append(measure_bare(fabric))
    print(f"{PAIRS} pairs through 3 switches, 4 KiB a packet, {rounds} rounds, medians")
    print(f"{'':16}{'packets/s':>12}{'CPU us each':>13}{'ratio':>8}")
    ratios = {}
    for name, rows in results.items():
        pps = statistics.median(row.pps for row in rows)
        cpu_us = statistics.median(row.parts_us["all"] for row in rows)
        other = COMPARED.get(name, name)
        ratios[name] = statistics.median(a.pps / b.pps for a, b in zip(rows, results[other], strict=True))
        print(f"{name:16}{pps:12,.0f}{cpu_us:13.1f}{ratios[name]:8.3f} of {other}")
    print(f"the whole program carries {ratios[WHOLE]:.2f} of plain shapers   (wanted: {TARGET})")
    return 0 if ratios[WHOLE] >= TARGET else 1


def main() -> int:
    """In namespaces of its own."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    return run_isolated(lambda: compare(rounds))


if __name__ == "__main__":
    sys.exit(main())
