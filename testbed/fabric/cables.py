"""Links and switches as a person at the prompt changes them: as faults do, and brought back as faults are healed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.fabric import commands
from mrc_testbed.testbed.fabric.batch import IP, query, run_batch
from mrc_testbed.topos.nodes import Interface, Link
from mrc_testbed.topos.plan import Plan


class Cables:
    """The links and switches of `plan`, whose nodes the processes `pids` hold."""

    def __init__(self, plan: Plan, pids: Mapping[str, int]) -> None:
        self.plan, self._pids = plan, pids

    def _between(self, one: str, other: str) -> Link:
        """Raises UsageError where no link is."""
        ends = {one, other}
        found = next((link for link in self.plan.links if {link.near.node, link.far.node} == ends), None)
        if found is None:
            raise UsageError(f"no link between {one} and {other}; `links` lists them")
        return found

    def down(self, one: str, other: str) -> None:
        """Take the far end of the link down, as `link-down` does. Raises UsageError, FabricError."""
        far = self._between(one, other).far
        run_batch(IP, far.node, self._pids[far.node], [f"link set dev {far.name} down"])

    def up(self, one: str, other: str) -> None:
        """Bring the link up, with the neighbours and routes that the kernel dropped with its ports.

        Raises UsageError, FabricError.
        """
        for end in self._between(one, other).ends:
            others_down = [port for port in self._down_at(end.node) if port != end]
            lines = commands.port_lines(self.plan, end.node, [end], others_down)
            run_batch(IP, end.node, self._pids[end.node], _whatever_is_left(lines))

    def off(self, switch: str) -> None:
        """All ports down and the table gone. Raises UsageError, FabricError."""
        lines = list(commands.switch_wipe_lines(self.plan, self._switch(switch)))
        ports_down = [line for line in lines if line.startswith("link ")]
        run_batch(IP, switch, self._pids[switch], ports_down if self._is_off(switch) else lines)

    def on(self, switch: str) -> None:
        """All ports up, with the table that the plan has. Raises UsageError, FabricError."""
        ports = [own for own, _ in self.plan.ports[self._switch(switch)]]
        lines = commands.switch_table_lines(self.plan, switch, ports)
        run_batch(IP, switch, self._pids[switch], _whatever_is_left(lines))

    def _switch(self, name: str) -> str:
        if name not in self.plan.switch_by_name:
            raise UsageError(f"no switch {name}; `nodes` lists all nodes")
        return name

    def _is_off(self, switch: str) -> bool:
        """An off switch has no table left to remove."""
        return len(self._down_at(switch)) == len(self.plan.ports[switch])

    def _down_at(self, node: str) -> list[Interface]:
        shown = json.loads(query(["ip", "-j", "link", "show"], {node: self._pids[node]})[node])
        up = {device["ifname"] for device in shown if "UP" in device["flags"]}
        return [own for own, _ in self.plan.ports[node] if own.name not in up]


def _whatever_is_left(lines: Iterable[str]) -> list[str]:
    """Routes that are there already are no mistake."""
    return [line.replace("route add ", "route replace ", 1) for line in lines]
