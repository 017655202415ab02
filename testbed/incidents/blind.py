"""What an observer may see of a run: what hosts, ports and jobs told while it went on, and nothing that knows better.

Only what is listed here is copied; files, columns and rows that know of faults stay where they are:

| leak | how it is closed |
|---|---|
| scenario.yaml, plan.json, history.jsonl, recovery.json, environment.json, report and summary | not copied |
| `lost`, `corrupted` in ports.csv | those columns are left out |
| a row of ports.csv that is there because one of them has changed | rows with nothing else that is new are left out |
| `in_*_dropped` and all else in counters.json, fidelity.json | not copied |
| how long the run took, and what came after its incident was over | all is cut at the same time after the begin |
| names of folders and of the case | a hash |
| sizes of files | filled up with blank lines to a multiple of what the fabric alone decides |
| times of files | the same for all |
| the seed, with which anyone could run the case without its incident | not copied |
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.rundir.files import read_lines, text_lines
from mrc_testbed.testbed.rundir.sizes import SIZES, note_sizes
from mrc_testbed.testbed.rundir.snapshot_lines import SnapshotReader
from mrc_testbed.testbed.rundir.tables import COMPLETIONS, FLOWS, MESSAGES, PORTS, SAMPLES, WAITS, CsvTable
from mrc_testbed.topos.export import plan_as_dict
from mrc_testbed.topos.plan import Plan

SNAPSHOTS_FILE, EVENTS_FILE, TOPOLOGY_FILE = "snapshots.jsonl", "events.jsonl", "topology.json"
HIDDEN_COLUMNS = frozenset({"lost", "corrupted"})
"""Of ports.csv: only who injects faults counts these."""
_FILE_TIME_S = 1_767_225_600
"""2026-01-01, the date of virtual runs."""
_ROW_BYTES, _SNAPSHOT_BYTES = 96, 3072
"""More than a line has on average: so one block is enough, and how many lines there are does not show."""
_SAMPLES_A_SECOND = 5
_BLANK_LINE = 1 << 16
_EVENTS_BLOCK, _STEPS_BLOCK, _FLOWS_BLOCK = 1 << 19, 1 << 17, 1 << 20


@dataclass(frozen=True, slots=True)
class BlindWindow:
    """What is observed: from the workload's start to a fixed time after it, in ns of the run's clock."""

    start_ns: int
    end_ns: int

    def holds(self, t_ns: int) -> bool:
        """Both ends included."""
        return self.start_ns <= t_ns <= self.end_ns


def write_blind(run: Path, case: Path, plan: Plan, window: BlindWindow, flows: bool) -> None:
    """Fill the folder of a case from that of its run; `flows`: its workload has some. Raises OSError, RecordError."""
    ticks = round((window.end_ns - window.start_ns) / 1e9 * _SAMPLES_A_SECOND) + 1
    rows_block = 2 * len(plan.links) * ticks * _ROW_BYTES
    _write(case / TOPOLOGY_FILE, [json.dumps(topology_of(plan))], 1)
    _write(case / SAMPLES.file, _csv(run, SAMPLES, _in_time("t_ns", window)), rows_block)
    _write(case / PORTS.file, _changed(_csv(run, PORTS, _in_time("t_ns", window))), rows_block)
    _write(case / COMPLETIONS.file, _csv(run, COMPLETIONS, _in_time("end_ns", window)), _STEPS_BLOCK)
    _write(case / WAITS.file, _csv(run, WAITS, _of_steps(run, window)), _STEPS_BLOCK)
    for table in (FLOWS, MESSAGES):
        block = _FLOWS_BLOCK if flows else 1
        _write(case / table.file, _csv(run, table, _in_time("end_ns", window)), block)
    every = map(SnapshotReader().whole, read_lines(run / EVENTS_FILE))
    told = [line for line in every if window.holds(line["t_ns"])]
    snapshots = [line for line in told if line["event"] == "snapshot"]
    _write(case / SNAPSHOTS_FILE, map(_compact, snapshots), len(plan.hosts) * ticks * _SNAPSHOT_BYTES)
    _write(case / EVENTS_FILE, (_compact(line) for line in told if line["event"] != "snapshot"), _EVENTS_BLOCK)
    note_sizes(case)
    os.utime(case / SIZES, (_FILE_TIME_S, _FILE_TIME_S))


def topology_of(plan: Plan) -> dict[str, Any]:
    """The fabric as planned, with the switches of each way between two T0s: the same in every plane, by the number of
    the uplink."""
    groups = sorted({host.group for host in plan.hosts})
    first = {group: next(host for host in plan.hosts if host.group == group) for group in groups}
    ways = {
        f"{source}>{target}": [
            [str(place) for place in path.way] for path in plan.paths(first[source], first[target]) if not path.id.plane
        ]
        for source in groups
        for target in groups
        if source != target
    }
    return {**plan_as_dict(plan), "ways": ways}


def _blank(count: int) -> str:
    """This number of characters as lines of blanks, few of them: readers look at each line."""
    rows, rest = divmod(count, _BLANK_LINE)
    return (" " * (_BLANK_LINE - 1) + "\n") * rows + (" " * (rest - 1) + "\n" if rest else "")


def _compact(line: dict[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":"))


Row = dict[str, str]


def _csv(run: Path, table: CsvTable[Any], wanted: Callable[[Row], bool]) -> Iterator[str]:
    """The lines of a table without its hidden columns, the header first."""
    columns = [name for name in table.names if table is not PORTS or name not in HIDDEN_COLUMNS]
    yield ",".join(columns)
    if (run / table.file).exists():
        for row in csv.DictReader(text_lines(run / table.file)):
            if wanted(row):
                yield ",".join(row[name] for name in columns)


def _in_time(column: str, window: BlindWindow) -> Callable[[Row], bool]:
    return lambda row: window.holds(int(row[column]))


def _of_steps(run: Path, window: BlindWindow) -> Callable[[Row], bool]:
    """Waits have no time: those of steps that were over in time."""
    over = set()
    if (run / COMPLETIONS.file).exists():
        for row in csv.DictReader(text_lines(run / COMPLETIONS.file)):
            if window.holds(int(row["end_ns"])):
                over.add((row["host"], row["step"]))
    return lambda row: (row["host"], row["step"]) in over


def _changed(lines: Iterable[str]) -> Iterator[str]:
    """Without rows that say of a port what the one before said: what changed was hidden."""
    before: dict[tuple[str, str], str] = {}
    for number, line in enumerate(lines):
        _, node, port, counts = line.split(",", 3)
        if not number or before.get((node, port), "0,0,0") != counts:
            yield line
        before[node, port] = counts


def _write(path: Path, lines: Iterable[str], block: int) -> None:
    """Lines, filled up with blank ones, as a file of no time of its own."""
    text = "".join(f"{line}\n" for line in lines)
    blocks = max(-(-len(text) // block), 1)
    path.write_text(text + _blank(blocks * block - len(text)), encoding="utf-8", newline="\n")
    os.utime(path, (_FILE_TIME_S, _FILE_TIME_S))
