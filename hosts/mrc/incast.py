"""What a host asks of its senders while its own ports are the bottleneck: the penalty in SACKs.

The last hop does not mark (P1 section 2.1), so the senders of an incast learn of it by delay and trims only, and
neither says who has too much: measured, the shares of 7 flows stayed apart by a factor of 10. The receiver sees all
shares. Its penalty is public (UEC 1.0 destination flow control, MRC `rcv_cwnd_pen`), how to reckon it is left to
implementations, so what follows is ours: while the queue is deeper than `GATE_T`, a flow above the equal share is
asked to give up `FAIR_GAIN` of its excess; while it is deeper than `TARGET_T`, all that have their share are asked for
less. A flow of less than a full packet a period has no share to be made room for: the end of a step is an empty
message, and the data that it met gave up half of their window to it.

The queue is measured as one-way delay over the smallest seen from the same peer. The clocks of both ends may differ,
but must not drift apart by more than a fraction of T.
"""

from __future__ import annotations

from mrc_testbed.hosts.mrc.config import PAYLOAD_BYTES, STAMP_SHIFT
from mrc_testbed.hosts.mrc.timing import UNKNOWN_T_NS

PERIOD_T = 1.5
"""Pause between two looks, T: about a round trip through the queue that is aimed at, so that each look sees what the
one before has changed. With 4 T the shares of 7 flows swing by a half."""
GATE_T = 0.35
"""Queue, T, below which nobody is asked for anything. Well below the senders' own target (0.75 T), so that the port
stays busy when one flow cannot use its share."""
TARGET_T = 0.7
"""Queue, T, above which everybody is: just below the senders' target, where they stop growing."""
FAIR_GAIN = 0.5
"""Part of a flow's excess over its share that it is asked to give up in a round trip."""
PRESS_GAIN = 0.8
"""The same for the queue's excess over its target (gamma of NSCC's own decrease)."""
BAND = 0.02
"""Flows this close below their share count as having it."""
RATE_GAIN = 0.5
"""Weight of the newest period in a flow's rate."""
IDLE_PERIODS = 4
"""Idle periods after which the rates are reset."""
FULL_SCALE = 128
MOST = 127
STEP_BACK = 0x2000
"""Largest step, in stamps, by which a new minimum may undercut the old one: 1/8 of the wrap and at least T, or what a
full packet takes longer than a short one. A larger step is a wrapped, very late sample: of a host that did nothing for
a third of a second."""
DOUBTS = 64
"""Unless this number of them comes in a row: then the smallest one was late itself, or the clocks have parted."""
UNDERCUT = 0x400
"""Data are by at most this number of stamps sooner than the fastest EV probe, which waits for nothing and is shorter.
What seems to be sooner by more was as late as stamps can tell, as behind a port that carries a sixteenth."""


class OneWayDelay:
    """Delay of data from one peer over the smallest seen, in stamps. Arithmetic is modulo 2^16, like the stamps'.

    An EV probe says what an idle path takes, whatever waits there, because it rides the control class. Where only data
    told, hosts that are late with the first packets of an incast would pass for a long path, and its queue for a short
    one: with 12 ms of 20, the shares of 7 flows stayed apart for 100 T.
    """

    __slots__ = ("_doubts", "_fastest_probe", "_smallest", "_stamp_shift", "_step_back")

    def __init__(self, stamp_shift: int = STAMP_SHIFT) -> None:
        self._stamp_shift = stamp_shift
        self._smallest: int | None = None
        self._step_back = STEP_BACK
        self._doubts = 0
        """Delays in a row that seem to be below the smallest one, by whatever."""
        self._fastest_probe: int | None = None

    def probed(self, timestamp: int, arrival_ns: int, forwarding_ns: int) -> None:
        """A probe stamped `timestamp` came; a full packet takes at most `forwarding_ns` more, and a short one less."""
        self._step_back = min(max(STEP_BACK, (forwarding_ns >> self._stamp_shift) + 1), 0x8000)
        delay = (arrival_ns >> self._stamp_shift) - timestamp & 0xFFFF
        if self._fastest_probe is None or delay - self._fastest_probe & 0xFFFF >= 0x10000 - self._step_back:
            self._fastest_probe = delay
        self.excess(timestamp, arrival_ns + forwarding_ns)

    def excess(self, timestamp: int, arrival_ns: int) -> int:
        """Of a packet stamped `timestamp` by its sender."""
        delay = (arrival_ns >> self._stamp_shift) - timestamp & 0xFFFF
        if self._smallest is None:
            self._smallest = delay
        excess = delay - self._smallest & 0xFFFF
        self._doubts = self._doubts + 1 if excess >= 0x8000 else 0
        if self._doubts == DOUBTS:
            self._fastest_probe = None
        elif excess < 0x10000 - self._step_back or self._undercuts_probes(delay):
            return excess
        self._smallest = delay
        self._doubts = 0
        return 0

    def _undercuts_probes(self, delay: int) -> bool:
        return self._fastest_probe is not None and (delay - self._fastest_probe + UNDERCUT) & 0xFFFF >= 0x8000


class Inflow:
    """One QP as its receiver's ports see it. `penalty` goes into its SACKs."""

    __slots__ = ("_before", "_delays", "_delays_sum", "known", "penalty", "rate", "received")

    def __init__(self) -> None:
        self.known = False
        self.penalty = 0
        self.received = 0
        """Bytes so far."""
        self.rate = 0.0
        """Bytes a period, smoothed."""
        self._before = 0
        self._delays = 0
        self._delays_sum = 0

    def note(self, received: int, excess: int) -> None:
        """`received` bytes have come in all, the last packet with the delay `excess`."""
        self.received = received
        self._delays += 1
        self._delays_sum += excess

    def close_period(self, rested: bool) -> float:
        """Bring `rate` up to date; returns the mean delay of the period in stamps."""
        got = self.received - self._before
        self._before = self.received
        self.penalty = 0
        smoothed = self.rate + RATE_GAIN * (got - self.rate)
        self.rate = float(got) if rested or not got or not self.rate else smoothed
        mean = self._delays_sum / self._delays if self._delays else 0.0
        self._delays = self._delays_sum = 0
        return mean


class Incast:
    """All flows into one host."""

    __slots__ = ("_due_ns", "_flows", "_payload_bytes", "_stamp_ns", "_t_ns")

    def __init__(self, t_ns: int, payload_bytes: int = PAYLOAD_BYTES, stamp_shift: int = STAMP_SHIFT) -> None:
        self._t_ns = t_ns or UNKNOWN_T_NS
        self._payload_bytes = payload_bytes
        self._stamp_ns = 1 << stamp_shift
        self._flows: list[Inflow] = []
        self._due_ns = 0

    def note(self, flow: Inflow, received: int, excess: int, now_ns: int) -> None:
        """A packet of `flow` that causes a SACK. When it is time, look at all flows.

        `excess`: its delay in stamps, 0 for one that was marked: it waited before another port."""
        if not flow.known:
            flow.known = True
            self._flows.append(flow)
        flow.note(received, excess)
        if now_ns >= self._due_ns:
            self._look(now_ns)

    def forget(self, flow: Inflow) -> None:
        """The QP of this flow has ended."""
        if flow.known:
            self._flows.remove(flow)
            flow.known = False

    def _look(self, now_ns: int) -> None:
        period_ns = int(PERIOD_T * self._t_ns)
        rested = now_ns - self._due_ns > IDLE_PERIODS * period_ns
        self._due_ns = now_ns + period_ns
        # The largest: a flow that joined a queue that never empties has never seen its smallest delay.
        stamps = max([flow.close_period(rested) for flow in self._flows])
        self._ask(
            [flow for flow in self._flows if flow.rate >= self._payload_bytes], stamps * self._stamp_ns / self._t_ns
        )

    def _ask(self, active: list[Inflow], queue_t: float) -> None:
        if len(active) < 2 or queue_t < GATE_T:
            return
        share = sum(flow.rate for flow in active) / len(active)
        press = max(PRESS_GAIN * (queue_t - TARGET_T) / queue_t, 0.0)
        for flow in active:
            wanted = max(FAIR_GAIN * (1 - share / flow.rate), 0.0)
            if press and flow.rate >= share * (1 - BAND):
                wanted = max(wanted + press, 1 / FULL_SCALE)
            flow.penalty = min(round(FULL_SCALE * wanted), MOST)
