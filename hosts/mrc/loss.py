"""Which outstanding packets a SACK proves, or makes very likely, to be lost.

The rules are ours (docs/protocol.md, "Loss and recovery").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mrc_testbed.hosts.mrc.counters import Counters
from mrc_testbed.hosts.mrc.inflight import OUTSTANDING, Inflight
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.reasons import Ignored, LossReason
from mrc_testbed.hosts.mrc.timing import Timing


class Asked(NamedTuple):
    """A reliability probe: when it was sent, or what it proves nothing of was sent R before; and on which path if it
    waited there with the data."""

    sent_ns: int
    path: Path | None


NEVER_ASKED = Asked(0, None)


class SackOrder:
    """Tells whether a SACK shows the receiver later than every SACK before it.

    SACKs take different paths and overtake each other. The receiver's byte counter grows with every new packet, so it
    orders SACKs by when they were written. Only the latest may speak of what has *not* arrived: the clear bit of an
    older one may have been set since.
    """

    __slots__ = ("_accounted", "_counters", "_latest", "_most_bytes")

    def __init__(self, most_bytes: int, counters: Counters) -> None:
        """`most_bytes`: what a peer may count for one packet."""
        self._counters = counters
        self._latest = 0
        self._accounted = 0
        """Packets that the latest SACK may not count again: acknowledged by it, or sent again before it came."""
        self._most_bytes = most_bytes

    def is_latest(self, received_units: int, flight: Inflight) -> bool:
        """Note the counter (24 bit, modular) of a SACK whose cack is the newest.

        One that is ahead by more than what was sent and not acknowledged by the latest cannot be; believed, it would
        make all that follow look old until 2 GiB have passed.
        """
        ahead = received_units - self._latest & 0xFFFFFF
        if ahead >= 1 << 23:
            return False
        packets = flight.next + flight.serial - self._accounted
        if ahead << 8 > packets * self._most_bytes + 255:
            self._counters.refuse(Ignored.COUNTS_UNSENT)
            return False
        self._latest = received_units
        self._accounted = flight.una + flight.serial
        return True


def holes(cack: int, base: int, bitmap: int, out_of_order: int, limit: int) -> Iterator[int]:
    """Sequence numbers up to `limit` that a SACK says are missing, lowest first.

    `cack` + 1 always is: cack is inclusive and the last in order. Bits outside the bitmap say nothing, unless the
    bitmap holds all the packets that the receiver counts as out of order: then all above it are missing.
    """
    first = cack + 1
    if base > first and first <= limit:
        yield first
    width = min(limit - base + 1, 64)
    if width <= 0:
        return
    clear = ~bitmap & (1 << width) - 1
    skip = first - base
    if skip > 0:
        clear = clear >> skip << skip
    while clear:
        low = clear & -clear
        clear ^= low
        yield base + low.bit_length() - 1
    if out_of_order == bitmap.bit_count():
        yield from range(max(base + 64, first), limit + 1)


def inferred(
    flight: Inflight,
    cack: int,
    base: int,
    bitmap: int,
    out_of_order: int,
    timing: Timing,
    asked: Asked,
    reinfer: bool,
) -> list[tuple[int, LossReason]]:
    """Losses shown by the latest SACK, lowest first. `asked`: the probe that it answers.
    Without `reinfer` only first attempts are looked at: a lost retransmission is left to the timer.

    (b) overtaken: same EV, same class, sent later, arrived; such packets share every queue. But a CPU may hold it, see
    timing.STALL_NS. Or it was trimmed, which is no fault of its path, and the NACK that says so comes back another way
    than the SACK. Both are waited for until something sent that much later has arrived.
    (c) reordered: something sent at least `reorder_ns` later arrived, and something `reorder_packets` above.
    Probe: the probe itself was sent at least `reorder_ns` later and arrived; or later on the same path, as in (b).
    """
    probed_ns = asked.sent_ns
    limit = flight.next - 1 if probed_ns else flight.highest
    if limit <= cack:
        return []
    found = []
    early = flight.newest_sent_ns - timing.reorder_ns
    late_ns = timing.stall_ns if timing.reorder_ns > timing.stall_ns else timing.reorder_ns
    if late_ns < timing.nack_wait_ns:
        late_ns = timing.nack_wait_ns
    overtaken = flight.newest_sent_ns - late_ns
    below = flight.highest - timing.reorder_packets
    for seq in holes(cack, base, bitmap, out_of_order, limit):
        sent = flight.at(seq)
        if sent.state != OUTSTANDING or (sent.attempts and not reinfer):
            continue
        path, sent_ns = sent.path, sent.sent_ns
        again = sent.attempts > 0
        passed = sent.order < flight.last_retx[path.index] if again else seq < flight.last_first[path.index]
        if passed and sent_ns <= overtaken:
            found.append((seq, LossReason.OVERTAKEN))
        elif sent_ns <= early and seq <= below:
            found.append((seq, LossReason.REORDERED))
        elif probed_ns and sent_ns <= probed_ns - (late_ns if path is asked.path else timing.reorder_ns):
            found.append((seq, LossReason.PROBED))
    return found
