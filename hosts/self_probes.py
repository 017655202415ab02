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


class ProbeRound(NamedTuple):
    """What came of a round, after all of its probes came back or were given up.

    `begin_ns`, `end_ns`: its probes left from the one time on, and the next round began at the other. `order`: all
    targets, as they were probed; `lost`: target and the time of leaving of those that did not come back. `late_ns`: by
    how much a probe left later than it was to. `rtt_ns`: smallest and largest round trip; empty when all were lost.
    """

    begin_ns: int
    end_ns: int
    order: list[int]
    lost: list[tuple[int, int]]
    late_ns: int
    rtt_ns: tuple[int, ...]


class _OpenRound:
    """A round under way. `waiting`: its probes that are neither back nor given up."""

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

    def result(self) -> ProbeRound:
        rtts_ns = (min(self.rtts_ns), max(self.rtts_ns)) if self.rtts_ns else ()
        return ProbeRound(self.begin_ns, self.end_ns, self.order, self.lost, self.late_ns, rtts_ns)


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
        self._waiting: dict[int, tuple[int, int, _OpenRound]] = {}
        """By sequence number, the oldest first: target, time of leaving, round."""
        self._rounds = deque([self._new_round()])

    def _new_round(self) -> _OpenRound:
        order = list(range(self._targets))
        self._random.shuffle(order)
        return _OpenRound(self._begin_ns, order)

    def _due_ns(self) -> int:
        """When the next probe is to leave."""
        return self._begin_ns + self._period_ns * self._rounds[-1].sent // self._targets

    def poll_probe(self, now_ns: int) -> DueProbe | None:
        """The next probe that is due; None when there is none yet. It counts as sent.

        Who asks late by more than the time-out goes on from now, instead of sending all that is due at once.
        """
        late_ns = now_ns - self._due_ns()
        if late_ns < 0:
            return None
        if late_ns > self._timeout_ns:
            self._begin_ns += late_ns
        now = self._rounds[-1]
        if not now.sent:
            now.begin_ns = self._begin_ns
        now.late_ns = max(now.late_ns, late_ns)
        probe = DueProbe(self._sequence, now.order[now.sent])
        self._waiting[self._sequence] = probe.target, now_ns, now
        self._sequence += 1
        now.sent += 1
        now.waiting += 1
        if now.sent == self._targets:
            now.end_ns = self._begin_ns = self._begin_ns + self._period_ns
            self._rounds.append(self._new_round())
        return probe

    def heard(self, sequence: int, arrival_ns: int) -> bool:
        """A probe came back. False for one that was never sent, is back already, or was given up."""
        found = self._waiting.pop(sequence, None)
        if found is None:
            return False
        _, left_ns, of_round = found
        of_round.waiting -= 1
        of_round.rtts_ns.append(arrival_ns - left_ns)
        return True

    def give_up(self, now_ns: int) -> None:
        """Probes that are not back in time are lost. To be called after all that has come was told to `heard`."""
        oldest_ns = now_ns - self._timeout_ns
        while self._waiting:
            sequence, (target, left_ns, of_round) = next(iter(self._waiting.items()))
            if left_ns > oldest_ns:
                return
            del self._waiting[sequence]
            of_round.waiting -= 1
            of_round.lost.append((target, left_ns))

    def poll_round(self) -> ProbeRound | None:
        """The oldest round that is over and was not told yet."""
        return self._rounds.popleft().result() if self._rounds[0].whole else None

    def next_timeout(self) -> int:
        """When `give_up` has something to do, if nothing comes back until then."""
        if not self._waiting:
            return NEVER
        return next(iter(self._waiting.values()))[1] + self._timeout_ns

    def next_probe(self) -> int:
        """When the next probe is due."""
        return self._due_ns()
