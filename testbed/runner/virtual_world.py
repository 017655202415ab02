"""A run in virtual time: the network is computed, the endpoints are the same, and no machine has to keep time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib import metadata
from typing import Any

from mrc_testbed.hosts import huge_pages
from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.captures import Captures
from mrc_testbed.testbed.runner.clocks import Clocks
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.virtual_loop import VirtualLoop
from mrc_testbed.testbed.runner.world import OnEvent, OpenLog
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.captures import LinkCapture
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.version import NAME, commit
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.host import VirtualHost
from mrc_testbed.testbed.virtual.lateness import LateTurns, usual_lateness_ns
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.testbed.virtual.tap import VirtualTap
from mrc_testbed.topos.in_flight import too_few_in_flight
from mrc_testbed.topos.plan import Plan

START_NS = 1_000_000_000
"""CLOCK_MONOTONIC at the beginning of every run: endpoints have times before it."""
WALL_NS = 1_767_225_600_000_000_000
"""The date at the beginning of every run: 2026-01-01, so that a run is the same whenever it is made."""
_NO_MACHINE = "virtual time: no machine has to keep it"


def virtual_options(scenario: Scenario) -> FabricOptions:
    """The parts of a fabric as the best kernel would have them, and switches that hash by the scenario's seed."""
    return FabricOptions(
        sid_device="dummy",
        delay="endpoint" if scenario.shape().rtt_ns else "none",
        switch_ports="port program",
        thresholds=scenario.port_thresholds(),
        marks=scenario.dscp_marks,
        trimming=scenario.trimming.rules(),
        data=scenario.transport.data,
        trims=scenario.transport.can_be_trimmed,
        pause=scenario.pause_thresholds(),
        ecmp_hash=scenario.ecmp.hash,
        hash_seed=scenario.hash_seed,
        repath=scenario.ecmp.repath,
        hash_ports=scenario.hosts_hash,
        adaptive=scenario.adaptive,
        far_links=scenario.ecmp.far_links == "known",
    )


class VirtualWorld:
    """`scenario`: of the run, whose seed decides what the network leaves to chance."""

    lines_at_once = False
    ends_with_answers = False
    """Some 100 ms of a run may pass in a millisecond."""

    def __init__(self, scenario: Scenario) -> None:
        huge_pages.use()
        self._scheduler = Scheduler(START_NS)
        self.loop: Loop = VirtualLoop(self._scheduler)
        self.options = virtual_options(scenario)
        self._seed = scenario.seed
        self._busy_ns = scenario.virtual.busy_ns
        given_ns = scenario.virtual.lateness_ns
        usual_ns = usual_lateness_ns(scenario.shape().rtt_ns, scenario.swift)
        self._lateness_ns = usual_ns if given_ns is None else given_ns
        self._fabric: VirtualFabric

    def facts(self, scenario: Scenario) -> dict[str, Any]:
        """No machine, and nothing of when and where: the same run gives the same file everywhere."""
        return {
            "world": "virtual",
            "clocks": {"monotonic_ns": START_NS, "wall_ns": WALL_NS},
            "version": metadata.version(NAME),
            "commit": commit(),
            "delay": "virtual",
            "delay_by": "virtual time",
            "switch_ports": self.options.switch_ports,
            "thresholds_bdp": asdict(self.options.thresholds),
            "switch_ports_by": _ports_words(scenario),
            **({"pause_bdp": asdict(self.options.pause)} if self.options.pause else {}),
        }

    def warnings(self, scenario: Scenario) -> Iterator[str]:
        """Too few packets in flight. What takes long takes long."""
        if warning := too_few_in_flight(scenario.shape()):
            yield warning

    def most_pps(self, scenario: Scenario) -> None:
        """As many as there are."""

    def build(self, plan: Plan, log: OpenLog | None = None) -> VirtualFabric:
        """Ports and links as data; nothing has to be made ready."""
        self._fabric = VirtualFabric(plan, self.options, self._scheduler, self._seed)
        return self._fabric

    def host_processes(self, hosts: Iterable[str], recorder: Recorder, on_event: OnEvent) -> dict[str, VirtualHost]:
        """An endpoint a host, all in this process."""

        def log_of(host: str) -> Any:
            def log(text: str) -> None:
                with recorder.log(host) as file:
                    file.write(text.encode())

            return log

        def host_of(name: str) -> VirtualHost:
            late = LateTurns(self._lateness_ns, f"{self._seed} {name}")
            return VirtualHost(name, self._fabric, self._scheduler, on_event, log_of(name), late, self._busy_ns)

        return {host: host_of(host) for host in hosts}

    def network(self, host: str) -> int:
        """There is none."""
        raise FabricError(host, "enter its network", "virtual time has no kernel")

    def connect_programs(self, hosts: Iterable[str], carried_by_tcp: bool) -> None:
        """There are none."""

    def exec_server(self, *_: object) -> None:
        """There is no process on a host."""

    def captures(self, wanted: Iterable[LinkCapture], recorder: Recorder) -> Captures:
        """Taps at ports, which cost time only while they listen."""
        return Captures(wanted, _VirtualTaps(self._fabric, self.loop), self.loop, recorder)

    def watch_machine(self) -> _NoMachine:
        """There is none."""
        return _NoMachine(self.loop, self._fabric)

    def close(self) -> None:
        """Nothing is open."""


def _ports_words(scenario: Scenario) -> str:
    if scenario.pause_thresholds():
        return "virtual ports (mark, pause)"
    return "virtual ports (mark, trim)" if scenario.transport.can_be_trimmed else "virtual ports (mark)"


class _VirtualTaps:
    """See mrc_testbed.testbed.runner.captures.Taps."""

    def __init__(self, fabric: VirtualFabric, loop: Loop) -> None:
        self._fabric = fabric
        self._loop = loop

    def tap(self, link: str, snap_bytes: int, ready: Callable[[], None]) -> VirtualTap:
        """At the virtual port."""
        return self._fabric.tap(link, snap_bytes, WALL_NS - START_NS, ready)

    def flush(self) -> None:
        """A tap that is muted has released everything."""

    def clocks(self) -> Clocks:
        """Of the same beginning in every run."""
        now_ns = self._loop.now_ns()
        return Clocks(now_ns, now_ns + WALL_NS - START_NS)


class _NoMachine:
    """Figures of a machine that always keeps time."""

    softnet_has_dead_ports = False

    def __init__(self, loop: Loop, fabric: VirtualFabric) -> None:
        self._loop = loop
        self._fabric = fabric
        self._start_ns = loop.now_ns()

    def figures(self) -> dict[str, Any]:
        """How long it was, and nothing else."""
        measured_s = (self._loop.now_ns() - self._start_ns) / 1e9
        return {"measured_s": measured_s, "cpu_pressure_some": None, "run_delay": None, "softnet_drops": 0}

    def at_rest(self) -> dict[str, Any]:
        """What nodes had no route for, if any had."""
        no_routes = self._fabric.no_routes()
        return {"no_routes": no_routes} if no_routes else {}

    def unavailable(self) -> dict[str, str]:
        """What only a machine has."""
        return {"cpu_pressure_some": _NO_MACHINE, "run_delay": _NO_MACHINE}
