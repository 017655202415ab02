"""Denied paths in the daemons' terms: at the start, and for `deny` faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.runner.setup import peers_of
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import Occurrence, Scenario, parse_paths
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.topos.nodes import Host
from mrc_testbed.topos.plan import Plan

_ANSWER_S = 5
"""A daemon answers in milliseconds; the loop runs meanwhile."""


class Controller:
    """Translates a name such as `p0-t1-2` into each host's denylist rows."""

    def __init__(self, scenario: Scenario, plan: Plan, job: JobPlan) -> None:
        self._plan = plan
        self._job = job
        self._hosts = scenario.host_names
        self._denylist = scenario.denylist

    def at_start(self) -> dict[str, list[dict[str, Any]]]:
        """The initial denylist of each host. Raises RunError for an entry that matches no path."""
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in self._hosts}
        for denial in self._denylist:
            for name, found in self._by_host(denial.path, denial.hosts).items():
                rows[name] += found
        return rows

    def update(self, team: Team, command: str, occurrence: Occurrence) -> None:
        """Send `deny` or `allow` for the targets of an occurrence. Raises RunError."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for target in occurrence.targets:
            for name, found in self._by_host(target, occurrence.hosts).items():
                rows.setdefault(name, []).extend(found)
        self.tell(team, command, rows)

    @property
    def pairs(self) -> set[tuple[str, str]]:
        """Who sends to whom, answers included."""
        hosts = self._plan.hosts
        ends = [(hosts[qp.src].name, hosts[qp.dst].name) for qp in self._job.qps]
        return {*ends, *((dst, src) for src, dst in ends)}

    def tell(self, team: Team, command: str, rows: Mapping[str, list[dict[str, Any]]]) -> None:
        """Send `deny` or `allow` with these rows, by host. Raises RunError."""
        team.ask(command, lambda name: {"paths": rows[name]}, timeout_s=_ANSWER_S, hosts=rows)

    def _by_host(self, name: str, hosts: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        senders = [self._plan.host_by_name[host] for host in hosts or self._hosts]
        found = {sender.name: list(self._rows(name, sender)) for sender in senders}
        if not any(found.values()):
            raise RunError(f"deny {name}: the named hosts send nothing over it; name others, or `all`")
        return {host: rows for host, rows in found.items() if rows}

    def _rows(self, name: str, host: Host) -> Iterator[dict[str, Any]]:
        paths = parse_paths(name)
        if paths is None:
            raise ValueError(f"{name!r} names no paths")
        if paths.whole:
            yield {"plane": paths.plane}
            return
        for peer in peers_of(self._plan, self._job, host):
            for number, way in enumerate(self._plan.ways(host, peer)):
                if paths.takes(number, way):
                    yield {"plane": paths.plane, "uplink": number, "peer": peer.name}
