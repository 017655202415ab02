"""What faults act on: the fabric, and the endpoints; and what each of them holds there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from testbed.fabric.fabric import Fabric
from testbed.fabric.port_rules import RuleHandle
from testbed.faults.holds import Holds, Key, Limits
from testbed.scenario import Cycle
from topos.plan import Interface


@dataclass(frozen=True)
class Site:
    """`tell(command, cycle)`: the endpoints that `cycle` is about do `deny` or `allow` for its targets; returns when
    all have done so.

    `down`, `off`, `rates`: ports, switches and links as the faults that are on now hold them. `rules`: those of the
    port program that hold now, by the cycle that put them.
    """

    fabric: Fabric
    tell: Callable[[str, Cycle], None]
    down: Holds[Interface] = field(default_factory=Holds)
    off: Holds[str] = field(default_factory=Holds)
    rates: Limits = field(default_factory=Limits)
    rules: dict[Key, list[RuleHandle]] = field(default_factory=dict)
