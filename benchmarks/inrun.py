"""Two sides of a question inside one run, so that a machine that changes its speed changes it for both.

    sudo .venv/bin/python benchmarks/inrun.py awake [SECONDS]
    sudo .venv/bin/python benchmarks/inrun.py code OTHER [SECONDS]
    sudo .venv/bin/python benchmarks/inrun.py batches [SECONDS]

`awake`: idle CPUs stay awake or halt, in turn every 2 s. `code`: every second host runs the endpoint of the checkout
OTHER, for example `git worktree add /tmp/before main`, and in a second run the other hosts do. `batches`: the
same with sockets in batches and packet by packet. Eight hosts send all the
time, ring after ring, on four planes. CPU time for a data packet is printed by side, and the median of the ratios of
neighbouring windows with its quartiles: a difference of 5 % shows after a minute. Machine code belongs to a state of
the sources and lies in the Python environment, so this environment has to make it for OTHER too, or for neither.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from rich.console import Console

from mrc_testbed.hosts import batches
from mrc_testbed.testbed.errors import ExitCode, TestbedError
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.forker import Child, Forker
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.live.choose import progress_for
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.runner.daemon import DaemonProcess
from mrc_testbed.testbed.runner.fidelity import MachineWatch
from mrc_testbed.testbed.runner.kernel_world import KernelWorld
from mrc_testbed.testbed.runner.options import fabric_options
from mrc_testbed.testbed.runner.phases import RunJob, run_phases
from mrc_testbed.testbed.runner.world import OnEvent
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text

WINDOW_NS = 2_000_000_000
SETTLE_NS = 300_000_000
"""The beginning of a window that is not measured: caches and queues are those of the side before it."""
SECONDS = 60
PACKET_BYTES = 4096
_FOUND = "inrun.json"
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SCENARIO = """
name: inrun
seed: 7
fabric: {planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 12.5mbit, rtt: 40ms}
workload: [{train: {hosts: all, steps: STEPS, compute: 0s, allreduce: 4MiB}}]
"""
STEP_S = 1.5
"""Of the ring of SCENARIO, about."""
HERE = Path(__file__).resolve().parents[1]
_CORE = "from mrc_testbed.hosts import compiled; compiled.use_what_fits(); print(compiled.in_use())"


class NotComparable(TestbedError):
    """The other side is no checkout, or one side would run machine code and the other Python."""

    exit_code = ExitCode.USAGE


@dataclass
class Reading:
    """Sums since the start: CPU seconds of the machine and of the daemons of each group, and their data packets."""

    machine_s: float
    daemons_s: list[float]
    packets: list[float]


@dataclass
class Window:
    """A stretch of one side: CPU microseconds a data packet, of the machine and of the daemons of each group."""

    side: int
    machine_us: float
    daemons_us: list[float]


@dataclass(frozen=True)
class Code:
    """What a daemon runs: a checkout, and how its sockets are used (hosts/batches.py)."""

    checkout: Path
    sockets: str = os.environ.get(batches.SWITCH, "")

    def forker(self, log: IO[bytes]) -> Forker:
        """Of daemons that run it."""
        return Forker(log, str(self.checkout / "src"), **{batches.SWITCH: self.sockets})


class MeasuredWorld(KernelWorld):
    """Reads the machine at both ends of every window, and calls `turn(side)` between them.

    `groups`: the hosts whose daemons are measured together; `code_of`: what a host runs.
    """

    turn: Callable[[int], None] = staticmethod(lambda _side: None)
    groups: Sequence[Sequence[str]] = ()
    code_of: Callable[[str], Code] = staticmethod(lambda _host: Code(Path.cwd()))
    windows: list[Window]

    def host_processes(self, hosts: Iterable[str], recorder: Recorder, on_event: OnEvent) -> dict[str, Any]:
        """As in any run, each with the code of its side."""
        forkers: dict[Code, Forker] = {}

        class Sources:
            """A fabric as a daemon sees it when it is started."""

            def start_daemon(_, host: str, control: int, log: IO[bytes]) -> Child:  # noqa: N805
                code = self.code_of(host)
                forker = forkers.setdefault(code, forkers.get(code) or code.forker(log))
                return forker.fork(host, self._fabric.pids[host], control, log)

        sources: Any = Sources()
        self._daemons = {host: DaemonProcess(host, sources, self.loop, recorder, on_event) for host in hosts}
        for forker in forkers.values():
            forker.close()
        return self._daemons

    def watch_machine(self) -> MachineWatch:
        """The workload is about to begin."""
        watch = super().watch_machine()
        self.windows = []
        self._begin(0, time.monotonic_ns() + WINDOW_NS)
        return watch

    def _begin(self, side: int, at_ns: int) -> None:
        def end(before: Reading) -> None:
            self.windows.append(_window(side, before, self._read()))
            self._begin(1 - side, at_ns + WINDOW_NS)

        def settled() -> None:
            before = self._read()
            self.loop.at(at_ns + WINDOW_NS, lambda: end(before))

        self.loop.at(at_ns, lambda: self.turn(side))
        self.loop.at(at_ns + SETTLE_NS, settled)

    def _read(self) -> Reading:
        sent: dict[str, int] = {}
        for node, _, _, _, _, tx_bytes, _, _ in self._fabric.sample_ports():
            sent[node] = sent.get(node, 0) + tx_bytes
        return Reading(
            _machine_s(),
            [sum(_daemon_s(self._daemons[host].process.pid) for host in group) for group in self.groups],
            [sum(sent[host] for host in group) / PACKET_BYTES for group in self.groups],
        )


def _machine_s() -> float:
    fields = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) * _TICK_S


def _daemon_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def _window(side: int, before: Reading, after: Reading) -> Window:
    packets = [late - early for early, late in zip(before.packets, after.packets, strict=True)]
    daemons = [late - early for early, late in zip(before.daemons_s, after.daemons_s, strict=True)]
    return Window(
        side,
        (after.machine_s - before.machine_s) * 1e6 / sum(packets),
        [seconds * 1e6 / number for seconds, number in zip(daemons, packets, strict=True)],
    )


def run(seconds: float, prepare: Callable[[MeasuredWorld, list[str]], None]) -> list[Window]:
    """One run. Raises RuntimeError when it does not come to its end."""
    scenario = load_scenario_text(SCENARIO.replace("STEPS", str(round(seconds / STEP_S))))
    found = capabilities.probe()
    capabilities.require(found)
    with tempfile.TemporaryDirectory() as out:
        folder = create_folder(Path(out), scenario.name)
        Recorder(folder).text("scenario.yaml", scenario.dump_yaml())
        world = MeasuredWorld(found, fabric_options(scenario, found))
        prepare(world, list(scenario.host_names))
        status = run_isolated(lambda: _supervise(scenario, folder, world))
        if status:
            raise RuntimeError(f"the run ended with status {status}")
        return [Window(**row) for row in json.loads((folder / _FOUND).read_text(encoding="utf-8"))]


def _supervise(scenario: Scenario, folder: Path, world: MeasuredWorld) -> int:
    status = run_phases(RunJob(scenario, folder, world), progress_for(scenario, Console(), True, None))
    (folder / _FOUND).write_text(json.dumps([asdict(window) for window in world.windows]), encoding="utf-8")
    return status


def awake(seconds: float) -> None:
    """Side 0: idle CPUs stay awake; side 1: they halt."""

    def prepare(world: MeasuredWorld, hosts: list[str]) -> None:
        world.groups = [hosts]
        world.turn = lambda side: world.cpus.end() if side else world.cpus.begin()

    windows = run(seconds, prepare)
    pairs = [(a, b) if a.side == 0 else (b, a) for a, b in pairwise(windows)]
    names = ("awake", "halting")
    _print("machine", [(a.machine_us, b.machine_us) for a, b in pairs], names)
    _print("daemons", [(a.daemons_us[0], b.daemons_us[0]) for a, b in pairs], names)


def code(other: Path, seconds: float) -> None:
    """Side 0: this checkout; side 1: the other. In the second run the hosts change sides."""
    _require_same_core(other)
    _by_hosts(Code(HERE), Code(other), ("this", "other"), seconds)


def sockets(seconds: float) -> None:
    """Side 0: sockets in batches; side 1: packet by packet. In the second run the hosts change sides."""
    if batches.in_use() == "single":
        raise NotComparable(f"sockets: {batches.described()}")
    _by_hosts(Code(HERE), Code(HERE, "python"), ("batches", "single"), seconds)


def _by_hosts(first: Code, second: Code, names: tuple[str, str], seconds: float) -> None:
    pairs: list[tuple[float, float]] = []
    for flipped in (0, 1):

        def prepare(world: MeasuredWorld, hosts: list[str], flipped: int = flipped) -> None:
            world.groups = [hosts[flipped::2], hosts[1 - flipped :: 2]]
            world.code_of = lambda host: first if host in world.groups[0] else second

        pairs += [(window.daemons_us[0], window.daemons_us[1]) for window in run(seconds / 2, prepare)]
    _print("daemons", pairs, names)


def _require_same_core(other: Path) -> None:
    """Raises NotComparable, with the command that mends it."""
    cores = {checkout: _core(checkout) for checkout in (HERE, other)}
    if len(set(cores.values())) > 1:
        without = next(checkout for checkout, core in cores.items() if core != "compiled")
        raise NotComparable(
            f"{without}: its core would run in Python and that of the other side compiled;"
            f" run `cd {without} && {sys.executable} tools/compile_core.py`, or set MRC_TESTBED_CORE=python for both"
        )


def _core(checkout: Path) -> str:
    source = checkout / "src"
    if not (source / "mrc_testbed").is_dir():
        raise NotComparable(f"{checkout}: it has no src/mrc_testbed; give a checkout of this project")
    command = [sys.executable, "-c", _CORE]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def _print(what: str, pairs: list[tuple[float, float]], names: tuple[str, str]) -> None:
    a, b = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    low, middle, high = statistics.quantiles([first / second for first, second in pairs], n=4)
    print(
        f"{what}: {names[0]} {a:.1f} us, {names[1]} {b:.1f} us of CPU a data packet;"
        f" ratio {middle:.3f} (quartiles {low:.3f} to {high:.3f}, {len(pairs)} pairs)"
    )


def main() -> int:
    """Read the arguments, measure, print."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["awake"] and len(arguments) <= 2:
            awake(float(arguments[1]) if arguments[1:] else SECONDS)
        elif arguments[:1] == ["batches"] and len(arguments) <= 2:
            sockets(float(arguments[1]) if arguments[1:] else SECONDS)
        elif arguments[:1] == ["code"] and 2 <= len(arguments) <= 3:
            code(Path(arguments[1]).resolve(), float(arguments[2]) if arguments[2:] else SECONDS)
        else:
            print(__doc__)
            return 2
    except TestbedError as error:
        print(error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
