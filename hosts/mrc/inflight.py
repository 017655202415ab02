"""What a sender knows about every packet it has sent and not yet had acknowledged.

A ring of records indexed by `sequence number & mask`: finding a packet is one index, forgetting it costs nothing, and
nothing is ever searched or sorted. The ring is twice the PSN range, so that the record of a packet outlives its
acknowledgement by a window; late SACKs may still be judged by it.
"""

from __future__ import annotations

from mrc_testbed.hosts.common.messages import NO_MESSAGE, Message
from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.reasons import LossReason

FREE = 0
OUTSTANDING = 1
LOST = 2
"""Taken for lost and not sent again yet."""


class SentPacket:
    """What is known of one packet. `size`: as it counts in the window; `attempts`: retransmissions so far; `order`:
    serial number of the latest; `reason`: why it is taken for lost, if it is."""

    __slots__ = ("attempts", "message", "order", "path", "reason", "sent_ns", "size", "state")

    def __init__(self, message: Message, path: Path) -> None:
        self.message = message
        self.path = path
        self.state = FREE
        self.sent_ns = 0
        self.size = 0
        self.attempts = 0
        self.order = 0
        self.reason = LossReason.TIMEOUT


class Inflight:
    """Packets `una` (first not acknowledged) up to `next` (not sent yet)."""

    __slots__ = (
        "_nothing",
        "_ring",
        "acked_bits",
        "bytes",
        "first_acked",
        "highest",
        "last_first",
        "last_retx",
        "lost",
        "mask",
        "newest_sent_ns",
        "next",
        "serial",
        "una",
    )

    def __init__(self, psn_range: int, paths: list[Path]) -> None:
        ring = 2 << (psn_range - 1).bit_length()
        self.mask = ring - 1
        self._nothing = SentPacket(NO_MESSAGE, paths[0])
        """In places that no packet has had yet."""
        self._ring = [self._nothing] * ring
        self.una = 0
        self.next = 0
        self.highest = -1
        self.bytes = 0
        """Counted bytes of OUTSTANDING packets."""
        self.lost = 0
        """Packets in state LOST."""
        self.serial = 0
        self.acked_bits = 0
        """Bit i: packet una + i is acknowledged (bit 0 never is)."""
        self.newest_sent_ns = 0
        """Latest send time of any packet known to have arrived."""
        self.first_acked = 0
        """The lowest packet that the latest acknowledgement made known."""
        self.last_first = [-1] * len(paths)
        """Per path: highest sequence number that surely arrived over it as a first transmission."""
        self.last_retx = [-1] * len(paths)
        """Per path: highest serial of a retransmission that surely arrived over it."""

    def at(self, seq: int) -> SentPacket:
        """The record of a packet; that of a later one, where it has left the ring."""
        return self._ring[seq & self.mask]

    def send(self, message: Message, size: int, path: Path, now_ns: int) -> int:
        """Record the first transmission of the next packet; returns its sequence number."""
        seq = self.next
        ring, place = self._ring, seq & self.mask
        sent = ring[place]
        if sent is self._nothing:
            sent = ring[place] = SentPacket(message, path)
        sent.state = OUTSTANDING
        sent.sent_ns = now_ns
        sent.size = size
        sent.attempts = 0
        sent.path = path
        sent.message = message
        self.bytes += size
        self.next = seq + 1
        return seq

    def send_again(self, seq: int, path: Path, now_ns: int) -> None:
        """Record the retransmission of a LOST packet."""
        sent = self.at(seq)
        sent.state = OUTSTANDING
        sent.sent_ns = now_ns
        sent.attempts += 1
        sent.path = path
        sent.order = self.serial
        self.serial += 1
        self.bytes += sent.size
        self.lost -= 1

    def lose(self, seq: int, reason: LossReason) -> None:
        """OUTSTANDING -> LOST."""
        sent = self.at(seq)
        sent.state = LOST
        sent.reason = reason
        self.bytes -= sent.size
        self.lost += 1

    def forget(self) -> None:
        """The QP has ended: nothing is under way or lost any more."""
        self.una = self.next
        self.bytes = self.lost = self.acked_bits = 0

    def known(self, seq: int) -> bool:
        """Was `seq` sent, and is its record still in the ring?"""
        return self.next - self.mask <= seq < self.next and seq >= 0

    def acknowledge(self, cack: int, base: int = 0, bitmap: int = 0) -> int:
        """All up to `cack`, and `base + i` for every set bit i, have arrived. Returns how many of them are new.

        A packet sent once arrived by the one path it was sent on, so it also tells about that path; one sent again
        may have arrived by any of its attempts and tells nothing.
        """
        una = self.una
        shift = base - una
        bits = bitmap << shift if shift >= 0 else bitmap >> -shift
        bits &= (1 << self.next - una) - 1
        if cack >= una:
            bits |= (1 << cack + 1 - una) - 1
        bits &= ~self.acked_bits
        if not bits:
            return 0
        ring, mask = self._ring, self.mask
        last_first, newest = self.last_first, self.newest_sent_ns
        self.first_acked = una + (bits & -bits).bit_length() - 1
        count = 0
        remaining = bits
        while remaining:
            low = remaining & -remaining
            remaining ^= low
            seq = una + low.bit_length() - 1
            sent = ring[seq & mask]
            if sent.state == OUTSTANDING:
                self.bytes -= sent.size
            else:
                self.lost -= 1
            sent.state = FREE
            count += 1
            if not sent.attempts:
                index = sent.path.index
                if seq > last_first[index]:
                    last_first[index] = seq
                if sent.sent_ns > newest:
                    newest = sent.sent_ns
        self.newest_sent_ns = newest
        if seq > self.highest:
            self.highest = seq
        self.acked_bits |= bits
        if cack >= una:
            self.acked_bits >>= cack + 1 - una
            self.una = cack + 1
        return count

    def first_acked_sent_ns(self) -> int:
        """When `first_acked` was sent, the oldest of what the acknowledgement made known; NEVER if that was twice."""
        sent = self.at(self.first_acked)
        return NEVER if sent.attempts else sent.sent_ns

    def arrived_by(self, seq: int, path: Path, retransmission: bool) -> None:
        """A SACK names the very attempt that triggered it: `seq` came over `path`."""
        sent = self.at(seq)
        if sent.path is not path or bool(sent.attempts) is not retransmission:
            return
        if retransmission:
            self.last_retx[path.index] = max(self.last_retx[path.index], sent.order)
        self.newest_sent_ns = max(self.newest_sent_ns, sent.sent_ns)

    def arrived_later(self, path: Path, sent_ns: int) -> bool:
        """Has a packet sent on `path` after `sent_ns` surely arrived? Retransmissions are not looked at."""
        seq = self.last_first[path.index]
        return seq >= 0 and self.known(seq) and self.at(seq).sent_ns > sent_ns

    def on_plane(self, plane: int) -> list[int]:
        """OUTSTANDING packets that were last sent on this plane."""
        around = ((seq, self.at(seq)) for seq in range(self.una, self.next))
        return [seq for seq, sent in around if sent.state == OUTSTANDING and sent.path.plane == plane]

    def oldest_path(self) -> Path | None:
        """The path of the oldest packet under way, None when there is none."""
        for seq in range(self.una, self.next):
            sent = self.at(seq)
            if sent.state == OUTSTANDING:
                return sent.path
        return None

    def sent_before(self, when_ns: int) -> tuple[list[int], int | None]:
        """OUTSTANDING packets last sent at `when_ns` or before, and when the oldest of the others was sent."""
        expired, oldest = [], None
        for seq in range(self.una, self.next):
            sent = self.at(seq)
            if sent.state != OUTSTANDING:
                continue
            sent_ns = sent.sent_ns
            if sent_ns <= when_ns:
                expired.append(seq)
            elif oldest is None or sent_ns < oldest:
                oldest = sent_ns
        return expired, oldest
