"""How often runs at the edge of a machine are believed, and what a packet costs there.

    sudo .venv/bin/python benchmarks/believed.py [RUNS] [CASE...]

Cases: quickstart, standard (8 hosts, 4 planes of 25 Mb/s, T = 20 ms), ring64 and permutation64 (64 hosts, 4 planes of
3 Mb/s), congested64 (the same permutation over half as many uplinks), spinning (programs/all-reduce, beside a process
on each of its 8 hosts that never rests). A line a run: believed or why not, the figures of
the machine, CPU time of the whole machine and of the daemons for a data packet. Below it how many were believed, and
the median and spread of each figure. Run nothing else meanwhile; 20 runs of the standard size take four minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.errors import TestbedError
from mrc_testbed.testbed.report.console import open_console
from mrc_testbed.testbed.scenario import Scenario, load_scenario, load_scenario_text
from mrc_testbed.testbed.scenario.load.shipped import shipped_named
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.topos.cost import cpus

RUNS = 5
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_SAMPLE_S = 0.1
_SIXTY_FOUR = "fabric: {planes: 4, t0_groups: 8, t1: T1, hosts_per_t0: 8, port_rate: 3mbit, rtt: 167ms}\n"
_RING = "workload: [{train: {hosts: all, steps: 5, compute: 100ms, allreduce: SIZE}}]\n"
_PERMUTATION = "workload: [{permutation: {for: 8s}}]\n"
_SPIN = """[sh, -c, "python3 -c 'while True: pass' & python3 all_reduce.py"]"""
CASES = {
    "standard": "fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 25mbit, rtt: 20ms}\n"
    + _RING.replace("SIZE", "4MiB"),
    "ring64": _SIXTY_FOUR.replace("T1", "8") + _RING.replace("SIZE", "1MiB"),
    "permutation64": _SIXTY_FOUR.replace("T1", "8") + _PERMUTATION,
    "congested64": _SIXTY_FOUR.replace("T1", "4") + _PERMUTATION,
}
SPINNING = (
    *("faults=[]", "expect=[qp_errors == 0]", f"workload.0.programs.command={_SPIN}", "workload.0.programs.steps=8"),
    "workload.0.programs.env={ROUNDS: '8', WEIGHTS: '16384'}",
)
FIGURES = (
    *("packets/s", "late p99 ms", "no CPU %", "pressure %", "stolen %", "machine us", "daemons us", "budget us"),
    "start s",
)


@dataclass
class Result:
    """One run: empty `why` if it was believed. `figures`: by FIGURES, those that are known."""

    why: str
    figures: dict[str, float]


class BusyTime:
    """CPU seconds of the whole machine over time, until `end`."""

    def __init__(self) -> None:
        self.times_ns: list[int] = []
        self.busy_s: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
            user, nice, system, _, _, irq, softirq, steal = map(int, words)
            self.busy_s.append((user + nice + system + irq + softirq + steal) * _TICK_S)
            self.times_ns.append(time.monotonic_ns())

    def end(self) -> None:
        """No more readings."""
        self._ended.set()
        self._thread.join()

    def between(self, begin_ns: int, end_ns: int) -> float:
        """To the grain of the readings."""
        first, last = (min(bisect_left(self.times_ns, t_ns), len(self.times_ns) - 1) for t_ns in (begin_ns, end_ns))
        return self.busy_s[last] - self.busy_s[first]


def scenario_of(case: str) -> Scenario:
    """Raises TestbedError for a case that there is not."""
    if case in CASES:
        return load_scenario_text(f"name: {case}\n{CASES[case]}expect: [qp_errors == 0, bytes_wrong == 0]\n")
    if case == "spinning":
        return load_scenario(shipped_named("programs/all-reduce").path, SPINNING)
    return load_scenario(shipped_named(case).path)


def run(scenario: Scenario) -> Result:
    """One run."""
    console = open_console()
    console.quiet = True
    began_ns, busy = time.monotonic_ns(), BusyTime()
    with tempfile.TemporaryDirectory() as out:
        try:
            outcome = run_scenario(scenario, Path(out), True, console)
        finally:
            busy.end()
        if outcome.folder is None or outcome.verdict is None:
            return Result(outcome.error or "no verdict", {})
        why = "" if outcome.verdict.fidelity.ok else outcome.verdict.reason
        return Result(why, figures_of(scenario, outcome.folder, began_ns, busy))


def figures_of(scenario: Scenario, folder: Path, began_ns: int, busy: BusyTime) -> dict[str, float]:
    """Of a run that came to its end; none of another. `budget us`: what `mrc_testbed.topos.cost` reckons for as many
    packets."""
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    moments = [line["t_ns"] for line in history if line["op"] == "workload"]
    if len(moments) < 2 or not (folder / "fidelity.json").exists():
        return {}
    fidelity, counters = (json.loads((folder / name).read_text()) for name in ("fidelity.json", "counters.json"))
    hosts: list[dict[str, Any]] = [host["counters"] for host in counters["hosts"].values()]
    packets = sum(host["data_sent"] for host in hosts)
    pps = packets * 1e9 / (moments[1] - moments[0])
    asked = offered_load(scenario)
    congested_pps = asked.congested_pps * pps / asked.pps if asked.pps else 0.0
    load = replace(asked, pps=pps, congested_pps=congested_pps)
    values = (
        pps,
        max(fidelity["lateness_p99_ns"].values()) / 1e6,
        max(fidelity["run_delay"].values()) * 100,
        (fidelity["cpu_pressure_some"] or 0) * 100,
        fidelity["cpu_stolen"] * 100,
        busy.between(*moments[:2]) * 1e6 / packets,
        sum(host["cpu_ns"] for host in hosts) / 1e3 / packets,
        cpus(scenario.shape(), load, scenario.transport.cost) * 1e6 / pps,
        (moments[0] - began_ns) / 1e9,
    )
    return dict(zip(FIGURES, values, strict=True))


def main() -> int:
    """Read the arguments, run, print."""
    arguments = sys.argv[1:]
    runs = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else RUNS
    print(f"{'':14}{''.join(f'{name:>13}' for name in FIGURES)}")
    try:
        for case in arguments or ["quickstart", *CASES, "spinning"]:
            scenario = scenario_of(case)
            results = []
            for _ in range(runs):
                results.append(run(scenario))
                _print(case, results[-1].figures, results[-1].why or "believed")
            _sum_up(case, results)
    except TestbedError as error:
        print(error)
        return error.exit_code
    return 0


def _print(label: str, figures: dict[str, float], words: str) -> None:
    cells = (f"{figures[name]:13.1f}" if name in figures else f"{'-':>13}" for name in FIGURES)
    print(f"{label:14}{''.join(cells)}  {words}", flush=True)


def _sum_up(case: str, results: Iterable[Result]) -> None:
    known = list(results)
    believed = sum(not one.why for one in known)
    columns = {name: sorted(one.figures[name] for one in known if name in one.figures) for name in FIGURES}
    picks = (("least", min), ("median", statistics.median), ("most", max))
    for word, pick in picks:
        _print(f"  {word}", {name: pick(values) for name, values in columns.items() if values}, "")
    print(f"{case}: {believed} of {len(known)} believed", flush=True)


if __name__ == "__main__":
    sys.exit(main())
