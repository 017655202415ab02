"""A run on this machine's kernel: namespaces, a daemon a host, real time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.calibration import budget_warnings, machine_capacity
from mrc_testbed.testbed.cpus import usable_cpus
from mrc_testbed.testbed.fabric import catch_up
from mrc_testbed.testbed.fabric.capabilities import Capability
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.forker import Forker
from mrc_testbed.testbed.pcap.budget import capture_warnings
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.awake import AwakeCpus
from mrc_testbed.testbed.runner.captures import Captures
from mrc_testbed.testbed.runner.daemon import DaemonProcess
from mrc_testbed.testbed.runner.environment import describe
from mrc_testbed.testbed.runner.exec_server import ExecServer
from mrc_testbed.testbed.runner.fidelity import MachineWatch
from mrc_testbed.testbed.runner.kernel_taps import KernelTaps
from mrc_testbed.testbed.runner.link_lateness import LinkLateness
from mrc_testbed.testbed.runner.loop import Loop, RealTimeLoop
from mrc_testbed.testbed.runner.options import path_order_warnings, path_order_words, switch_words
from mrc_testbed.testbed.runner.program_spec import HostPlace
from mrc_testbed.testbed.runner.world import OnEvent, OpenLog
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.captures import LinkCapture
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import Plan


class KernelWorld:
    """Inside the sandbox. `found`: the capabilities of this machine; `options` are chosen among them."""

    lines_at_once = True
    ends_with_answers = True

    def __init__(self, found: Sequence[Capability], options: FabricOptions) -> None:
        self.loop: Loop = RealTimeLoop()
        self.options = options
        self._found = found
        self._fabric: Fabric
        self._daemons: dict[str, DaemonProcess] = {}
        self.cpus = AwakeCpus()

    def facts(self, scenario: Scenario) -> dict[str, Any]:
        """The machine, the parts in use, the kind of switch port."""
        ports = switch_words(scenario, self._found, self.options)
        return {
            "world": "kernel",
            **describe(self._found, self.options),
            "switch_ports_by": ports,
            "idle_cpus": self.cpus.words,
            **path_order_words(scenario, self._found),
        }

    def warnings(self, scenario: Scenario) -> Iterator[str]:
        """What this machine may not carry."""
        shape = scenario.shape()
        yield from budget_warnings(shape, scenario.transport.cost, scenario.fabric.planes, offered_load(scenario))
        yield from path_order_warnings(scenario, self._found)
        yield from capture_warnings(scenario.captures, shape, usable_cpus())

    def most_pps(self, scenario: Scenario) -> float:
        """As calibrated, or as is usual."""
        return machine_capacity(scenario.transport.cost).pps

    def build(self, plan: Plan, log: OpenLog | None = None) -> Fabric:
        """Namespaces, links, routes, queues; and the process that delays the kernel's own protocols, where there is
        one."""
        forker = None
        if log is not None:
            with log() as file:
                forker = Forker(file)
        self._fabric = Fabric.build(plan, self.options, forker)
        if (delay := self._fabric.kernel_delay) is not None:
            self.loop.watch(delay.channel, delay.on_readable)
        if (routes := self._fabric.routes) is not None:
            for source, readable in routes.handlers():
                self.loop.watch(source, readable)
        return self._fabric

    def host_processes(self, hosts: Iterable[str], recorder: Recorder, on_event: OnEvent) -> dict[str, DaemonProcess]:
        """A process a host."""
        self._daemons = {host: DaemonProcess(host, self._fabric, self.loop, recorder, on_event) for host in hosts}
        self._fabric.all_started()
        return self._daemons

    def network(self, host: str) -> int:
        """That of its node."""
        return self._fabric.network(host)

    def connect_programs(self, hosts: Iterable[str], carried_by_tcp: bool) -> None:
        """By routes, cables and a file of this sandbox."""
        self._fabric.connect_programs(hosts, carried_by_tcp)

    def exec_server(
        self, places: Mapping[str, HostPlace], beside: Callable[[str], int | None], recorder: Recorder
    ) -> ExecServer:
        """In the sandbox's own folder."""
        return ExecServer(places, beside, self, self.loop, recorder)

    def captures(self, wanted: Iterable[LinkCapture], recorder: Recorder) -> Captures:
        """Taps in the kernel."""
        return Captures(wanted, KernelTaps(self._fabric, self.loop), self.loop, recorder)

    def watch_machine(self) -> MachineWatch:
        """CPU pressure, waiting daemons, lost and late packets. From here on idle CPUs stay awake."""
        self.cpus.begin()
        pids = {host: daemon.process.pid for host, daemon in self._daemons.items()}
        fabric = self._fabric
        links = None
        if self.options.port_program:
            links = LinkLateness(fabric.late_arrivals, fabric.port_counts, lambda: fabric.catch_up.times)
            self.loop.every(catch_up.PERIOD_NS, fabric.make_up_lost_time, self.loop.now_ns())
        return MachineWatch(pids, fabric.kernel_delay, links, self._no_routes)

    def _no_routes(self) -> dict[str, int] | None:
        """Where a protocol makes routes, or a fault has changed some."""
        fabric = self._fabric
        return fabric.no_routes() if fabric.plan.learns or fabric.tables.ever else None

    def close(self) -> None:
        """End what is no daemon. The namespaces end with this process."""
        self.cpus.end()
        if (delay := self._fabric.kernel_delay) is not None:
            self.loop.forget(delay.channel)
            delay.stop()
