"""Builds a plan on this kernel: namespaces, links, routes and queues; and applies the changes of faults.

Runs inside `sandbox.run_isolated`; leaving it removes everything.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from mrc_testbed.testbed.fabric import commands, nodes, readback
from mrc_testbed.testbed.fabric.batch import IP, TC, run_batch, run_batches
from mrc_testbed.testbed.fabric.bgp.daemons import BgpDaemons
from mrc_testbed.testbed.fabric.bgp.messages import BgpMessages, BgpUpdates
from mrc_testbed.testbed.fabric.bgp.watch import RouteChange, RouteWatch
from mrc_testbed.testbed.fabric.catch_up import CatchUp
from mrc_testbed.testbed.fabric.delay import KernelDelay
from mrc_testbed.testbed.fabric.fabric_counts import FabricCounts
from mrc_testbed.testbed.fabric.forker import Child, Forker
from mrc_testbed.testbed.fabric.misled import MisledTables
from mrc_testbed.testbed.fabric.overlay import connect_management, lengthen_segments, show_names, tune_tcp
from mrc_testbed.testbed.fabric.path_order import keep_path_order
from mrc_testbed.testbed.fabric.port_program import PortProgram, attach_lines
from mrc_testbed.testbed.fabric.prediction import predicted_uplinks
from mrc_testbed.testbed.fabric.processes import Process
from mrc_testbed.testbed.fabric.prompt import Failed, prompt_on
from mrc_testbed.testbed.fabric.sandbox import BPFFS, network_of, open_of
from mrc_testbed.testbed.fabric.switch_reading import SwitchReader
from mrc_testbed.testbed.fabric.tap import Tap, ring_blocks
from mrc_testbed.testbed.switching.ecmp import PlainFlow, switch_settings
from mrc_testbed.testbed.switching.expected import Expected, Unplanned
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule, RuleHandle, as_seen_by_program
from mrc_testbed.testbed.switching.tables import Misled
from mrc_testbed.testbed.switching.thresholds import FLAWLESS, LevelFlaws
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

if TYPE_CHECKING:
    from mrc_testbed.testbed.fabric.live import LivePorts

_SYSCTLS = {
    # No unplanned address, so no duplicate address detection either. What the kernel still sends by itself
    # are two MLD reports a port in the first seconds after it came up.
    "/proc/sys/net/ipv6/conf/default/addr_gen_mode": 1,
    "/proc/sys/net/ipv6/conf/default/accept_ra": 0,
    "/proc/sys/net/ipv6/conf/all/forwarding": 1,
}


def sysctls(plan: Plan, node: str, options: FabricOptions) -> dict[str, int]:
    """The files under /proc/sys that a node has in its namespace, and their values, in the order of writing."""
    return _SYSCTLS | switch_settings(plan, node, options)


class Fabric(FabricCounts):
    """The running fabric of a plan. `build` creates it, `verify` reads it back, faults change it by link and switch
    name.

    `unplanned`: what active faults have changed by their own code; `verify` skips it.
    """

    def __init__(self, plan: Plan, options: FabricOptions, forker: Forker | None = None) -> None:
        self._forker = forker
        self._net = nodes.start_nodes(plan)
        super().__init__(plan, options, {name: self._net.nameToNode[name].pid for name in plan.node_names})
        self._ports: LivePorts | None = None
        self.catch_up = CatchUp()
        self._down: set[Interface] = set()
        self.tables = MisledTables(plan, self.pids)
        self._off: set[str] = set()
        self.unplanned: Collection[Unplanned] = ()
        self.kernel_delay: KernelDelay | None = None
        self._bgp: BgpDaemons | None = None
        self.routes: RouteWatch | None = None
        self._messages: BgpMessages | None = None

    @classmethod
    def build(cls, plan: Plan, options: FabricOptions, forker: Forker | None = None) -> Fabric:
        """Create namespaces, links, addresses, uSID and encap routes, shapers. Raises FabricError at the first
        refusal. `forker`: loads the code of daemons meanwhile."""
        fabric = cls(plan, options, forker)
        pids = fabric.pids
        for node in pids:
            fabric._write_sysctls(node)
        run_batch(IP, "fabric", os.getpid(), commands.link_lines(plan, pids))
        if options.path_order:
            keep_path_order(pids, plan.switch_by_name)
        # Queues and programs first: the kernel sends as soon as a port is up, and every frame must be counted.
        fabric._make_queues()
        run_batches(IP, pids, {node: commands.node_lines(plan, node, options) for node in pids})
        if options.delay == "nfqueue":
            hosts = [host.name for host in plan.hosts]
            fabric.kernel_delay = KernelDelay.start(plan, pids, options.one_way_delay_ns(plan.shape), hosts)
        if plan.learns:
            run_batches(IP, pids, {node: commands.port_address_lines(plan, node) for node in plan.switch_by_name})
            fabric.routes = RouteWatch(plan, options, pids)
            fabric._bgp = BgpDaemons(plan, options, pids)
            fabric._bgp.start(plan.switch_by_name)
        return fabric

    def converge(self) -> None:
        """Wait until BGP has given every T0 all its routes. Raises FabricError if it takes 30 s."""
        if self.routes is not None:
            self.routes.wait()

    def count_route_updates(self) -> None:
        """Count the UPDATE messages of BGP from now on."""
        if self.routes is not None:
            self._messages = BgpMessages({switch: self.pids[switch] for switch in self.plan.switch_by_name})
            self._messages.mark()

    def route_updates(self) -> BgpUpdates:
        """UPDATE messages since then, by switch and neighbour, as either end counts them; empty where nobody knows."""
        return self._messages.since_mark() if self._messages is not None else {}

    def has_all_routes(self) -> bool:
        """True unless BGP has still to give a T0 some of its routes."""
        return self.routes is None or self.routes.complete

    def freeze_routes(self) -> None:
        """BGP says and changes nothing any more, so that ports come to rest."""
        if self._bgp is not None:
            self._bgp.freeze()

    def route_changes(self) -> list[RouteChange]:
        """How many next hops of BGP the T0s had, each time that this has changed since the last call.

        Raises FabricError if a daemon has ended by itself.
        """
        if self._bgp is not None:
            self._bgp.require()
        return [] if self.routes is None else self.routes.take()

    def _make_queues(self) -> None:
        lines = {node: list(commands.queue_lines(self.plan, node, self.options)) for node in self.pids}
        if self.options.port_program:
            self._program = PortProgram(self.plan, self.options)
            for node, text in lines.items():
                text += attach_lines(self.plan, node, self._program.programs.folder)
        run_batches(TC, self.pids, lines)

    def _write_sysctls(self, node: str) -> None:
        with network_of(self.pids[node], node):
            for file, number in sysctls(self.plan, node, self.options).items():
                Path(file).write_text(str(number), encoding="ascii")

    def verify(self, only: Iterable[str] | None = None) -> None:
        """Read the kernel back and compare it with the plan minus the ports, switches and rates that faults hold.

        Of the nodes `only`, routes of BGP may still be missing, because it takes its time; else it must have them all.
        Raises FabricError naming node and route of each drift.
        """
        self._set_shapers(self.catch_up.rest())
        readback.verify(self._expected(), self.pids, self.pids if only is None else only, settled=only is None)

    def _expected(self) -> Expected:
        ids = self._program.programs.ids if self._program else {}
        changed = self._down, self._off, self.unplanned, self.tables.entries
        return Expected(self.plan, self.options, self._rates_bps, ids, *changed)

    def node(self, name: str) -> Any:
        """The Mininet node, for `cmd(...)`."""
        return self._net.nameToNode[name]

    def prompt(self, commands: Sequence[str] = (), addresses: Mapping[str, str] | None = None) -> list[Failed]:
        """Mininet's interactive prompt, or single commands as it runs them. Returns those that failed.

        What it runs is in shells beside those that hold the namespaces, which `exit` would end.
        """
        with ExitStack() as started:
            trimming = self.options.trimming if self.plan.by_usid else None
            beside = {name: Process(pid) for name, pid in self.pids.items()}

            def reader(pids: Mapping[str, int]) -> SwitchReader:
                return SwitchReader(self.plan, pids, BPFFS, trimming)

            return prompt_on(reader, self.plan, beside, started, commands, addresses)

    def network(self, host: str) -> int:
        """A descriptor of the network namespace of a host, which the caller closes. Raises FabricError."""
        return open_of(self.pids[host], host, "ns/net")

    def connect_programs(self, hosts: Iterable[str], carried_by_tcp: bool) -> None:
        """Names, settings of TCP and the management network for hosts that have the device of programs. Settings that
        are the whole host's are left alone where TCP also carries the packets. Raises FabricError."""
        pids = {self.plan.host_by_name[host]: self.pids[host] for host in hosts}
        show_names(pids)
        tune_tcp(pids, self.plan.shape.rtt_ns)
        if not carried_by_tcp:
            lengthen_segments(pids)
        connect_management(pids)

    def start_daemon(self, host: str, control: int, log: IO[bytes]) -> Child:
        """Start the daemon of a host at its end of a control channel. It ends with the sandbox at the latest."""
        if self._forker is None:
            self._forker = Forker(log)
        return self._forker.fork(host, self.pids[host], control, log)

    def all_started(self) -> None:
        """No more daemons will be started."""
        if self._forker is not None:
            self._forker.close()
            self._forker = None

    def prepare_faults(self, on_nodes: Iterable[str]) -> None:
        """Open what fast changes on these nodes need, before the measured part."""
        if nodes := list(on_nodes):
            from mrc_testbed.testbed.fabric.live import (
                LivePorts,  # a run without faults does not wait until this is loaded
            )

            self._ports = LivePorts(self.pids, nodes)

    def ports_down(self, ports: Iterable[Interface]) -> None:
        """Take these switch ports admin-down: few objects depend on them, and the plan can rewrite those."""
        if self._ports is None:
            raise RuntimeError("call prepare_faults first")
        for port in ports:
            self._ports.down(port.node, port.ifindex)
            self._down.add(port)
        self._tell_choosers()

    def ports_up(self, ports: Iterable[Interface]) -> None:
        """Bring these ports up and restore the neighbours and routes that the kernel dropped with them."""
        ports = list(ports)
        down = self._down.difference(ports)
        by_node = {node: [port for port in ports if port.node == node] for node in {port.node for port in ports}}
        lines = {
            node: list(commands.port_lines(self.plan, node, own, down, self.tables.entries))
            for node, own in by_node.items()
        }
        run_batches(IP, {node: self.pids[node] for node in lines}, lines)
        self._down = down
        self._tell_choosers()

    def _tell_choosers(self) -> None:
        """Switches that choose packet by packet leave the links that are down, as the kernel's routes do."""
        if self._program is not None:
            self._program.set_down(self._down)

    def switch_off(self, switch: str) -> int:
        """Take the ports down and remove the forwarding table. Returns the number of planned routes left, which must be
        0."""
        if self._bgp is not None:
            self._bgp.stop(switch)
        run_batch(IP, switch, self.pids[switch], commands.switch_wipe_lines(self.plan, switch))
        self._down.update(own for own, _ in self.plan.ports[switch])
        self._off.add(switch)
        self._tell_choosers()
        return readback.fib_size(self.plan, self.pids, switch)

    def switch_on(self, switch: str, ports: Iterable[Interface]) -> None:
        """Bring these ports up and rewrite the static table, except routes over ports that stay down."""
        ports = list(ports)
        run_batch(
            IP, switch, self.pids[switch], commands.switch_table_lines(self.plan, switch, ports, self.tables.entries)
        )
        self._down.difference_update(ports)
        self._off.discard(switch)
        self._tell_choosers()
        if self._bgp is not None:
            self._bgp.start([switch])
        if self._messages is not None:
            self._messages.restarted(switch)

    def ports_held_down(self) -> list[Interface]:
        """Ports that are currently held down."""
        return sorted(self._down, key=lambda port: port.ifindex)

    def set_rate(self, link: str, rate_bps: int) -> None:
        """Set the rate of a link both ways: shapers, and the virtual queues of its switch ports.

        Queues keep their length in bytes, so marks and trims come at the same backlog, which now takes another time to
        drain. Raises FabricError if the kernel refuses the rate.
        """
        before = self.rate_bps(link)
        for end in self.plan.link_by_name[link].ends:
            run_batch(TC, end.node, self.pids[end.node], commands.class_lines("change", end.name, rate_bps))
            if self._program is not None:
                self._program.set_rate(end, before, rate_bps)
        self.catch_up.forget(self.plan.link_by_name[link].ends)
        self._rates_bps[link] = rate_bps
        if rate_bps == self.plan.link_by_name[link].rate_bps:
            del self._rates_bps[link]

    def make_up_lost_time(self) -> None:
        """Let shapers that are behind their links go faster, and those that have caught up as planned. To be called
        every `catch_up.PERIOD_NS`. Does nothing in a fabric of plain shapers."""
        if (program := self._program) is not None:
            ends = (ends for ports in self.plan.ports.values() for ends in ports)
            behind = ((sender, program.take_last_lateness(receiver)) for receiver, sender in ends)
            self._set_shapers(self.catch_up.look(behind))

    def _set_shapers(self, percent_faster: Mapping[Interface, int]) -> None:
        lines: dict[str, list[str]] = {}
        for port, percent in percent_faster.items():
            rate_bps = self.rate_bps(self._link_of[port]) * (100 + percent) // 100
            lines.setdefault(port.node, []).extend(commands.class_lines("change", port.name, rate_bps))
        run_batches(TC, {node: self.pids[node] for node in lines}, lines)

    def mislead(self, switch: str, entries: Misled) -> None:
        """Let these entries of a switch lead elsewhere, and all others where they should. Raises FabricError."""
        self.tables.set(switch, entries, self._down)

    def set_flaws(self, switch: str, flaws: LevelFlaws) -> None:
        """Let the ports of a switch judge packets by their levels with these flaws. Raises MissingCapability without
        the port program."""
        self._needed_program("a flaw of a switch's levels").set_flaws(self._port_rates(switch), flaws)

    def verify_flaws(self, flaws: Mapping[str, LevelFlaws]) -> None:
        """Compare the levels of every port with the planned ones and these flaws of its switch. Raises FabricError
        naming a port that differs. Does nothing in a fabric of plain shapers."""
        if self._program is not None:
            for switch in self.plan.switch_by_name:
                self._program.verify_flaws(self._port_rates(switch), flaws.get(switch, FLAWLESS))

    def _port_rates(self, node: str) -> dict[Interface, int]:
        return {own: self.rate_bps(self._link_of[own]) for own, _ in self.plan.ports[node]}

    def add_rule(self, link: str, toward: Literal["near", "far"], rule: PortRule) -> RuleHandle:
        """Lose or corrupt packets that arrive at one end of a link, in addition to existing rules.

        `toward` names that end: "far" affects packets that travel away from the hosts. Takes microseconds. Raises
        MissingCapability without the port program, FabricError if the port already holds eight rules, ValueError for a
        rule by the number of a way, where packets do not say theirs.
        """
        ends = self.plan.link_by_name[link]
        port = ends.near if toward == "near" else ends.far
        return self._needed_program("loss by rule").rules.add(port, as_seen_by_program(rule, port, self.plan))

    def remove_rule(self, handle: RuleHandle) -> int:
        """Remove a rule; the others of its port stay. Returns how many packets it hit.

        Raises ValueError if it was already removed.
        """
        return self._needed_program("loss by rule").rules.remove(handle)

    def verify_rules(self, handles: Iterable[RuleHandle]) -> None:
        """Compare the active rules of every port with `handles`. Raises FabricError naming a port that differs.

        Does nothing in a fabric of plain shapers.
        """
        if self._program is not None:
            ports = (own for ports in self.plan.ports.values() for own, _ in ports)
            self._program.rules.verify(ports, handles)

    def silence(self, switch: str, of_hosts: bool = False) -> list[RuleHandle]:
        """A switch loses everything that arrives while its ports stay up: a grey failure. `of_hosts`: but what
        switches say to it.

        Raises MissingCapability without the port program.
        """
        rules = self._needed_program("a silent switch").rules
        return [rules.add(own, PortRule("drop", of_hosts=of_hosts)) for own, _ in self.plan.ports[switch]]

    def predicted_uplinks(self, flows: Sequence[PlainFlow]) -> list[int]:
        """The number of the way that switches choose for each flow now; 0 within a T0 group. Sends nothing.

        Raises MissingCapability where the choice depends on more than these fields, FabricError without a way.
        """
        return predicted_uplinks(self.plan, self.options, self.pids, flows)

    def tap(self, link: str, snap_bytes: int) -> Tap:
        """A tap on a link, both ways, at its end nearer to the hosts, because a cut takes the other end down.

        It captures nothing until `listen`. Raises FabricError.
        """
        tapped = self.plan.link_by_name[link]
        blocks = ring_blocks(tapped.rate_bps, snap_bytes)
        return Tap(self.pids[tapped.near.node], tapped.near, snap_bytes, blocks)
