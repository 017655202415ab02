"""Data packets per second of MRC against bare UDP, through the same three shaped switches, the machine saturated.

    sudo .venv/bin/python benchmarks/endpoint.py [ROUNDS]

Four hosts of one T0 group send to four of the other, 4 KiB of payload a packet, T0-T1-T0 with a shaper on every port
(10 Gb/s, above what the machine can do). MRC: our endpoints with everything on, SACKs and acknowledgements included,
data placed in memory. Bare: sendmmsg and recvmmsg of 32 datagrams, nothing else. What counts is what arrives. The sides
take turns on one fabric; medians are printed, and where the CPU time of a packet goes.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.nodes import start_on
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.fabric import capabilities, trials
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.daemon import DaemonProcess
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.setup import configuration, connect_qps
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.workloads.job import JobPlan, JsonOperation, QpSpec
from mrc_testbed.topos.plan import build_plan

TARGET = 0.5
PAIRS = 4
MESSAGE_BYTES = 1 << 20
PACKET_BYTES = 4096
MESSAGES = 150
BARE_SECONDS = 4.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SCENARIO = """
name: endpoint-benchmark
fabric: {planes: 1, t0_groups: 2, t1: 1, hosts_per_t0: 4, port_rate: 10gbit, rtt: 20ms}
workload:
  - train: {steps: 1, compute: 0s, allreduce: 1MiB}
"""


@dataclass(frozen=True)
class Result:
    """One measurement: packets that arrived a second, and CPU microseconds a packet by part."""

    pps: float
    parts_us: dict[str, float]
    busy: float
    """Share of all CPUs in use."""


class MachineTime:
    """CPU time of the whole machine."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.busy_s = self._busy()

    @staticmethod
    def _busy() -> float:
        fields = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
        return (sum(fields) - fields[3] - fields[4]) * TICK_S

    def used_s(self) -> float:
        """CPU seconds since this object was made."""
        return self._busy() - self.busy_s


def process_s(pid: int) -> tuple[float, float]:
    """User and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return int(fields[11]) * TICK_S, int(fields[12]) * TICK_S


def parts(
    packets: int, senders: list[tuple[float, float]], receivers: list[tuple[float, float]], total_s: float
) -> dict[str, float]:
    """CPU microseconds per packet. The switches run in the context of the sender: they are in `sender kernel`."""
    columns = {
        "sender, user": sum(user for user, _ in senders),
        "sender, kernel": sum(system for _, system in senders),
        "receiver, user": sum(user for user, _ in receivers),
        "receiver, kernel": sum(system for _, system in receivers),
    }
    columns["rest (softirq)"] = max(0.0, total_s - sum(columns.values()))
    return {name: seconds * 1e6 / packets for name, seconds in {**columns, "all": total_s}.items()}


def job() -> JobPlan:
    """Host k writes MESSAGES messages to host PAIRS + k, which waits for each."""
    qps = tuple(QpSpec(f"q{k}", k, PAIRS + k, MESSAGE_BYTES) for k in range(PAIRS))
    programs: dict[int, list[list[JsonOperation]]] = {}
    for k, qp in enumerate(qps):
        writes: list[JsonOperation] = [
            ["put", qp.id, 0, 0, MESSAGE_BYTES, 0, MESSAGE_BYTES, index] for index in range(MESSAGES)
        ]
        waits: list[JsonOperation] = [["wait", qp.id, 0, index] for index in range(MESSAGES)]
        programs[k] = [[["begin", 0], *writes, ["drain", qp.id], ["end", 0]]]
        programs[PAIRS + k] = [[["begin", 0], *waits, ["end", 0]]]
    return JobPlan(qps, programs, tuple(range(2 * PAIRS)))


def measure_mrc(fabric: Fabric, options: FabricOptions) -> Result:
    """Our endpoints."""
    scenario = load_scenario_text(SCENARIO)
    plan, plan_job, loop = fabric.plan, job(), RealTimeLoop()
    ended: dict[str, int] = {}

    def on_event(host: str, event: dict[str, object]) -> None:
        if event["event"] == "qp_error":
            raise SystemExit(f"{host}: {event}")
        if event["event"] == "step":
            ended[host] = int(str(event["end_ns"]))

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "logs").mkdir()
        recorder = Recorder(Path(folder))
        names = [host.name for host in plan.hosts]
        daemons = {name: DaemonProcess(name, fabric, loop, recorder, on_event) for name in names}
        team = Team(daemons, loop)
        pids = {name: daemon.process.pid for name, daemon in daemons.items()}
        team.ask("configure", lambda name: configuration(name, scenario, plan, plan_job, options, []))
        connect_qps(team, plan, plan_job)
        team.ask("warm_up", lambda _: {"timeout_ns": 10**9})
        team.ask("load", lambda name: _load(plan.host_by_name[name].index, plan_job))
        start_ns = time.monotonic_ns() + 200_000_000
        team.ask("start", lambda _: {"at_ns": start_ns})
        time.sleep(max(0.0, (start_ns - time.monotonic_ns()) / 1e9))
        machine = MachineTime()
        before = {name: process_s(pid) for name, pid in pids.items()}
        if not loop.run_until(lambda: len(ended) == len(names), time.monotonic_ns() + 120 * 10**9):
            raise SystemExit(f"only {sorted(ended)} of {names} finished")
        total_s = machine.used_s()
        used = {
            name: (process_s(pid)[0] - before[name][0], process_s(pid)[1] - before[name][1])
            for name, pid in pids.items()
        }
        team.stop()
        team.close()
        recorder.close()
    packets = PAIRS * MESSAGES * MESSAGE_BYTES // PACKET_BYTES
    seconds = (max(ended.values()) - start_ns) / 1e9
    senders, receivers = [used[name] for name in names[:PAIRS]], [used[name] for name in names[PAIRS:]]
    return Result(packets / seconds, parts(packets, senders, receivers, total_s), total_s / seconds / usable_cpus())


def _load(host: int, plan_job: JobPlan) -> dict[str, object]:
    return {
        "rank": plan_job.rank_of(host),
        "data_seed": 1,
        "program": plan_job.programs[host],
    }


def measure_bare(fabric: Fabric) -> Result:
    """sendmmsg and recvmmsg over the same path."""
    hosts = fabric.plan.hosts
    read_end, write_end = os.pipe()
    machine = MachineTime()
    with open(os.devnull, "wb") as quiet:
        jobs = {}
        for k in range(PAIRS):
            path = fabric.plan.paths(hosts[k], hosts[PAIRS + k])[0]
            for name, arguments in (
                (hosts[PAIRS + k].name, ["receive", str(BARE_SECONDS)]),
                (hosts[k].name, ["send", path.inner, str(BARE_SECONDS)]),
            ):
                command = ["--fd", str(write_end), *arguments]
                jobs[name] = start_on(fabric, name, "benchmarks.bare_udp", command, write_end, quiet)
    for process in jobs.values():
        if process.wait() != 0:
            raise SystemExit(f"bare UDP failed with status {process.returncode}")
    total_s = machine.used_s()
    os.close(write_end)
    with open(read_end, encoding="ascii") as reports:
        rows = [json.loads(line) for line in reports]
    senders = [(row["user_s"], row["system_s"]) for row in rows if row["kind"] == "send"]
    receivers = [(row["user_s"], row["system_s"]) for row in rows if row["kind"] == "receive"]
    packets = sum(row["packets"] for row in rows if row["kind"] == "receive")
    return Result(
        packets / BARE_SECONDS,
        parts(packets, senders, receivers, total_s),
        total_s / BARE_SECONDS / usable_cpus(),
    )


def compare(rounds: int) -> int:
    """Measure both sides in turn and print the table. Returns 0 when the target is met."""
    shape = load_scenario_text(SCENARIO).shape()
    chosen = capabilities.choose(trials.probe_kernel(), shape)
    options = FabricOptions(chosen.sid_device, "none")
    fabric = Fabric.build(build_plan(shape), options)
    results: dict[str, list[Result]] = {"MRC": [], "bare UDP": []}
    for _ in range(rounds):
        results["bare UDP"].append(measure_bare(fabric))
        results["MRC"].append(measure_mrc(fabric, options))
    medians = {name: statistics.median(row.pps for row in rows) for name, rows in results.items()}
    print(f"{PAIRS} pairs through 3 switches, 4 KiB a packet, {usable_cpus()} CPUs, {rounds} rounds, medians")
    print(f"{'':22}{'MRC':>10}{'bare UDP':>10}")
    print(f"{'packets a second':22}{medians['MRC']:10.0f}{medians['bare UDP']:10.0f}")
    print(
        f"{'CPUs in use':22}" + "".join(f"{statistics.median(r.busy for r in rows):10.0%}" for rows in results.values())
    )
    for part in results["MRC"][0].parts_us:
        columns = (statistics.median(row.parts_us[part] for row in rows) for rows in results.values())
        print(f"us a packet: {part:17}" + "".join(f"{value:10.1f}" for value in columns))
    ratio = medians["MRC"] / medians["bare UDP"]
    print(f"MRC carries {ratio:.2f} of bare UDP   (wanted: {TARGET})")
    return 0 if ratio >= TARGET else 1


def main() -> int:
    """In namespaces of its own."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    return run_isolated(lambda: compare(rounds))


if __name__ == "__main__":
    sys.exit(main())
