"""A virtual fabric whose hosts do nothing but probe it for the mapper."""

from __future__ import annotations

from typing import Any

from mrc_testbed.hosts.common.bth import CLASS_CONTROL
from mrc_testbed.testbed.checks.conservation import Books, Ledger, balance
from mrc_testbed.testbed.mapper.probing import ProbeRoute, probe_routes
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.runner.books import port_books
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.host import VirtualHost
from mrc_testbed.testbed.virtual.lateness import LateTurns
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests.unit.virtual.virtual_stage import OPTIONS

RTT_NS = 20_000_000
PERIOD_NS = 10 * RTT_NS


class AgentStage:
    """All hosts of the fabric, and the events that each sent. `routes`: what each probes."""

    def __init__(self, family: Family | None = None, planes: int = 2, owners: int = 2) -> None:
        self.scheduler = Scheduler()
        self.plan = build_plan(Shape(planes, family or Clos2(2, 2, 2), 25_000_000, RTT_NS))
        self.fabric = VirtualFabric(self.plan, OPTIONS, self.scheduler, 1)
        self.table = SuspectTable(self.plan)
        self.routes = probe_routes(self.plan, self.table, owners)
        self.events: dict[str, list[dict[str, Any]]] = {host.name: [] for host in self.plan.hosts}
        self.logs: list[str] = []
        self.hosts = {host.name: self._host(host.name) for host in self.plan.hosts}
        for name, host in self.hosts.items():
            self.answer(name, host.request("configure", **self._configure(name)))

    def _host(self, name: str) -> VirtualHost:
        def hear(host: str, event: dict[str, Any]) -> None:
            self.events[host].append(event)

        late = LateTurns(0, name)
        return VirtualHost(name, self.fabric, self.scheduler, hear, self.logs.append, late)

    def _configure(self, name: str) -> dict[str, Any]:
        host, shape = self.plan.host_by_name[name], self.plan.shape
        return {
            **{"host": host.index, "name": name, "planes": shape.planes, "rtt_ns": RTT_NS, "delay_ns": RTT_NS // 4},
            **{"port_rate_bps": shape.port_rate_bps, "seed": 1, "address": host.address, "udp_port": host.udp_port},
            **{"peers": [], "port_program": True},
        }

    def answer(self, name: str, number: int) -> dict[str, Any]:
        """The answer to a request."""
        answers = self.hosts[name].answers
        self.scheduler.run_until(lambda: number in answers, self.scheduler.now_ns + 1_000_000_000)
        return answers[number]

    def ask(self, name: str, command: str, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        return self.answer(name, self.hosts[name].request(command, **fields))

    def map(self, name: str, **changes: Any) -> dict[str, Any]:
        """Let a host probe."""
        host = self.plan.host_by_name[name]
        asked = {
            **{"address": host.address, "dscp": CLASS_CONTROL >> 2, "seed": host.index},
            **{"period_ns": PERIOD_NS, "timeout_ns": 4 * RTT_NS},
            "targets": [[route.plane, route.address] for route in self.routes[name]],
        }
        return self.ask(name, "map", **asked | changes)

    def map_all(self) -> None:
        """Let all hosts probe."""
        assert all(self.map(name)["ok"] for name in self.hosts)

    def run(self, for_ns: int) -> None:
        """As long."""
        self.scheduler.run_until(lambda: False, self.scheduler.now_ns + for_ns)

    def windows(self, name: str) -> list[dict[str, Any]]:
        """What a host told of its probes."""
        return [event for event in self.events[name] if event["event"] == "map_window"]

    def lost(self) -> list[ProbeRoute]:
        """Probes that were lost, host by host."""
        return [self.routes[name][row[0]] for name in self.hosts for one in self.windows(name) for row in one["lost"]]

    def finish(self, broken_links: tuple[str, ...] = ()) -> tuple[Ledger, dict[str, dict[str, int]]]:
        """Be quiet, wait until nothing is on its way; the books, and the counters of each host."""
        for name in self.hosts:
            self.ask(name, "quiet")
        self.run(PERIOD_NS)
        counters = {name: self.ask(name, "stats")["counters"] for name in self.hosts}
        ports = {
            (node, port): counts
            for node, found in port_books(self.fabric, self.fabric.queues()).items()
            for port, counts in found.items()
        }
        hosts = {
            name: {
                **{key: own[key] for key in ("packets_out", "packets_in")},
                "data_sent": 0,
                "send_errors": sum(count for key, count in own.items() if key.startswith("send_lost_")),
                "strangers": own["unknown_source"],
                "socket_drops": 0,
            }
            for name, own in counters.items()
        }
        return balance(self.plan, Books(ports, hosts), broken_links), counters
