"""What a packet costs among few hosts and among many of the same fabric, at the same packets a second.

    sudo .venv/bin/python -m benchmarks.crowd [bare|daemons]

The fabric has 64 hosts on 4 planes throughout. `bare`: one process on one CPU sends 4 KiB of UDP between 1, 8, 16 and
64 of its pairs in turn, without endpoints and without shapers in the way: what the kernel's path costs as it has more
tables, ports and sockets to go through. `daemons`: 8, 16, 32 and 64 of its hosts send to each other, 9 400 data packets
a second in all, four runs. T is longer by as much as more hosts send, so packets of a turn and turns a second are the
same. Columns: CPU time of the daemons for a data packet and how much of it is the kernel's, software interrupts of the
machine, switches of context, data packets each time that a daemon is woken, and memory that a daemon uses in a second,
code that all share included. 160 s.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from socket import AF_INET6, IPPROTO_UDP, SO_RCVBUF, SOCK_DGRAM, SOCK_NONBLOCK, SOL_SOCKET, socket

from rich.console import Console

from benchmarks.bare_udp import PAYLOAD_BYTES, PORT, UDP_NO_CHECK6_RX, UDP_NO_CHECK6_TX
from mrc_testbed.testbed.errors import TestbedError
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of, run_isolated
from mrc_testbed.testbed.live.choose import progress_for
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.runner.fidelity import MachineWatch
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.options import fabric_options
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text

PAIRS = (1, 8, 16, 64)
HOSTS = (8, 16, 32, 64)
ROUNDS = 12
WINDOW_S = 0.25
SETTLE_NS, MEASURE_NS, TOUCH_NS = 8_500_000_000, 6_000_000_000, 1_000_000_000
_LEAST_KBPS, _LEAST_MS = 1_250, 50
"""The rate of a port where most hosts send, and T where fewest do."""
_ON_A_T0 = 8
_PACKET_BYTES = 4096
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_FOUND = "crowd.json"
SCENARIO = """
name: crowd
fabric: {{planes: 4, t0_groups: 8, t1: 8, hosts_per_t0: 8, port_rate: {rate_kbps}kbit, rtt: {rtt_ms}ms}}
workload: [{{write: {{pairs: [{pairs}], bidirectional: true, for: 18s}}}}]
"""


def scenario_of(hosts: int, rate_kbps: int, rtt_ms: int) -> Scenario:
    """`hosts` of the 64 send to each other, over a T1, each to one."""
    lower = [host for host in range(64) if host // _ON_A_T0 % 2 == 0][: hosts // 2]
    pairs = ", ".join(f"h{host}->h{host + _ON_A_T0}" for host in lower)
    return load_scenario_text(SCENARIO.format(rate_kbps=rate_kbps, rtt_ms=rtt_ms, pairs=pairs))


def run_of(hosts: int) -> Scenario:
    """`hosts` of them send, 9 400 data packets a second in all, as many in each turn as with other numbers."""
    return scenario_of(hosts, _LEAST_KBPS * HOSTS[-1] // hosts, _LEAST_MS * hosts // HOSTS[0])


class Pairs:
    """Sockets of one process on all hosts: each sends to the host in the same place of the next T0."""

    def __init__(self, fabric: Fabric) -> None:
        hosts = fabric.plan.hosts
        self._ends = [self._socket(fabric, host.name) for host in hosts]
        self._ways = [
            [(path.inner, PORT) for path in fabric.plan.paths(host, hosts[(at + _ON_A_T0) % len(hosts)])]
            for at, host in enumerate(hosts)
        ]

    def _socket(self, fabric: Fabric, host: str) -> socket:
        with network_of(fabric.pids[host], host):
            made = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK)
        for option in (UDP_NO_CHECK6_TX, UDP_NO_CHECK6_RX):  # as daemons do
            made.setsockopt(IPPROTO_UDP, option, 1)
        made.setsockopt(SOL_SOCKET, SO_RCVBUF, 1 << 20)
        made.bind(("::", PORT))
        return made

    def cost_us(self, pairs: int) -> float:
        """CPU time for a packet that is sent and received while the first `pairs` of them take turns for a window."""
        buffer, payload, moved = bytearray(PAYLOAD_BYTES), bytes(PAYLOAD_BYTES), 0
        began_ns, end_s, turn = time.thread_time_ns(), time.monotonic() + WINDOW_S, 0
        while time.monotonic() < end_s:
            for at in range(pairs):
                ways = self._ways[at]
                self._ends[at].sendto(payload, ways[turn % len(ways)])
                self._ends[(at + _ON_A_T0) % len(self._ends)].recv_into(buffer)
                moved += 1
            turn += 1
        return (time.thread_time_ns() - began_ns) / 1e3 / moved


def bare() -> int:
    """In a sandbox. Each number of pairs in turn, on one CPU."""
    scenario = scenario_of(64, 10_000_000, 20)
    fabric = Fabric.build(scenario.plan(), fabric_options(scenario, capabilities.probe()))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sockets = Pairs(fabric)
    costs: dict[int, list[float]] = {pairs: [] for pairs in PAIRS}
    for _ in range(ROUNDS):
        for pairs in PAIRS:
            costs[pairs].append(sockets.cost_us(pairs))
    for pairs, found in costs.items():
        ratio = statistics.median(cost / first for cost, first in zip(found, costs[PAIRS[0]], strict=True))
        print(
            f"bare, {pairs:2} pairs: {statistics.median(found):6.1f} us a packet, {ratio:.2f} of one pair", flush=True
        )
    return 0


@dataclass
class Reading:
    """Sums since the start, of the daemons, but `softirq_s`, which is the machine's."""

    run_s: float = 0.0
    system_s: float = 0.0
    user_s: float = 0.0
    softirq_s: float = 0.0
    switches: float = 0.0
    woken: float = 0.0
    packets: float = 0.0


class CrowdWorld(KernelWorld):
    """Reads its daemons twice while they send."""

    readings: list[Reading]
    touched_kb: float
    """Memory that a daemon used in TOUCH_NS, mean of all."""

    def watch_machine(self) -> MachineWatch:
        """The workload is about to begin."""
        watch = super().watch_machine()
        self.readings = []
        for after_ns in (SETTLE_NS, SETTLE_NS + MEASURE_NS):
            self.loop.at(time.monotonic_ns() + after_ns, lambda: self.readings.append(self._read()))
        end_ns = time.monotonic_ns() + SETTLE_NS + MEASURE_NS
        self.loop.at(end_ns + 1, self._forget_touched)
        self.loop.at(end_ns + TOUCH_NS, self._read_touched)
        return watch

    def _forget_touched(self) -> None:
        for daemon in self._daemons.values():
            Path(f"/proc/{daemon.process.pid}/clear_refs").write_text("1", encoding="ascii")

    def _read_touched(self) -> None:
        rows = [Path(f"/proc/{each.process.pid}/smaps_rollup").read_text() for each in self._daemons.values()]
        self.touched_kb = statistics.mean(int(row.split("Referenced:")[1].split()[0]) for row in rows)

    def _read(self) -> Reading:
        total, hosts = Reading(), set(self._daemons)
        for daemon in self._daemons.values():
            folder = Path(f"/proc/{daemon.process.pid}")
            fields = (folder / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            woken, taken = int(status["voluntary_ctxt_switches"]), int(status["nonvoluntary_ctxt_switches"])
            total.run_s += int((folder / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
            total.user_s += int(fields[11]) * _TICK_S
            total.system_s += int(fields[12]) * _TICK_S
            total.woken += woken
            total.switches += woken + taken
        total.softirq_s = int(Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[7]) * _TICK_S
        rows = self._fabric.sample_ports()
        total.packets = sum(tx_bytes for node, _, _, _, _, tx_bytes, _, _ in rows if node in hosts) / _PACKET_BYTES
        return total


@contextmanager
def _folder(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as out:
        yield create_folder(Path(out), name)


def daemons(hosts: int) -> None:
    """A run, and its line."""
    scenario = run_of(hosts)
    found = capabilities.probe()
    capabilities.require(found)
    with _folder(scenario.name) as folder:
        Recorder(folder).text("scenario.yaml", scenario.dump_yaml())
        world = CrowdWorld(found, fabric_options(scenario, found))
        run_isolated(lambda: _supervise(scenario, folder, world))
        rows, touched_kb = json.loads((folder / _FOUND).read_text(encoding="utf-8"))
    before, after = (astuple(Reading(**row)) for row in rows)
    _print(hosts, Reading(*(late - early for early, late in zip(before, after, strict=True))), touched_kb)


def _supervise(scenario: Scenario, folder: Path, world: CrowdWorld) -> int:
    status = run_phases(RunJob(scenario, folder, world), progress_for(scenario, Console(quiet=True), True, None))
    (folder / _FOUND).write_text(
        json.dumps([[asdict(each) for each in world.readings], world.touched_kb]), encoding="utf-8"
    )
    return status


def _print(hosts: int, spent: Reading, touched_kb: float) -> None:
    packets = spent.packets
    words = (
        f"daemons, {hosts:2} hosts send: {packets / MEASURE_NS * 1e9:6.0f} packets/s",
        f"{spent.run_s * 1e6 / packets:6.1f} us of daemons a packet",
        f"{spent.system_s / (spent.system_s + spent.user_s):.0%} of it in the kernel",
        f"software interrupts {spent.softirq_s * 1e6 / packets:5.1f} us",
        f"{spent.switches / packets:.2f} switches a packet",
        f"{packets / spent.woken:.1f} packets a wake",
        f"{touched_kb / 1024:.1f} MiB used",
    )
    print(", ".join(words), flush=True)


def main() -> int:
    """Read the argument, measure, print."""
    if sys.argv[1:] not in ([], ["bare"], ["daemons"]):
        print(__doc__)
        return 2
    try:
        if sys.argv[1:] != ["daemons"]:
            run_isolated(bare)
        for hosts in HOSTS if sys.argv[1:] != ["bare"] else ():
            daemons(hosts)
    except TestbedError as error:
        print(error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
