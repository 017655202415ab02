"""Rules by which a port loses or corrupts what comes in: loss of a link, plane or EV, grey failures (design, 5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Literal

from testbed.errors import FabricError
from testbed.fabric.port_maps import RULE, RULES, SharedArray, clear_rule, write_rule
from topos.plan import FIRST_IFINDEX, Interface

_ACTIONS = {"drop": 1, "corrupt": 2}
_BY_UPLINK, _BY_SOURCE, _BY_DESTINATION, _DATA_ONLY = 1, 2, 4, 8
_ALWAYS = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class PortRule:
    """What happens to packets that come in at a port.

    `corrupt` flips one random bit of the payload of a data packet, which the ICRC is there to find. `probability` is
    the chance of each matching packet by itself. `uplink` (EV[23:16], the T1), `source` and `destination` (host
    numbers) narrow it down to packets in the fabric's encapsulation; None is any. The plane is that of the link.
    Raises ValueError for a value outside its field.
    """

    action: Literal["drop", "corrupt"]
    probability: float = 1.0
    uplink: int | None = None
    source: int | None = None
    destination: int | None = None
    data_only: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ValueError(f"a rule's probability is above 0 and at most 1, not {self.probability}")
        for name, most in (("uplink", 0xFF), ("source", 0xFFFF), ("destination", 0xFFFF)):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise ValueError(f"a rule's {name} is within 0..{most}, not {value}")

    def entry(self) -> bytes:
        """The rule as the program reads it, with no hits."""
        flags = _BY_UPLINK * (self.uplink is not None) + _BY_SOURCE * (self.source is not None)
        flags += _BY_DESTINATION * (self.destination is not None) + _DATA_ONLY * self.data_only
        chance = _ALWAYS if self.probability == 1 else min(int(self.probability * (1 << 32)), _ALWAYS - 1)
        selectors = (self.uplink or 0, self.source or 0, self.destination or 0)
        return RULE.pack(_ACTIONS[self.action], chance, flags, *selectors, 0)


@dataclass(frozen=True, slots=True)
class RuleHandle:
    """One rule at one port, for taking it away again."""

    port: Interface
    slot: int
    serial: int


class RuleTable:
    """Which slot of which port is in use. Rules of several faults stand side by side; each goes by its own handle."""

    def __init__(self, rules: SharedArray) -> None:
        self._rules = rules
        self._taken: dict[tuple[int, int], RuleHandle] = {}
        self._serials = count()

    def add(self, port: Interface, rule: PortRule) -> RuleHandle:
        """Let `rule` hold for what comes in at `port`. Raises FabricError when the port's slots are all in use."""
        key = port.ifindex - FIRST_IFINDEX
        slot = next((slot for slot in range(RULES) if (key, slot) not in self._taken), None)
        if slot is None:
            raise FabricError(port.node, f"add a rule at {port.name}", f"it holds {RULES} rules already")
        handle = self._taken[key, slot] = RuleHandle(port, slot, next(self._serials))
        write_rule(self._rules, key, slot, rule.entry())
        return handle

    def remove(self, handle: RuleHandle) -> int:
        """Take one rule away. Returns how many packets it hit. Raises ValueError when it is gone already."""
        place = (handle.port.ifindex - FIRST_IFINDEX, handle.slot)
        if self._taken.get(place) != handle:
            raise ValueError(f"this rule at {handle.port.node} {handle.port.name} is gone already")
        hits = clear_rule(self._rules, *place)
        del self._taken[place]
        return hits
