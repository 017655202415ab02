"""Entries of switches that faults have made lead elsewhere, in the kernel's tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mrc_testbed.testbed.fabric.batch import IP, run_batch
from mrc_testbed.testbed.fabric.commands import mislead_lines
from mrc_testbed.testbed.switching.tables import Misled
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan


class MisledTables:
    """`entries`: those of all switches that lead elsewhere now. `ever`: whether any has."""

    def __init__(self, plan: Plan, pids: Mapping[str, int]) -> None:
        self._plan = plan
        self._pids = pids
        self.entries: dict[Interface, Interface | None] = {}
        self.ever = False

    def set(self, switch: str, entries: Misled, down: Collection[Interface]) -> None:
        """Let these entries of a switch lead elsewhere, and all others where they should. `down`: ports that are.
        Raises FabricError."""
        before = {own: instead for own, instead in self.entries.items() if own.node == switch}
        lines = [
            line
            for own in {**before, **entries}
            if before.get(own, own) != entries.get(own, own)
            for line in mislead_lines(self._plan, own, before.get(own, own), entries.get(own, own), down)
        ]
        run_batch(IP, switch, self._pids[switch], lines)
        self.ever |= bool(entries)
        self.entries = {own: instead for own, instead in self.entries.items() if own.node != switch}
        self.entries |= entries
