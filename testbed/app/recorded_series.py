"""The metrics of a run that is over: its folder's files as a document of `testbed/metrics/series.py`."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import Any

from mrc_testbed.testbed.checks.conservation import Books
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.steps import finished_by_all
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.evidence.events import PathKey
from mrc_testbed.testbed.live.paths import EvTiles, tiles_of
from mrc_testbed.testbed.live.series_feed import entry_names, run_info
from mrc_testbed.testbed.metrics.exposition import SeriesReading
from mrc_testbed.testbed.metrics.readings import readings
from mrc_testbed.testbed.metrics.series import RunSeries, final_document, port_labels
from mrc_testbed.testbed.rundir.files import MOST_TABLE_BYTES, RecordError, any_values, open_plain, read_json
from mrc_testbed.testbed.rundir.tables import SAMPLES
from mrc_testbed.testbed.scenario.model.jobs import NamedJob

METRICS_FILE = "metrics.om"
_ROW_BYTES = 160
"""No row of samples.csv is longer: seven numbers and two names."""
_ROWS_A_PORT = 4
"""More rows than a moment has: a kernel has devices of its own beside the ports."""
_BOOKED = {
    "mrc_switch_data_packets": "out_data",
    "mrc_switch_trimmed_through_packets": "out_trimmed_through",
    "mrc_switch_control_packets": "out_control",
}
_QUEUES = {"data": "queue_drops_data", "high": "queue_drops_high"}
_STATES = {ord("S"): "SKIP", ord("G"): "GOOD"}


def recorded_readings(record: RunRecord, verdict: Verdict | None, truth: bool = False) -> list[SeriesReading]:
    """All metrics of a run, as they were at its end. Raises RecordError for files that cannot be read."""
    with any_values(record.folder):
        return readings(_document(record, verdict), port_labels(record.plan), truth)


def _document(record: RunRecord, verdict: Verdict | None) -> dict[str, Any]:
    counts_packets = record.environment.get("switch_ports") == "port program"
    series = RunSeries(record.plan, run_info(record.scenario, record.folder.name), counts_packets)
    series.start_ns = record.start_ns
    _add_hosts(series, record)
    _add_faults(series, record)
    _add_work(series, record)
    series.evs = _tiles(record).counts()
    series.links = last_samples(record)
    for row in record.ports:
        series.hits[row.node, row.port] = (row.marked, row.trimmed, row.dropped, row.lost, row.corrupted)
    booked = {"switch_ports": list(_booked(record.books, record)), "switches": list(_by_sid(record))}
    series.finals = {**booked, **final_document(verdict)}
    return series.document(record.end_ns)


def _add_hosts(series: RunSeries, record: RunRecord) -> None:
    last = record.snapshots.last()
    series.counters = {host: snapshot.counters for host, snapshot in last.items()} | dict(record.counters)
    series.stalled = {host: snapshot.stalled or {} for host, snapshot in last.items()}
    series.ports = {host: [True] * record.plan.shape.planes for host in record.scenario.host_names}
    for change in record.port_changes:
        if not change.peer and change.host in series.ports:
            series.ports[change.host][change.plane] = change.state == "UP"
    late = record.fidelity or {}
    for key in ("p99_ns", "max_ns"):
        for host, value in (late.get(f"lateness_{key}") or {}).items():
            series.lateness[host] = {**series.lateness.get(host, {}), key: value}


def _add_faults(series: RunSeries, record: RunRecord) -> None:
    for line in record.history:
        if line.type == "ok" and line.op in ("inject", "heal"):
            series.fault(line.fault, line.kind, line.target, line.op == "inject")


def _add_work(series: RunSeries, record: RunRecord) -> None:
    for job in record.scenario.jobs:
        for duration_ns in _durations(record, job):
            series.step(job.name, duration_ns)
    entries = entry_names(record.scenario)
    for row in record.received:
        series.delivered(entries.get(row.flow, row.flow), row.bytes)
    for message in record.messages:
        series.message(entries.get(message.flow, message.flow), message.duration_ns)


def _durations(record: RunRecord, job: NamedJob) -> Iterator[int]:
    """Of each step that all ranks finished, as the run itself told them (`testbed/runner/watch.py`)."""
    last_ns = record.start_ns or 0
    for done_by in finished_by_all(record, job):
        begin_ns = max(last_ns, min(done.begin_ns for done in done_by))
        last_ns = max(done.end_ns for done in done_by)
        yield last_ns - begin_ns


def _tiles(record: RunRecord) -> EvTiles:
    """As all changes of EVs have left them."""
    tiles = tiles_of(record.scenario, record.plan)
    changes = [(change.t_ns, PathKey(*change.path), change.new) for change in record.ev_changes]
    for rested, rests in record.rests.items():
        changes += [(t_ns, rested, _STATES[state]) for t_ns, state in zip(rests.times_ns, rests.states, strict=True)]
    for _, path, state in sorted(changes, key=lambda change: change[0]):
        tiles.change(*path, state)
    return tiles


def last_samples(record: RunRecord) -> list[list[Any]]:
    """The rows of samples.csv of the last moment, without it. Only the end of the file is read: an hour has millions of
    rows. Raises RecordError."""
    path, ports = record.folder / SAMPLES.file, sum(map(len, record.plan.ports.values()))
    if not path.exists():
        return []
    with open_plain(path, MOST_TABLE_BYTES) as file:
        at = max(0, path.stat().st_size - _ROWS_A_PORT * (ports + 1) * _ROW_BYTES)
        file.seek(at)
        whole = file.read().decode("ascii", "replace").split("\n")[:-1]  # a killed run may end in the middle of a row
    lines = whole[1:]  # without the head, or what is cut
    rows = [row for row in csv.reader(lines) if len(row) == len(SAMPLES.names)]
    try:
        return [[node, port, *map(int, counts)] for t_ns, node, port, *counts in rows if t_ns == rows[-1][0]]
    except ValueError as error:
        raise RecordError(path, f"its last rows cannot be read: {error}") from None


def _booked(books: Books | None, record: RunRecord) -> Iterator[list[Any]]:
    """What ports had counted at the end."""
    ports: Mapping[tuple[str, str], Mapping[str, int]] = books.ports if books else {}
    for (node, port), counts in ports.items():
        if node not in record.plan.switch_by_name:
            continue
        for family, name in _BOOKED.items():
            yield [family, node, port, counts[name]]
        for queue, name in _QUEUES.items():
            yield ["mrc_switch_queue_drops", node, port, queue, counts[name]]


def _by_sid(record: RunRecord) -> Iterator[list[Any]]:
    """What switches had counted at the end, by uSID and without one."""
    counters = read_json(record.folder / "counters.json") or {}
    for switch in record.plan.switches if "sids" in counters else ():
        labels = [switch.name, str(switch.tier), str(switch.plane)]
        for sid, counts in counters["sids"].get(switch.name, {}).items():
            yield ["mrc_switch_sid_packets", *labels, sid, counts["packets"]]
        if switch.name in counters.get("no_sid", {}):
            yield ["mrc_switch_no_sid_packets", *labels, counters["no_sid"][switch.name]]
