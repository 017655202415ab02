"""Ports of one connection of a library that bears the loss of one of them: the state table and its clocks, pure.

After NCCL's net_ib (src/transport/net_ib/p2p_resiliency.cc and _recovery.cc). Times are those of its defaults, in real
seconds: no round trip scales them. Where a scenario runs faster than written they are shorter, as `roce.timeout` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.common.transitions import step

MS = 1_000_000
ANSWER = 0x1234
"""Immediate of both ends' last words in recovery (NCCL)."""


class RcPortState(Enum):
    """May a port carry data of this connection?"""

    OK = "OK"
    RECOVERING = "RECOVERING"
    """Its work goes on over another port, and it is asked whether it is back."""
    HOLDING = "HOLDING"
    """The only port there is: everything waits for a while, then is done once again."""
    LOST = "LOST"
    """It is not asked any more, or never was."""


class RcPortInput(Enum):
    """What moves a port."""

    FAILED = "failed, recovery off"
    FAILED_FOR_NOW = "failed, recovery on"
    HELD = "failed, the only one"
    RETURNED = "answers again"
    GIVEN_UP = "given up"


PORT_STATES: dict[tuple[RcPortState, RcPortInput], RcPortState] = {
    (RcPortState.OK, RcPortInput.FAILED): RcPortState.LOST,
    (RcPortState.OK, RcPortInput.FAILED_FOR_NOW): RcPortState.RECOVERING,
    (RcPortState.OK, RcPortInput.HELD): RcPortState.HOLDING,
    (RcPortState.RECOVERING, RcPortInput.FAILED_FOR_NOW): RcPortState.RECOVERING,
    (RcPortState.RECOVERING, RcPortInput.RETURNED): RcPortState.OK,
    (RcPortState.RECOVERING, RcPortInput.GIVEN_UP): RcPortState.LOST,
    (RcPortState.HOLDING, RcPortInput.RETURNED): RcPortState.OK,
}


class RcPortTable:
    """The ports of one connection. At most one is not OK: another failure is the end of the connection."""

    __slots__ = ("states",)

    def __init__(self, ports: int) -> None:
        self.states = [RcPortState.OK] * ports

    def move(self, port: int, event: RcPortInput) -> bool:
        """Take the table's step. False, and nothing has changed, where there is none or another port is not OK: the
        connection cannot go on."""
        new = step(PORT_STATES, self.states[port], event)
        if new is None or (event is not RcPortInput.RETURNED and self._other_failed(port)):
            return False
        self.states[port] = new
        return True

    def _other_failed(self, port: int) -> bool:
        return any(state is not RcPortState.OK for other, state in enumerate(self.states) if other != port)

    def carrier_of(self, port: int) -> int:
        """The port that carries what `port` would: itself while it is OK, else the next one that is, else itself."""
        count = len(self.states)
        turns = ((port + turn) % count for turn in range(count))
        return next((each for each in turns if self.states[each] is RcPortState.OK), port)


@dataclass(frozen=True, slots=True)
class FailoverTimes:
    """What NCCL's defaults are, in ns (`IB_RESILIENCY_PORT_...`)."""

    probe_ns: int = 10 * MS
    """From the error to the READ of the completion flags."""
    start_ns: int = 200 * MS
    """From the error to the first message on the dead port."""
    batch: int = 5
    answer_ns: int = 5000 * MS
    """What a sender waits for an answer to a batch, and a receiver for the answer to its own."""
    silence_ns: int = 4000 * MS
    """After which a receiver that hears no message counts a failure."""
    in_sequence: int = 5
    """A receiver needs more messages in sequence than that."""
    attempts: int = 5

    def faster(self, speed: int) -> FailoverTimes:
        """The same where everything is this number of times faster."""
        times = (max(ns // speed, 1) for ns in (self.probe_ns, self.start_ns, self.answer_ns, self.silence_ns))
        probe_ns, start_ns, answer_ns, silence_ns = times
        return FailoverTimes(probe_ns, start_ns, self.batch, answer_ns, silence_ns, self.in_sequence, self.attempts)


class PortAsker:
    """The sending end's part of recovery: numbered messages over the dead port, batch by batch."""

    __slots__ = ("_next", "_times", "_tried", "wake_ns")

    def __init__(self, times: FailoverTimes, now_ns: int) -> None:
        self._times = times
        self._next = 0
        self._tried = 0
        self.wake_ns = now_ns + times.start_ns

    def on_time(self, now_ns: int) -> Sequence[int] | None:
        """The messages to send now; None when the last batch has had no answer either: the port is given up."""
        if now_ns < self.wake_ns:
            return ()
        if self._tried == self._times.attempts:
            self.wake_ns = NEVER
            return None
        self._tried += 1
        self.wake_ns += self._times.answer_ns
        first, self._next = self._next, self._next + self._times.batch
        return range(first, self._next)


class PortListener:
    """The receiving end's part: counts messages in sequence, and silences. `answered`: it has sent its answer, and
    waits for the last word. It says its answer again every `start_ns` until then, as the network may have lost either
    (ours)."""

    __slots__ = ("_awaited", "_failures", "_heard_ns", "_in_sequence", "_times", "answered", "wake_ns")

    def __init__(self, times: FailoverTimes, now_ns: int) -> None:
        self._times = times
        self._awaited = 0
        self._in_sequence = 0
        self._failures = 0
        self._heard_ns: int | None = None
        self.answered = False
        self.wake_ns = now_ns + times.start_ns

    def on_message(self, number: int, now_ns: int) -> bool:
        """A message came. True when it completes the sequence: restore the QP and answer."""
        if self.answered:
            return False
        # The first of a new sequence does not count itself, as in the library.
        self._in_sequence = self._in_sequence + 1 if number == self._awaited else 0
        self._awaited = number + 1
        self._heard_ns = now_ns
        self.answered = self._in_sequence > self._times.in_sequence
        if self.answered:
            self.wake_ns = now_ns + self._times.start_ns
        return self.answered

    def on_time(self, now_ns: int) -> Sequence[int] | None:
        """The message to send now, its answer once again; None when the port is given up."""
        if now_ns < self.wake_ns:
            return ()
        limit_ns = self._times.answer_ns if self.answered else self._times.silence_ns
        if self._heard_ns is not None and now_ns < self._heard_ns + limit_ns:
            until_ns = self._heard_ns + limit_ns
            self.wake_ns = min(now_ns + self._times.start_ns, until_ns) if self.answered else until_ns
            return (ANSWER,) if self.answered else ()
        self._failures += 1
        self._heard_ns = now_ns
        if self.answered:
            self.answered, self._in_sequence = False, 0
        self.wake_ns = now_ns + self._times.silence_ns
        return () if self._failures < self._times.attempts else None


class Replay:
    """The failure of a port, until what was open on it is known to be there or is sent again. `asked`: times that the
    flags were asked for."""

    __slots__ = ("asked", "generation", "port")

    def __init__(self, port: int, generation: int) -> None:
        self.port = port
        self.generation = generation
        self.asked = 0


class RecoveryStep(Enum):
    """What follows from a message of recovery."""

    NOTHING = "nothing"
    RESTORE = "begin again with the QP, and answer"
    FOLLOW = "begin again with the QP as the peer has, answer, and use the port"
    USE = "use the port"
    REPEAT = "answer again: the port is used here, and the peer has not heard so"


class PortRecovery:
    """One end's part in the recovery of the one port that may be dead. `asks`: it is the sending end's."""

    __slots__ = ("_asker", "_asks", "_listener", "_times")

    def __init__(self, times: FailoverTimes, asks: bool) -> None:
        self._times = times
        self._asks = asks
        self._asker: PortAsker | None = None
        self._listener: PortListener | None = None

    def begin(self, now_ns: int) -> None:
        """The port has failed."""
        if self._asks:
            self._asker = PortAsker(self._times, now_ns)
        else:
            self._listener = PortListener(self._times, now_ns)

    def end(self) -> None:
        """It is back, or given up."""
        self._asker = self._listener = None

    @property
    def wake_ns(self) -> int:
        """When to call `on_time`."""
        return min((each.wake_ns for each in (self._asker, self._listener) if each is not None), default=NEVER)

    def on_time(self, now_ns: int) -> Sequence[int] | None:
        """The messages to send now; None: the port is given up."""
        if self._asker is not None:
            return self._asker.on_time(now_ns)
        return () if self._listener is None else self._listener.on_time(now_ns)

    def on_message_after(self, number: int, restored: int) -> RecoveryStep:
        """The same for a message over a port that carries data at this end."""
        repeated = self._asks and number == ANSWER and not restored
        return RecoveryStep.REPEAT if repeated else RecoveryStep.NOTHING

    def on_message(self, number: int, restored: int, now_ns: int) -> RecoveryStep:
        """The peer's message came over the dead port; `number` ANSWER: its last word. `restored`: how much oftener it
        has restored the QP than this end."""
        if self._asker is not None:
            return RecoveryStep.FOLLOW if number == ANSWER and restored > 0 else RecoveryStep.NOTHING
        if self._listener is None:
            return RecoveryStep.NOTHING
        if number == ANSWER:
            return RecoveryStep.USE if self._listener.answered and not restored else RecoveryStep.NOTHING
        return RecoveryStep.RESTORE if self._listener.on_message(number, now_ns) else RecoveryStep.NOTHING
