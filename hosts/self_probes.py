"""Probes of a host to itself: which one leaves when, which came back, and what that says of a period.

Sans-IO: no socket, no clock. Targets are numbers; who sends knows what each of them is. Every target is probed once in
a round, the probes of a round are spread evenly over the period, and each round has an order of its own, so that no
target always meets what happens in step with the period.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final, NamedTuple

from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.common.timers import NEVER

PROBE_PORT: Final = 4792
"""UDP port of probes, source and destination: the next one after that of RoCEv2."""
PROBE: Final = struct.Struct(">8sQII")
"""Payload of a probe: a mark, its sequence number, its target, 0."""
MARK: Final = b"mrcprobe"
PARTS: Final = 2
"""Of a round, which are told one by one: news is no older than that."""
PROBE_LABEL: Final = 0xFF
"""Flow label of probes. EVs have their way there, and this is none that a fabric has."""


def probe_payload(sequence: int, target: int) -> bytes:
    """What a probe carries."""
    return PROBE.pack(MARK, sequence, target, 0)


def sequence_of(payload: bytes) -> int | None:
    """The sequence number of a probe; None for what is no probe."""
    if len(payload) != PROBE.size:
        return None
    mark, sequence, _, _ = PROBE.unpack(payload)
    return int(sequence) if mark == MARK else None


class DueProbe(NamedTuple):
    """A probe to be sent now. `sequence`: no other has it; `target`: where it goes."""

    sequence: int
    target: int


class ProbePart(NamedTuple):
    """What came of a part of a round, after all of its probes came back or were given up.

    `begin_ns`, `end_ns`: its probes left from the one time on, and the next part began at the other. `order`: its
    targets, as they were probed; `lost`: target and the time of leaving of those that did not come back. `late_ns`: by
    how much a probe left later than it was to. `rtt_ns`: smallest and largest round trip; empty when all were lost.
    """

    begin_ns: int
    end_ns: int
    order: list[int]
    lost: list[tuple[int, int]]
    late_ns: int
    rtt_ns: tuple[int, ...]


class _OpenPart:
    """A part of a round that is under way. `waiting`: its probes that are neither back nor given up."""

    def __init__(self, begin_ns: int, order: list[int]) -> None:
        self.begin_ns, self.end_ns = begin_ns, NEVER
        self.order = order
        self.sent = self.waiting = 0
        self.lost: list[tuple[int, int]] = []
        self.late_ns = 0
        self.rtts_ns: list[int] = []

    @property
    def whole(self) -> bool:
        return self.end_ns != NEVER and not self.waiting

    def result(self) -> ProbePart:
        rtts_ns = (min(self.rtts_ns), max(self.rtts_ns)) if self.rtts_ns else ()
        return ProbePart(self.begin_ns, self.end_ns, self.order, self.lost, self.late_ns, rtts_ns)


class SelfProbes:
    """Says what to send, and is told what came back. Times are integer nanoseconds of one clock that only grows."""

    def __init__(self, targets: int, period_ns: int, timeout_ns: int, seed: int, begin_ns: int) -> None:
        """`period_ns`: of a round; `timeout_ns`: a probe that is not back by then is lost. Raises ValueError for less
        than one target, or a time that is none."""
        if targets < 1 or period_ns < targets or timeout_ns < 1:
            raise ValueError("probes need a target, a time-out, and a period of at least 1 ns a target")
        self._targets, self._period_ns, self._timeout_ns = targets, period_ns, timeout_ns
        self._random = Prng(seed)
        self._sequence = 0
        self._begin_ns = begin_ns + self._random.below(max(period_ns // targets, 1))
        """Of this round. Hosts that begin together do not go on in step."""
        self._order: list[int] = []
        self._place = 0
        """In the order of this round: that of the next probe."""
        self._waiting: dict[int, tuple[int, int, _OpenPart]] = {}
        """By sequence number, the oldest first: target, time of leaving, part."""
        self._parts: deque[_OpenPart] = deque()
        self._begin_round()

    def _begin_round(self) -> None:
        self._order = list(range(self._targets))
        self._random.shuffle(self._order)
        self._place = 0
        self._begin_part()

    def _begin_part(self) -> None:
        done = self._place * PARTS // self._targets
        self._parts.append(_OpenPart(self.next_probe(), self._order[self._place : self._first_of(done + 1)]))

    def _first_of(self, part: int) -> int:
        """The place of the first probe of a part."""
        return -(-part * self._targets // PARTS)

    def next_probe(self) -> int:
        """When the next probe is to leave."""
        return self._begin_ns + self._period_ns * self._place // self._targets

    def poll_probe(self, now_ns: int) -> DueProbe | None:
        """The next probe that is due; None when there is none yet. It counts as sent.

        Who asks late by more than the time-out goes on from now, instead of sending all that is due at once.
        """
        late_ns = now_ns - self.next_probe()
        if late_ns < 0:
            return None
        if late_ns > self._timeout_ns:
            self._begin_ns += late_ns
        now = self._parts[-1]
        if not now.sent:
            now.begin_ns = self.next_probe()
        now.late_ns = max(now.late_ns, late_ns)
        probe = DueProbe(self._sequence, self._order[self._place])
        self._waiting[self._sequence] = probe.target, now_ns, now
        self._sequence += 1
        self._place += 1
        now.sent += 1
        now.waiting += 1
        if now.sent == len(now.order):
            self._end_part(now)
        return probe

    def _end_part(self, now: _OpenPart) -> None:
        now.end_ns = self.next_probe()
        if self._place == self._targets:
            self._begin_ns += self._period_ns
            self._begin_round()
        else:
            self._begin_part()

    def heard(self, sequence: int, arrival_ns: int) -> bool:
        """A probe came back. False for one that was never sent, is back already, or was given up."""
        found = self._waiting.pop(sequence, None)
        if found is None:
            return False
        _, left_ns, part = found
        part.waiting -= 1
        part.rtts_ns.append(arrival_ns - left_ns)
        return True

    def give_up(self, now_ns: int) -> None:
        """Probes that are not back in time are lost. To be called after all that has come was told to `heard`."""
        oldest_ns = now_ns - self._timeout_ns
        while self._waiting:
            sequence, (target, left_ns, part) = next(iter(self._waiting.items()))
            if left_ns > oldest_ns:
                return
            del self._waiting[sequence]
            part.waiting -= 1
            part.lost.append((target, left_ns))

    def poll_part(self) -> ProbePart | None:
        """The oldest part that is over and was not told yet."""
        return self._parts.popleft().result() if self._parts[0].whole else None

    def next_timeout(self) -> int:
        """When `give_up` has something to do, if nothing comes back until then."""
        if not self._waiting:
            return NEVER
        return next(iter(self._waiting.values()))[1] + self._timeout_ns
