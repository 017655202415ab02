"""The frames of a run: source file, columns, types and units. docs/results.md defines them.

Frames of CSV files and of lines have the columns of those (testbed/rundir/tables.py, lines.py). A test compares the
frames with the page.
"""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.checks.end_rows import EndRow
from mrc_testbed.testbed.checks.result import CheckResult, FidelityFigure
from mrc_testbed.testbed.rundir.lines import EVENTS, HISTORY, MAP, SNAPSHOTS
from mrc_testbed.testbed.rundir.tables import (
    COMPLETIONS,
    FLOW_TIMES,
    FLOWS,
    MESSAGES,
    PORTS,
    PRINTED,
    PROGRAMS,
    ROUTES,
    SAMPLES,
    WAITS,
    Column,
    Table,
    columns_of,
)


def _table(name: str, file: str, columns: str, open_ended: bool = False) -> Table:
    """`columns`: lines of `name type unit`; the unit may have several words."""
    found = tuple(Column(*line.split(maxsplit=2)) for line in columns.strip().splitlines())
    return Table(name, file, found, open_ended)


def _recovery() -> Iterator[Column]:
    """recovery.json, a row per cycle; nested keys are joined by underscores."""
    for name in ("fault", "kind", "target"):
        yield Column(name, "text")
    yield Column("cycle", "int")
    yield Column("injected_ms", "number", "ms")
    yield Column("healed_ms", "number", "ms")
    for name in ("first_loss", "last_sent", "goodput_back", "after_heal_goodput_back", "after_heal_route_back"):
        yield from _amount(name)
    yield Column("goodput_fell", "flag?")
    yield Column("goodput_lowest", "number", "share of clean")
    for name in ("packets", "qps", "per_qp_max", "per_qp_mean"):
        yield Column(f"lost_{name}", "number", "packets" if name != "qps" else "")
    yield Column("lost_why", "text")
    for name, stats in _COUNTED.items():
        yield Column(f"{name}_number", "int")
        for stat in stats:
            yield from _amount(f"{name}_{stat}")


_COUNTED = {
    "evs_retired": ("p50", "p100"),
    "peers_told": ("p100",),
    "after_heal_evs_restored": ("first", "last"),
    "after_heal_planes_back": ("p100",),
}


def _amount(name: str) -> Iterator[Column]:
    for unit in ("ms", "rtt", "packets"):
        yield Column(f"{name}_{unit}", "number", unit)
    yield Column(f"{name}_why", "text")


STEPS = _table(
    "steps",
    "completions.csv",
    """
    step int
    begin_ns int clock ns
    end_ns int clock ns
    duration_ns int ns
    bytes int bytes
    bytes_wrong int bytes
    last_host text
    job text
    """,
)
RECOVERY = Table("recovery", "recovery.json", tuple(_recovery()))
COUNTERS = _table("counters", "counters.json", "host text", open_ended=True)
PORT_COUNTERS = _table(
    "port_counters",
    "counters.json",
    """
    node text
    port text
    out_data int? packets
    out_passed int? packets
    out_marked int? packets
    out_trimmed int? packets
    out_dropped int? packets
    out_trimmed_through int? packets
    out_trimmed_dropped int? packets
    out_control int? packets
    out_control_dropped int? packets
    out_other int? packets
    out_other_marked int? packets
    out_other_dropped int? packets
    out_bytes int? bytes
    out_dropped_bytes int? bytes
    in_data int packets
    in_trimmed int packets
    in_control int packets
    in_other int packets
    in_data_dropped int packets
    in_trimmed_dropped int packets
    in_control_dropped int packets
    in_other_dropped int packets
    in_corrupted int packets
    in_bytes int bytes
    in_dropped_bytes int bytes
    rx_packets int frames
    tx_packets int frames
    queue_drops_high int packets
    queue_drops_data int packets
    most_queued_bytes int? bytes
    """,
)
QUEUES = _table(
    "queues",
    "counters.json",
    """
    node text
    port text
    sent_packets int packets
    drops int packets
    control_drops int packets
    pauses int?
    paused_ns int?
    most_held_bytes int? bytes
    """,
)
QPS = _table(
    "qps",
    "counters.json",
    """
    host text
    qp text
    peer text
    sent int packets
    lost int packets
    """,
)
PATHS = _table(
    "paths",
    "counters.json",
    """
    host text
    peer text
    plane int
    uplink int
    packets int packets
    """,
)
ENDS = Table("ends", "verdict.json", columns_of(EndRow))
CHECKS = Table("checks", "verdict.json", columns_of(CheckResult))
FIDELITY = Table("fidelity", "verdict.json", columns_of(FidelityFigure))
TABLES = (
    *(SAMPLES, PORTS, EVENTS, SNAPSHOTS, COMPLETIONS, STEPS, WAITS, FLOWS, MESSAGES, FLOW_TIMES, ROUTES),
    *(PROGRAMS, PRINTED, HISTORY, MAP, RECOVERY),
    *(COUNTERS, PORT_COUNTERS, QUEUES, QPS, PATHS, ENDS, CHECKS, FIDELITY),
)
