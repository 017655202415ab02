"""What every endpoint without I/O does alike: its timers, its counters, and events of QPs that are no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from typing import Any, Generic, Protocol, TypeVar

from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.timers import NEVER, Timers


class _Counted(Protocol):
    def as_dict(self) -> dict[str, int]: ...


class SharedContext(Protocol):
    """What the base needs of an endpoint's context. `ready`: who has something to send; `blocked_until`: none of them
    can go before, 0: not known."""

    blocked_until: int

    @property
    def timers(self) -> Timers: ...
    @property
    def pacer(self) -> Pacer: ...
    @property
    def ready(self) -> Sized: ...
    @property
    def events(self) -> deque[Any]: ...
    @property
    def counters(self) -> _Counted: ...


ContextT = TypeVar("ContextT", bound=SharedContext)


class EndpointBase(Generic[ContextT]):
    """The base of endpoints that a datagram loop drives. `ContextT`: the context of this kind of endpoint."""

    __slots__ = ("_context",)
    _context: ContextT

    def handle_timeout(self, now_ns: int) -> None:
        """Run every timer that is due. Calling it early or late is allowed."""
        self._context.timers.run(now_ns)

    def next_timeout(self) -> int | None:
        """When to call `handle_timeout` or `poll_transmit` next at the latest; None: no need to.

        Only meaningful after `poll_transmit` returned None.
        """
        context = self._context
        when = context.timers.next_ns()
        if context.ready and context.blocked_until < when:
            when = context.blocked_until
        return None if when == NEVER else when

    @property
    def burst_ns(self) -> int:
        """What a port is given in advance lasts so long: who polls less often than that leaves it idle."""
        return self._context.pacer.burst_ns

    def counters(self) -> dict[str, int]:
        """All counters so far, flat."""
        return self._context.counters.as_dict()

    def _forget_events(self, qpn: int) -> None:
        events = self._context.events
        kept = [event for event in events if getattr(event, "qpn", None) != qpn]
        events.clear()
        events.extend(kept)
