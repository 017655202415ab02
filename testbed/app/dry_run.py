"""`mrc-testbed run --dry-run`: what a run would do to this machine, as data. Nothing is built, tried or written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.pack import OVERHEAD_S
from mrc_testbed.testbed.calibration import machine_capacity
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.pcap.budget import most_written
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.runner.program_spec import program_specs
from mrc_testbed.testbed.scenario import Occurrence, Scenario
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.model.wall_time import wall_time
from mrc_testbed.topos.cost import cpus

_DAEMON_MIB, _COMMAND_MIB = 27, 143
"""Of its own, after twenty minutes of mixed chaos: a daemon; the three processes of the command
(docs/measurements/soak.md)."""


def dry_run(case: Case, out: Path) -> dict[str, Any]:
    """Of one run, as JSON types. On the kernel as root, where this machine has every part. Raises MissingCapability
    where there is no Linux for a run that needs it."""
    scenario = case.scenario
    on_kernel = scenario.world is WorldKind.KERNEL
    return {
        "name": case.name,
        "file": str(case.file),
        "seed": scenario.seed,
        "world": scenario.world.value,
        "seconds": _seconds(scenario),
        "hosts": scenario.shape().hosts,
        "switches": scenario.shape().switches,
        **(_on_kernel(scenario, out) if on_kernel else {}),
        "writes": {"folder": str(out / f"<UTC>-{scenario.name}"), "link": str(out / "latest")},
        "captures": {one.link: most_written(one, scenario.shape()) for one in scenario.captures},
        "faults": [_fault(one) for one in sorted(scenario.as_written.occurrences, key=lambda one: one.begin_ns)],
    }


def _seconds(scenario: Scenario) -> list[float]:
    """Of wall time: at least, and at most."""
    if scenario.world is WorldKind.KERNEL:
        return [round(scenario.expected_ns / 1e9 + OVERHEAD_S, 1)] * 2
    return [round(each, 1) for each in wall_time(scenario)]


def _on_kernel(scenario: Scenario, out: Path) -> dict[str, Any]:
    from mrc_testbed.testbed.fabric import capabilities

    capabilities.require([capabilities.LINUX])
    from mrc_testbed.testbed.fabric.footprint import footprint
    from mrc_testbed.testbed.runner.options import best_options

    options = best_options(scenario)
    hosts = scenario.shape().hosts
    cost = machine_capacity(scenario.transport.cost).cost
    return {
        **asdict(footprint(scenario.plan(), options)),
        "switch_ports": options.switch_ports,
        "daemons": hosts,
        "programs": [{"host": one.host, "command": list(one.command)} for one in program_specs(scenario, out)],
        "needs": {
            "cpus": round(cpus(scenario.shape(), offered_load(scenario), cost), 2),
            "memory_mib": hosts * _DAEMON_MIB + _COMMAND_MIB,
        },
        "has": _has(scenario),
    }


def _has(scenario: Scenario) -> dict[str, Any]:
    """Of CPUs: what this machine carries over the transport of the scenario at any time, what it never carries, and how
    that is known."""
    capacity = machine_capacity(scenario.transport.cost)
    return {
        "usable_cpus": usable_cpus(),
        "carries_cpus": round(capacity.cpus, 2),
        "most_cpus": round(capacity.most_cpus, 2),
        "known_by": capacity.known_by,
    }


def _fault(one: Occurrence) -> dict[str, Any]:
    """With times as written, whatever the scale."""
    record = one.as_record()
    return {name: record[name] for name in ("fault", "kind", "targets", "begin_ns", "end_ns")}
