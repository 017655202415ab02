"""What metrics cost a run, and how long a scrape takes: `python -m benchmarks.metrics [HOSTS]`. Needs no root.

A run hands its document on once a second: the CPU time of making and encoding it is the cost. The server makes the text
when it is asked: that is the scrape. Every port has counted something; 64 hosts in 4 planes unless said.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

from mrc_testbed.testbed.metrics.exposition import open_metrics
from mrc_testbed.testbed.metrics.readings import readings
from mrc_testbed.testbed.metrics.registry import FAMILIES
from mrc_testbed.testbed.metrics.series import RunSeries, port_labels
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan

ROUNDS = 40
COUNTERS = 90
"""Of an endpoint of MRC."""


def filled(hosts: int) -> tuple[RunSeries, dict[str, tuple[str, str, str]]]:
    """A run in which everything has happened."""
    plan = build_plan(clos2_shape(4, max(hosts // 8, 2), 8, min(hosts, 8), 12_500_000, 40_000_000))
    series = RunSeries(plan, dict.fromkeys(FAMILIES["mrc_run"].labels, "x"), counts_packets=True)
    series.links = [[node, own.name, *[123456789] * 6] for node, ports in plan.ports.items() for own, _ in ports]
    counters = {"bytes_sent": 10**9, "data_sent": 10**6, **{f"lost_{n}": n for n in range(11)}}
    counters |= {f"other_{n}": n for n in range(COUNTERS - len(counters))}
    series.counters = {host.name: counters for host in plan.hosts}
    series.lateness = {host.name: {"p50_ns": 1, "p99_ns": 2, "max_ns": 3} for host in plan.hosts}
    series.ports = {host.name: [True] * 4 for host in plan.hosts}
    return series, port_labels(plan)


def cpu_ms(action: Callable[[], object]) -> float:
    """The median of CPU time."""
    times = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        action()
        times.append((time.thread_time() - began) * 1e3)
    return statistics.median(times)


def main() -> None:
    """Prints both, with their limits."""
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    series, places = filled(hosts)
    document = series.document(10**9)
    run = cpu_ms(lambda: json.dumps(series.document(10**9), separators=(",", ":")))
    scrape = cpu_ms(lambda: open_metrics(readings(document, places)))
    count = len(readings(document, places))
    print(f"{hosts} hosts, {count} series, {len(json.dumps(document)) / 1024:.0f} KiB a document")
    print(f"run: {run:.2f} ms a second, {run / 10:.2f} % of a core (limit 1)")
    print(f"scrape: {scrape:.1f} ms (limit 50)")


if __name__ == "__main__":
    main()
