"""A benchmark of two tests that takes seconds."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.bench.catalogue import BenchTest, load_tests

RUN = """\
ref: "1.1"
title: A tiny reduction
status: adapted
why: it is tiny
scenario:
  fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 40ms}
sizes:
  small:
    scenario: {workload: [{allreduce: {size: 64KiB, iterations: 3, warm_up: 1}}]}
    matrix: {workload.0.allreduce.size: [64KiB, 256KiB]}
  draft:
    seeds: 2
    scenario: {workload: [{allreduce: {size: 64KiB, iterations: 100, warm_up: 1}}]}
kpis:
  - {name: bus bandwidth, unit: Gb/s, formula: bus_bandwidth}
  - {name: time, unit: us, figure: step_time.median}
  - {name: slower, figure: step_time.median, over: {workload.0.allreduce.size: 64KiB}}
  - {name: longest without loss, unit: B, figure: queue_drops, longest: workload.0.allreduce.size}
  - {name: trims, unit: packets, figure: trims}
deviations: [It is not of the draft.]
"""
NOT_RUN = """\
ref: "1.2"
title: A test of hardware
status: not-run
why: there is no hardware
"""


def tiny_suite(folder: Path) -> tuple[BenchTest, ...]:
    """Written to `folder`, and read."""
    (folder / "1.1.yaml").write_text(RUN)
    (folder / "1.2.yaml").write_text(NOT_RUN)
    return load_tests(folder)
