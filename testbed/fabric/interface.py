"""What a run and its faults need of a fabric, whichever world it is in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from testbed.fabric.ecmp import PlainFlow
from testbed.fabric.expected import Unplanned
from testbed.fabric.options import FabricOptions
from testbed.fabric.port_counts import PortCounts, PortHits
from testbed.fabric.port_rules import PortRule, RuleHandle
from topos.plan import Interface, Plan


class FabricLike(Protocol):
    """A built fabric. What each method does is said in testbed.fabric.fabric."""

    plan: Plan
    options: FabricOptions
    unplanned: Collection[Unplanned]

    @property
    def pids(self) -> Mapping[str, int]:
        """A process in the namespace of each node. Raises MissingCapability where there are none."""

    def node(self, name: str) -> Any:
        """The Mininet node. Raises MissingCapability where there is none."""

    def verify(self, only: Iterable[str] | None = None) -> None: ...

    def prepare_faults(self, on_nodes: Iterable[str]) -> None: ...

    def ports_down(self, ports: Iterable[Interface]) -> None: ...

    def ports_up(self, ports: Iterable[Interface]) -> None: ...

    def switch_off(self, switch: str) -> int: ...

    def switch_on(self, switch: str, ports: Iterable[Interface]) -> None: ...

    def ports_held_down(self) -> list[Interface]: ...

    def set_rate(self, link: str, rate_bps: int) -> None: ...

    def rate_bps(self, link: str) -> int: ...

    def add_rule(self, link: str, toward: Literal["near", "far"], rule: PortRule) -> RuleHandle: ...

    def remove_rule(self, handle: RuleHandle) -> int: ...

    def verify_rules(self, handles: Iterable[RuleHandle]) -> None: ...

    def silence(self, switch: str) -> list[RuleHandle]: ...

    def port_counts(self) -> Mapping[tuple[str, str], PortCounts]: ...

    def port_hits(self) -> Iterable[tuple[tuple[str, str], PortHits]]: ...

    def predicted_uplinks(self, flows: Sequence[PlainFlow]) -> list[int]: ...

    def sample_ports(self) -> Iterator[tuple[str, str, int, int, int, int, int, int]]: ...

    def queues(self) -> dict[str, dict[str, dict[str, int]]]: ...

    def receive_drops(self) -> int: ...

    def socket_losses(self) -> dict[str, int]: ...
