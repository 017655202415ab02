"""All planes at once: which plane the next packet to a host takes, and how much each plane may be given.

The sender decides packet by packet and keeps a state for each plane of each host that it sends to (arXiv 2605.21187).
Planes without allowance, without carrier and those that have failed are left out; of the others the one with the
shortest queue at the own port is taken. An allowance is a window, and a rate where there is congestion control. It is
that of one plane (`BALANCED`), or of all planes to a host together (`SPREAD`), which knows no slow plane from a fast
one.

A plane on which packets are under way and nothing is heard is probed. Probes are control packets, which go before data,
so that a queue does not look like a dead plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.rc.config import BALANCED
from mrc_testbed.hosts.rc.context import RcContext
from mrc_testbed.hosts.rc.dcqcn import PROFILES, ReactionPoint

SILENT_T = 2
"""A plane that has been silent for this number of T, with packets under way, is probed each T."""
LOST_PROBES = 3
"""Probes without an answer, the last a T old: the plane has failed."""
ANSWERED_PROBES = 3
"""Answers, one after the other, after which a failed plane is used again."""


class PlaneState(Enum):
    """What a sender takes a plane to a host for."""

    OPEN = "open"
    FAILED = "failed"
    """It gets probes only, one each two T."""


class PlaneInput(Enum):
    """What a plane to a host shows."""

    SILENT = "silent"
    """LOST_PROBES probes had no answer, or the port lost its carrier."""
    ANSWERS = "answers"
    """ANSWERED_PROBES had one."""


TRANSITIONS = {
    (PlaneState.OPEN, PlaneInput.SILENT): PlaneState.FAILED,
    (PlaneState.FAILED, PlaneInput.ANSWERS): PlaneState.OPEN,
}
"""All others change nothing."""


class PlaneUser(Protocol):
    """A QP that sends over the planes."""

    def leave(self, plane: int, now_ns: int) -> None:
        """The plane has failed: what is under way there is lost."""

    def probe_plane(self, plane: int) -> None:
        """Send a probe on it."""

    def wake(self) -> None:
        """There may be room to send."""


class Allowance:
    """What may be under way, and how fast it may be sent, over `lanes` ports."""

    __slots__ = ("_lanes", "_pacer", "free_at", "in_flight", "rate", "window")

    def __init__(self, context: RcContext, lanes: int) -> None:
        profile = PROFILES.get(context.config.congestion_control)
        line_bps = lanes * context.config.port_rate_bps
        self._lanes = lanes
        self._pacer = context.pacer
        self.window = 0
        self.in_flight = 0
        self.free_at = 0
        """When the rate will have sent what was handed over so far."""
        self.rate = None if profile is None else ReactionPoint(profile, line_bps, context.t_ns)
        self.scale(context)

    def scale(self, context: RcContext) -> None:
        """T is that of the context."""
        self.window = context.window_of(self._lanes)
        if self.rate is not None:
            self.rate.scale(context.t_ns)

    def paced(self, size: int, now_ns: int) -> None:
        """A packet was handed over: its rate decides when the next may go."""
        rate = self.rate
        if rate is not None and rate.limited:
            rate.catch_up(now_ns)
            rate.sent(size)
            cost = int(self._pacer.cost_ns(size) / self._lanes / rate.rate)
            self.free_at = max(self.free_at, now_ns) + cost if rate.limited else 0


class Plane:
    """One plane to one host."""

    __slots__ = ("allowance", "answers", "carrier", "heard_ns", "number", "probed_ns", "state", "under_way", "unheard")

    def __init__(self, number: int, allowance: Allowance) -> None:
        self.number = number
        self.allowance = allowance
        self.carrier = True
        self.state = PlaneState.OPEN
        self.under_way = 0
        self.heard_ns = 0
        """When an answer to a packet of this plane last came, or when the first was sent after all were answered."""
        self.unheard = 0
        """Probes since then."""
        self.answers = 0
        """Probes of a failed plane that were answered, one after the other."""
        self.probed_ns = 0


class Planes:
    """The planes to one host, for all QPs to it. `wake_ns` and `on_timer`: as of a timer's owner."""

    __slots__ = ("_by_number", "_context", "_last", "_planes", "_turn", "_users", "_waiting", "wake_ns")

    def __init__(self, context: RcContext, numbers: Sequence[int]) -> None:
        own = context.config.spreading == BALANCED
        shared = Allowance(context, len(numbers))
        self._context = context
        self._planes = [Plane(number, Allowance(context, 1) if own else shared) for number in numbers]
        self._by_number = {plane.number: plane for plane in self._planes}
        self._last = 0
        """The place of the plane that the last packet took."""
        self._turn = 0
        """Whose turn it is to probe: a QP that has ended at the peer would get no answer."""
        self._users: list[PlaneUser] = []
        self._waiting: list[PlaneUser] = []
        self.wake_ns = NEVER

    def scale(self) -> None:
        """T is another one."""
        for plane in self._planes:
            plane.allowance.scale(self._context)

    # --- users ---

    def join(self, user: PlaneUser) -> None:
        """One more QP."""
        self._users.append(user)

    def quit(self, user: PlaneUser) -> None:
        """A QP has ended."""
        self._users = [one for one in self._users if one is not user]
        self._waiting = [one for one in self._waiting if one is not user]

    # --- sending ---

    def has_room(self) -> bool:
        """Has any plane that may be used a window that is not full?"""
        return any(plane.allowance.in_flight < plane.allowance.window for plane in self._usable())

    def wait(self, user: PlaneUser) -> None:
        """Wake this one when there may be room."""
        self._waiting.append(user)

    def _usable(self) -> list[Plane]:
        """Those that have not failed. Where all have, the tries of QPs decide what becomes of them, on all."""
        return [plane for plane in self._planes if plane.state is PlaneState.OPEN] or self._planes

    def free_at(self) -> int:
        """When the next packet may go at the earliest, a time past for now; NEVER if no window has room."""
        return min(
            (self._plane_free_at(p) for p in self._usable() if p.allowance.in_flight < p.allowance.window),
            default=NEVER,
        )

    def _plane_free_at(self, plane: Plane) -> int:
        pacer, free_at = self._context.pacer, plane.allowance.free_at
        ready_at = pacer.ready_at(plane.number)
        return max(ready_at, free_at - pacer.burst_ns) if free_at else ready_at

    def choose(self, now_ns: int) -> int:
        """The plane of the next packet, by its number: of those that may be given one now that whose port has the
        shortest queue; they take turns where none is shorter. Only when `free_at` is not later than now."""
        pacer, best, least = self._context.pacer, -1, NEVER
        count = len(self._planes)
        usable = self._usable()
        for turn in range(self._last + 1, self._last + 1 + count):
            plane = self._planes[turn % count]
            allowance = plane.allowance
            if plane not in usable or allowance.in_flight >= allowance.window or self._plane_free_at(plane) > now_ns:
                continue
            queued = max(pacer.ready_at(plane.number) + pacer.burst_ns - now_ns, 0)
            if queued < least:
                best, least = turn % count, queued
        self._last = best
        return self._planes[best].number

    def took(self, number: int, now_ns: int) -> None:
        """A data packet goes by this plane."""
        plane = self._by_number[number]
        if not plane.under_way:
            plane.heard_ns, plane.unheard = now_ns, 0
        plane.under_way += 1
        plane.allowance.in_flight += 1
        if self.wake_ns == NEVER:
            self._context.timers.arm(self, now_ns + self._context.t_ns)

    def paced(self, number: int, size: int, now_ns: int) -> None:
        """It had this size: the rate decides when the next may go."""
        self._by_number[number].allowance.paced(size, now_ns)

    # --- hearing ---

    def arrived(self, number: int, now_ns: int) -> None:
        """A data packet that was sent on this plane has arrived."""
        plane = self._by_number[number]
        plane.heard_ns, plane.unheard = now_ns, 0
        self.given_up(number)

    def given_up(self, number: int) -> None:
        """One that was sent on this plane is under way no longer."""
        plane = self._by_number[number]
        plane.under_way -= 1
        plane.allowance.in_flight -= 1
        self._let_go_on()

    def _let_go_on(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for user in waiting:
                user.wake()

    def probe_answered(self, number: int, now_ns: int) -> None:
        """A probe of this plane was answered."""
        plane = self._by_number[number]
        plane.heard_ns, plane.unheard = now_ns, 0
        if plane.state is PlaneState.FAILED:
            plane.answers += 1
            if plane.answers >= ANSWERED_PROBES:
                self._step(plane, PlaneInput.ANSWERS, now_ns)

    def notified(self, number: int, now_ns: int) -> bool:
        """A congestion notification came for what was sent on this plane; True if the rate was cut."""
        rate = self._by_number[number].allowance.rate
        return rate is not None and rate.notified(now_ns)

    def carrier(self, number: int, up: bool, now_ns: int) -> None:
        """The own port of this plane lost its carrier, or found it: then probes decide."""
        plane = self._by_number.get(number)
        if plane is not None:
            plane.carrier = up
            if not up:
                self._step(plane, PlaneInput.SILENT, now_ns)

    # --- time ---

    def on_timer(self, now_ns: int) -> int:
        """Probe what is silent, and what has failed, while there is something to send."""
        if not self._waiting and not any(plane.under_way for plane in self._planes):
            return NEVER
        for plane in self._planes:
            if plane.state is PlaneState.OPEN:
                self._watch(plane, now_ns)
            elif plane.carrier and now_ns - plane.probed_ns >= 2 * self._context.t_ns:
                if plane.unheard:
                    plane.answers = 0
                self._probe(plane, now_ns)
        return now_ns + self._context.t_ns

    def _watch(self, plane: Plane, now_ns: int) -> None:
        """One in use."""
        if not plane.under_way or now_ns - plane.heard_ns < SILENT_T * self._context.t_ns:
            return
        if plane.unheard >= LOST_PROBES:
            self._step(plane, PlaneInput.SILENT, now_ns)
        else:
            self._probe(plane, now_ns)

    def _probe(self, plane: Plane, now_ns: int) -> None:
        plane.probed_ns = now_ns
        plane.unheard += 1
        if self._users:
            self._users[self._turn % len(self._users)].probe_plane(plane.number)
            self._turn += 1

    def _step(self, plane: Plane, event: PlaneInput, now_ns: int) -> None:
        before = plane.state
        plane.state = TRANSITIONS.get((before, event), before)
        if plane.state is before:
            return
        plane.answers = plane.unheard = 0
        if plane.state is PlaneState.FAILED:
            self._context.counters.planes_left += bool(self._users)
            for user in self._users:
                user.leave(plane.number, now_ns)
        else:
            self._context.counters.planes_back += 1
        self._let_go_on()
