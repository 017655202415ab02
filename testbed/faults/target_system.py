"""What faults act on: the fabric and the endpoints, and what each active fault claims of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from mrc_testbed.testbed.scenario import Occurrence
from mrc_testbed.testbed.scenario.faults.occurrence import OccurrenceKey
from mrc_testbed.testbed.switching.interface import FabricLike
from mrc_testbed.testbed.switching.port_rules import RuleHandle
from mrc_testbed.testbed.switching.tables import Misled
from mrc_testbed.testbed.switching.thresholds import LevelFlaws
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

T = TypeVar("T", bound=Hashable)
LinesByNode = Mapping[str, Iterable[str]]
"""Lines of a batch file, by node."""


class Burden(NamedTuple):
    """What a fault makes of a host: it is `held`, or needs `per_packet_ns` for each packet."""

    held: bool
    per_packet_ns: int


def _hinders_nobody(host: str, held: bool, per_packet_ns: int) -> None:
    raise RuntimeError(f"nobody drives {host}")


class Claims(Generic[T]):
    """Things claimed by occurrences; a thing is free again when its last claim is released."""

    def __init__(self) -> None:
        self._held: dict[OccurrenceKey, tuple[T, ...]] = {}

    def take(self, key: OccurrenceKey, things: Iterable[T]) -> list[T]:
        """Claim these; returns those that were free."""
        things = tuple(things)
        new = [thing for thing in things if thing not in self]
        self._held[key] = things
        return new

    def release(self, key: OccurrenceKey) -> list[T]:
        """Release all claims of an occurrence; returns what is free now."""
        mine = self._held.pop(key, ())
        return [thing for thing in mine if thing not in self]

    def __contains__(self, thing: object) -> bool:
        return any(thing in things for things in self._held.values())


class Limits:
    """Limits of links by name, set by occurrences: the lowest counts."""

    def __init__(self) -> None:
        self._limits: dict[OccurrenceKey, Mapping[str, int]] = {}

    def take(self, key: OccurrenceKey, limits: Mapping[str, int]) -> None:
        """Limit these links."""
        self._limits[key] = limits

    def release(self, key: OccurrenceKey) -> None:
        """Release all limits of an occurrence."""
        self._limits.pop(key, None)

    def of(self, link: str) -> int | None:
        """The lowest limit of a link, None without one."""
        return min((limits[link] for limits in self._limits.values() if link in limits), default=None)


@dataclass(frozen=True)
class TargetSystem:
    """A plugin uses `plan`, `node`, `ip`, `tc` and `limits`; the rest is for built-in kinds.

    `update_denylists(command, occurrence)`: the endpoints concerned `deny` or `allow` its targets; returns
    when all have done so. `hinder(host, held, per_packet_ns)`: from now on that host does nothing, or needs so long for
    each packet.
    `down`, `off`: ports and switches that faults claim now. `rules`: the active rules of the port program. `entries`:
    what faults make of entries of switches, by fault, the latest last; `flaws`, `burdens`: the same of the levels of a
    switch, and of a host.
    """

    fabric: FabricLike
    update_denylists: Callable[[str, Occurrence], None]
    hinder: Callable[[str, bool, int], None] = field(default=_hinders_nobody)
    down: Claims[Interface] = field(default_factory=Claims)
    off: Claims[str] = field(default_factory=Claims)
    rules: dict[OccurrenceKey, list[RuleHandle]] = field(default_factory=dict)
    entries: dict[OccurrenceKey, Misled] = field(default_factory=dict)
    flaws: dict[OccurrenceKey, Mapping[str, LevelFlaws]] = field(default_factory=dict)
    burdens: dict[OccurrenceKey, Mapping[str, Burden]] = field(default_factory=dict)
    _limits: dict[str, Limits] = field(default_factory=lambda: defaultdict(Limits))

    @property
    def plan(self) -> Plan:
        """The fabric as planned: its links, their ends, its nodes."""
        return self.fabric.plan

    def node(self, name: str) -> Any:
        """The Mininet node, for `cmd(...)`. Raises MissingCapability in virtual time, as `ip` and `tc`."""
        return self.fabric.node(name)

    def ip(self, lines: LinesByNode) -> None:
        """Run `ip -6 -batch` in each node. Raises FabricError with the refused line."""
        from mrc_testbed.testbed.fabric.batch import IP, run_batches

        run_batches(IP, self.fabric.pids, lines)

    def tc(self, lines: LinesByNode) -> None:
        """Run `tc -batch` in each node. Raises FabricError with the refused line."""
        from mrc_testbed.testbed.fabric.batch import TC, run_batches

        run_batches(TC, self.fabric.pids, lines)

    def limits(self, what: str) -> Limits:
        """The limits of all faults under this name, such as `rate` in b/s."""
        return self._limits[what]
