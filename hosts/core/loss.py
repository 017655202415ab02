"""Which outstanding packets a SACK proves, or makes very likely, to be lost (digest 3.8, 5.4)."""

from __future__ import annotations

from collections.abc import Iterator

from hosts.core.inflight import OUTSTANDING, Inflight
from hosts.core.reasons import LossReason
from hosts.core.timing import Timing


class SackOrder:
    """Tells whether a SACK shows the receiver later than every SACK before it.

    SACKs take different paths and overtake each other. The receiver's byte counter grows with every new packet, so it
    orders SACKs by when they were written. Only the latest may speak of what has *not* arrived: the clear bit of an
    older one may have been set since.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest = 0

    def is_latest(self, received_units: int) -> bool:
        """Note a SACK's counter (24 bit, modular)."""
        if (received_units - self._latest & 0xFFFFFF) >= 1 << 23:
            return False
        self._latest = received_units
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
    probe_sent_ns: int,
    reinfer: bool,
) -> list[tuple[int, LossReason]]:
    """Losses shown by the latest SACK, lowest first. `probe_sent_ns`: when the probe it answers was sent, else 0.
    Without `reinfer` only first attempts are looked at: a lost retransmission is left to the timer.

    (b) overtaken: same EV, same class, sent later, arrived. Exact, because such packets share every queue. But it may
    have been trimmed, which is no fault of its path, and the NACK that says so comes back another way than the SACK:
    it is waited for until something sent `nack_wait_ns` later has arrived.
    (c) reordered: something sent at least `reorder_ns` later arrived, and something `reorder_packets` above.
    Probe: the probe itself was sent at least `reorder_ns` later and arrived.
    """
    limit = flight.next - 1 if probe_sent_ns else flight.highest
    if limit <= cack:
        return []
    found = []
    state, sent, attempts, mask = flight.state, flight.sent_ns, flight.attempts, flight.mask
    early = flight.newest_sent_ns - timing.reorder_ns
    nack_due = flight.newest_sent_ns - timing.nack_wait_ns
    probed = probe_sent_ns - timing.reorder_ns
    below = flight.highest - timing.reorder_packets
    for seq in holes(cack, base, bitmap, out_of_order, limit):
        slot = seq & mask
        if state[slot] != OUTSTANDING or (attempts[slot] and not reinfer):
            continue
        index = flight.path[slot].index
        passed = flight.order[slot] < flight.last_retx[index] if attempts[slot] else seq < flight.last_first[index]
        if passed and sent[slot] <= nack_due:
            found.append((seq, LossReason.OVERTAKEN))
        elif sent[slot] <= early and seq <= below:
            found.append((seq, LossReason.REORDERED))
        elif sent[slot] <= probed:
            found.append((seq, LossReason.PROBED))
    return found
