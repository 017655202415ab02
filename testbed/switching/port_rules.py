"""Rules by which a port loses or corrupts arriving packets: loss of a link, plane or EV, grey failures (design, 5)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, Protocol

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.topos import plain
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan

RULE = struct.Struct("6IQ")
"""A rule in the program's layout (bpf/port.bpf.c)."""
RULES = 8
"""Rules that a port can hold at once."""
_ACTIONS = {"drop": 1, "corrupt": 2}
_BY_UPLINK, _BY_SOURCE, _BY_DESTINATION, _DATA_ONLY, _OF_HOSTS = 1, 2, 4, 8, 16
ALWAYS = (1 << 32) - 1
"""The chance of a rule that hits every packet."""


@dataclass(frozen=True, slots=True)
class PortRule:
    """What happens to packets that arrive at a port.

    `corrupt` flips one random bit of a data packet's payload, which the ICRC should detect. `probability` applies to
    each matching packet independently. `uplink` (the number of the way), `source` and `destination` (host numbers)
    restrict it to packets whose headers say so; None is any. The plane is that of the link. `of_hosts`: not what
    switches say to each other. Raises ValueError for a value outside its field.
    """

    action: Literal["drop", "corrupt"]
    probability: float = 1.0
    uplink: int | None = None
    source: int | None = None
    destination: int | None = None
    data_only: bool = False
    of_hosts: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ValueError(f"a rule's probability must be above 0 and at most 1, not {self.probability}")
        for name, most in (("uplink", 0xFF), ("source", ALWAYS), ("destination", ALWAYS)):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise ValueError(f"a rule's {name} must be within 0..{most}, not {value}")

    @property
    def chance(self) -> int:
        """The probability in 2^32 parts, or ALWAYS."""
        return ALWAYS if self.probability == 1 else min(int(self.probability * (1 << 32)), ALWAYS - 1)

    def entry(self) -> bytes:
        """The rule in the program's layout, with zero hits."""
        flags = _BY_UPLINK * (self.uplink is not None) + _BY_SOURCE * (self.source is not None)
        flags += _BY_DESTINATION * (self.destination is not None) + _DATA_ONLY * self.data_only
        flags += _OF_HOSTS * self.of_hosts
        selectors = (self.uplink or 0, self.source or 0, self.destination or 0)
        return RULE.pack(_ACTIONS[self.action], self.chance, flags, *selectors, 0)


def as_seen_by_program(rule: PortRule, port: Interface, plan: Plan) -> PortRule:
    """The rule by what headers say where switches choose the path: hosts by their addresses.

    Raises ValueError for a rule about one way, which no packet names there.
    """
    if plan.by_usid:
        return rule
    if rule.uplink is not None:
        raise ValueError(f"no packet that comes to {port.node} {port.name} says that it takes way {rule.uplink}")
    source, destination = (
        None if number is None else _bits(plan, number) for number in (rule.source, rule.destination)
    )
    return replace(rule, source=source, destination=destination)


def _bits(plan: Plan, number: int | None) -> int | None:
    if number is None:
        return None
    host = plan.hosts[number]
    return plain.host_bits(host.group, host.downlink)


@dataclass(frozen=True, slots=True)
class RuleHandle:
    """One rule at one port, for removal."""

    port: Interface
    slot: int
    serial: int


class RuleSlots(Protocol):
    """The slots of all ports: in the port program's memory, or of virtual ports."""

    def write(self, port: Interface, slot: int, rule: PortRule) -> None:
        """Fill an inactive slot, and let the rule hold."""

    def active(self, port: Interface) -> set[int]:
        """The slots whose rules hold."""

    def clear(self, port: Interface, slot: int) -> int:
        """End a rule. Returns how many packets it hit."""


class RuleTable:
    """The slots in use of every port. Rules of several faults coexist; each is removed by its own handle."""

    def __init__(self, slots: RuleSlots) -> None:
        self._slots = slots
        self._taken: dict[tuple[int, int], RuleHandle] = {}
        self._serials = count()

    def add(self, port: Interface, rule: PortRule) -> RuleHandle:
        """Apply `rule` to packets that arrive at `port`. Raises FabricError if all slots of the port are in use."""
        key = port.ifindex
        slot = next((slot for slot in range(RULES) if (key, slot) not in self._taken), None)
        if slot is None:
            raise FabricError(port.node, f"add a rule at {port.name}", f"it holds {RULES} rules already")
        handle = self._taken[key, slot] = RuleHandle(port, slot, next(self._serials))
        self._slots.write(port, slot, rule)
        return handle

    def remove(self, handle: RuleHandle) -> int:
        """Remove one rule. Returns how many packets it hit. Raises ValueError if it was already removed."""
        place = (handle.port.ifindex, handle.slot)
        if self._taken.get(place) != handle:
            raise ValueError(f"this rule at {handle.port.node} {handle.port.name} is gone already")
        hits = self._slots.clear(handle.port, handle.slot)
        del self._taken[place]
        return hits

    def verify(self, ports: Iterable[Interface], handles: Iterable[RuleHandle]) -> None:
        """Compare the active slots with `handles`. Raises FabricError naming the first port."""
        wanted: dict[Interface, set[int]] = {}
        for handle in handles:
            wanted.setdefault(handle.port, set()).add(handle.slot)
        for port in ports:
            held = self._slots.active(port)
            if held != wanted.get(port, set()):
                slots = f"slots {sorted(held)} hold, {sorted(wanted.get(port, set()))} should"
                raise FabricError(port.node, f"read-back of the rules at {port.name}", slots)
