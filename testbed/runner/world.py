"""The seam between a run and where it happens: namespaces of this kernel in real time, or a network in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, Protocol

from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.runner.program_spec import HostPlace
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.captures import LinkCapture
from mrc_testbed.testbed.switching.interface import FabricLike
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import Plan

OnEvent = Callable[[str, dict[str, Any]], None]
"""Takes a host's name and an event of its endpoint (docs/architecture.md, "The control channel")."""


class HostProcess(Protocol):
    """The endpoint of one host, as the runner sees it. `answers`: to requests, by their id."""

    answers: dict[int, dict[str, Any]]
    stopped: bool
    """Its end is expected."""

    def request(self, command: str, **fields: Any) -> int:
        """Send a request; returns its id. Raises RunError if the endpoint is gone."""

    def close(self) -> None:
        """End it."""


class MachineFigures(Protocol):
    """How well the world kept time, since this was made."""

    @property
    def softnet_has_dead_ports(self) -> bool:
        """`softnet_drops` has packets for ports that are down, which count at the port as well."""

    def figures(self) -> dict[str, Any]:
        """What fidelity.json has of it: `measured_s`, `cpu_pressure_some`, `run_delay`, `softnet_drops`."""

    def at_rest(self) -> dict[str, Any]:
        """More for fidelity.json, when nothing is sent any more."""

    def unavailable(self) -> dict[str, str]:
        """Figures that this world does not have, and why."""


class CaptureSet(Protocol):
    """All captures of a run."""

    def schedule(self, start_ns: int) -> None:
        """Set their windows, relative to the start of the workload, which is still to come. Raises FabricError,
        RunError."""

    def finish(self) -> None:
        """Stop and write what is left. Raises RunError."""


class ExecClients(Protocol):
    """What somebody has started on hosts of a run that is going on."""

    def close(self) -> None:
        """End it, and let nobody start more."""


OpenLog = Callable[[], IO[bytes]]


class World(Protocol):
    """Where a run happens. `loop` has its clock; `options` are the parts of the fabric that the plan leaves open."""

    loop: Loop
    options: FabricOptions
    lines_at_once: bool
    """Does the recorder write every line at once? Else together, as often as ports are sampled."""

    ends_with_answers: bool
    """Does a warm-up end when the answers to its last probes can be there? Else when more probes could leave, which
    costs nothing in virtual time."""

    def facts(self, scenario: Scenario) -> dict[str, Any]:
        """What environment.json says of it."""

    def warnings(self, scenario: Scenario) -> Iterator[str]:
        """What this world may not carry of a scenario."""

    def most_pps(self, scenario: Scenario) -> float | None:
        """How many packets a second it carries, as calibrated; None where it takes as long as it has to."""

    def build(self, plan: Plan, log: OpenLog | None = None) -> FabricLike:
        """The fabric. With `log`, endpoints will follow: what starts them is made ready meanwhile, and says in that
        file what is wrong with it. Raises FabricError."""

    def host_processes(self, hosts: Iterable[str], recorder: Recorder, on_event: OnEvent) -> Mapping[str, HostProcess]:
        """Endpoints on these hosts of the fabric that was built. Raises RunError."""

    def network(self, host: str) -> int:
        """A descriptor of the network namespace of a host, which the caller closes. Raises FabricError."""

    def connect_programs(self, hosts: Iterable[str], carried_by_tcp: bool) -> None:
        """What programs on these hosts find beside the device: names, settings of TCP, a management network.
        `carried_by_tcp`: the transport is the kernel's TCP. Raises FabricError."""

    def exec_server(
        self, places: Mapping[str, HostPlace], beside: Callable[[str], int | None], recorder: Recorder
    ) -> ExecClients | None:
        """Lets others start commands on hosts, from now on; None where none can run. `places`: every host. `beside`:
        the process of the program that runs on one now."""

    def captures(self, wanted: Iterable[LinkCapture], recorder: Recorder) -> CaptureSet:
        """Captures on links of the fabric that was built. Raises FabricError, RunError."""

    def watch_machine(self) -> MachineFigures:
        """From now on."""

    def close(self) -> None:
        """End what is no host process, after those."""
