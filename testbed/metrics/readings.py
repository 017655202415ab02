"""The samples of a document of a run (`series.py`). Pure, and light: the server that is scraped loads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.metrics.exposition import SeriesReading
from mrc_testbed.testbed.metrics.registry import FAMILIES, FIDELITY_STATES, RUN_PHASES, VERDICT_STATES

MOST_SERIES = 20_000
"""With more, those of ports are summed up by tier and plane."""
Document = Mapping[str, Any]
_LINK_VALUES = ("rx_bytes", "rx_packets", "rx_drops", "tx_bytes", "tx_packets", "tx_drops")
"""In the order of a row of samples.csv."""
_COUNTERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("mrc_host_sent_bytes", "bytes_sent", ()),
    ("mrc_host_delivered_bytes", "bytes_delivered", ()),
    ("mrc_host_data_packets", "data_sent", ("sent",)),
    ("mrc_host_data_packets", "data_received", ("received",)),
    ("mrc_host_reordered_packets", "reordered", ()),
    ("mrc_host_retransmitted_packets", "retransmitted", ()),
    ("mrc_host_timeouts", "timeouts", ()),
    ("mrc_host_nacks", "nacks_sent", ("sent",)),
    ("mrc_host_nacks", "nacks_received", ("received",)),
    ("mrc_host_trimmed_packets", "trimmed_received", ()),
    ("mrc_host_probes", "probes_sent", ("sent",)),
    ("mrc_host_probes", "probes_answered", ("answered",)),
    ("mrc_host_ev_changes", "evs_skipped", ("skipped",)),
    ("mrc_host_ev_changes", "evs_retired", ("retired",)),
    ("mrc_host_ev_changes", "evs_restored", ("restored",)),
)
"""Family, counter of an endpoint, labels after the host. A transport without a counter has no such series."""
_LOST = "lost_"
_LATENESS = {"p50_ns": "p50", "p99_ns": "p99", "max_ns": "max"}


def readings(document: Document, places: Mapping[str, Sequence[str]], truth: bool = False) -> list[SeriesReading]:
    """The samples of a document. `places`: as of `port_labels`; `truth`: with what only the testbed knows."""
    found = [*_of_run(document), *_of_hosts(document), *_of_work(document), *_of_the_end(document)]
    ports = [reading for reading in _of_ports(document, places) if truth or not FAMILIES[reading.family].truth]
    if len(found) + len(ports) <= MOST_SERIES:
        return [*found, *ports, SeriesReading("mrc_series_left_out", (), 0)]
    summed = list(_summed(ports))
    return [*found, *summed, SeriesReading("mrc_series_left_out", (), len(ports) - len(summed))]


def _of_run(document: Document) -> Iterator[SeriesReading]:
    yield SeriesReading("mrc_run", tuple(document["info"][label] for label in FAMILIES["mrc_run"].labels), 1)
    yield from _states("mrc_run_phase", RUN_PHASES, document["phase"])
    if document["clock_ns"] is not None:
        yield SeriesReading("mrc_run_clock_seconds", (), document["clock_ns"] / 1e9)
    for name, kind, targets, active, cycles in document["faults"]:
        yield SeriesReading("mrc_fault_active", (name, kind), int(active > 0))
        yield SeriesReading("mrc_fault_cycles", (name, kind), cycles)
        yield SeriesReading("mrc_fault", (name, kind, targets), 1)


def _states(family: str, states: Iterable[str], now: str) -> Iterator[SeriesReading]:
    return (SeriesReading(family, (state,), int(state == now)) for state in states)


def _of_hosts(document: Document) -> Iterator[SeriesReading]:
    for host, counters in document["counters"].items():
        for family, counter, labels in _COUNTERS:
            if counter in counters:
                yield SeriesReading(family, (host, *labels), counters[counter])
        for counter, value in counters.items():
            if counter.startswith(_LOST):
                yield SeriesReading("mrc_host_lost_packets", (host, counter.removeprefix(_LOST)), value)
    for host, up in document["ports"].items():
        yield from (SeriesReading("mrc_port_up", (host, str(plane)), int(is_up)) for plane, is_up in enumerate(up))
    for host, late in document["lateness"].items():
        for key, stat in _LATENESS.items():
            if key in late:
                yield SeriesReading("mrc_daemon_lateness_seconds", (host, stat), late[key] / 1e9)


def _of_work(document: Document) -> Iterator[SeriesReading]:
    for tile, counts in document["evs"].items():
        plane, _, uplink = tile.partition("/")
        yield from (SeriesReading("mrc_evs", (plane, uplink, state), count) for state, count in counts.items())
    for host, qp, peer, stalled_ns in _with_peers(document["stalled"]):
        yield SeriesReading("mrc_qp_stalled_seconds", (host, qp, peer), stalled_ns / 1e9)
    for job, counts in document["steps"].items():
        yield SeriesReading("mrc_steps", (job,), sum(counts["counts"]))
        yield from _histogram("mrc_step_duration_seconds", (job,), counts)
    for entry, count in document["delivered"].items():
        yield SeriesReading("mrc_flow_delivered_bytes", (entry,), count)
    for entry, counts in document["messages"].items():
        yield from _histogram("mrc_message_duration_seconds", (entry,), counts)


def _with_peers(stalled: Iterable[Sequence[Any]]) -> Iterator[tuple[str, str, str, int]]:
    """The peer is in the name of a QP: `3>4/allreduce/0`."""
    for host, qp, stalled_ns in stalled:
        target = qp.partition("/")[0].partition(">")[2]
        yield host, qp, f"h{target}" if target.isdigit() else "", stalled_ns


def _histogram(family: str, labels: tuple[str, ...], counts: Mapping[str, Any]) -> Iterator[SeriesReading]:
    below = 0
    for bound_ns, count in zip(counts["bounds_ns"], counts["counts"], strict=False):
        below += count
        yield SeriesReading(family, labels, below, "bucket", repr(bound_ns / 1e9))
    yield SeriesReading(family, labels, sum(counts["counts"]), "bucket", "+Inf")
    yield SeriesReading(family, labels, sum(counts["counts"]), "count")
    yield SeriesReading(family, labels, counts["sum_ns"] / 1e9, "sum")


def _of_ports(document: Document, places: Mapping[str, Sequence[str]]) -> Iterator[SeriesReading]:
    for node, port, *values in document["links"]:
        if (place := places.get(f"{node}/{port}")) is None:  # a kernel may have devices of its own
            continue
        tier, plane, peer = place
        for name, value in zip(_LINK_VALUES, values, strict=True):
            yield SeriesReading(f"mrc_link_{name}", (node, tier, plane, port, peer), value)
    for node, port, marked, trimmed, dropped, lost, corrupted in document["hits"]:
        tier, plane, _ = places[f"{node}/{port}"]
        labels = (node, tier, plane, port)
        hits = {"marked": marked, "trimmed": trimmed, "dropped": dropped} if tier else {}
        for what, value in {**hits, "lost": lost, "corrupted": corrupted}.items():
            yield SeriesReading(f"mrc_switch_{what}_packets", labels, value)
    for family, node, port, *rest in document.get("switch_ports", ()):
        tier, plane, _ = places[f"{node}/{port}"]
        yield SeriesReading(family, (node, tier, plane, port, *rest[:-1]), rest[-1])


def _of_the_end(document: Document) -> Iterator[SeriesReading]:
    for family, *labels, value in document.get("switches", ()):
        yield SeriesReading(family, tuple(labels), value)
    if "verdict" not in document:
        return
    yield from _states("mrc_fidelity", FIDELITY_STATES, document["fidelity"])
    yield from _states("mrc_verdict", VERDICT_STATES, document["verdict"])
    for number, (check, passed) in enumerate(document["checks"], 1):
        if passed is not None:
            yield SeriesReading("mrc_check_passed", (check, str(number)), int(passed))


def _summed(ports: Iterable[SeriesReading]) -> Iterator[SeriesReading]:
    """By family, tier and plane; the labels of single ports are empty."""
    sums: dict[tuple[str, tuple[str, ...]], float] = {}
    for reading in ports:
        names = FAMILIES[reading.family].labels
        kept = tuple(
            value if name in ("tier", "plane", "queue") else ""
            for name, value in zip(names, reading.labels, strict=True)
        )
        sums[reading.family, kept] = sums.get((reading.family, kept), 0) + reading.value
    yield from (SeriesReading(family, labels, value) for (family, labels), value in sums.items())
