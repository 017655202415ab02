"""What a sender knows about every packet it has sent and not yet had acknowledged.

A ring of parallel lists indexed by `sequence number & mask`: finding a packet is one index, forgetting it costs
nothing, and nothing is ever searched or sorted. The ring is twice the PSN range, so that the record of a packet
outlives its acknowledgement by a window; late SACKs may still be judged by it.
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


class Inflight:
    """Packets `una` (first not acknowledged) up to `next` (not sent yet)."""

    __slots__ = (
        "acked_bits",
        "attempts",
        "bytes",
        "first_acked",
        "highest",
        "last_first",
        "last_retx",
        "lost",
        "mask",
        "message",
        "newest_sent_ns",
        "next",
        "order",
        "path",
        "reason",
        "sent_ns",
        "serial",
        "size",
        "state",
        "una",
    )

    def __init__(self, psn_range: int, paths: list[Path]) -> None:
        ring = 2 << (psn_range - 1).bit_length()
        self.mask = ring - 1
        self.state = [FREE] * ring
        self.sent_ns = [0] * ring
        self.size = [0] * ring
        self.attempts = [0] * ring
        """Retransmissions so far."""
        self.order = [0] * ring
        """Serial number of the latest retransmission."""
        self.path: list[Path] = [paths[0]] * ring
        self.message: list[Message] = [NO_MESSAGE] * ring
        self.reason = [LossReason.TIMEOUT] * ring
        """Why a LOST packet is taken for lost."""
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

    def send(self, message: Message, size: int, path: Path, now_ns: int) -> int:
        """Record the first transmission of the next packet; returns its sequence number."""
        seq = self.next
        slot = seq & self.mask
        self.state[slot] = OUTSTANDING
        self.sent_ns[slot] = now_ns
        self.size[slot] = size
        self.attempts[slot] = 0
        self.path[slot] = path
        self.message[slot] = message
        self.bytes += size
        self.next = seq + 1
        return seq

    def send_again(self, seq: int, path: Path, now_ns: int) -> None:
        """Record the retransmission of a LOST packet."""
        slot = seq & self.mask
        self.state[slot] = OUTSTANDING
        self.sent_ns[slot] = now_ns
        self.attempts[slot] += 1
        self.path[slot] = path
        self.order[slot] = self.serial
        self.serial += 1
        self.bytes += self.size[slot]
        self.lost -= 1

    def lose(self, seq: int, reason: LossReason) -> None:
        """OUTSTANDING -> LOST."""
        slot = seq & self.mask
        self.state[slot] = LOST
        self.reason[slot] = reason
        self.bytes -= self.size[slot]
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
        state, sizes, attempts, mask = self.state, self.size, self.attempts, self.mask
        last_first, newest = self.last_first, self.newest_sent_ns
        self.first_acked = una + (bits & -bits).bit_length() - 1
        count = 0
        remaining = bits
        while remaining:
            low = remaining & -remaining
            remaining ^= low
            seq = una + low.bit_length() - 1
            slot = seq & mask
            if state[slot] == OUTSTANDING:
                self.bytes -= sizes[slot]
            else:
                self.lost -= 1
            state[slot] = FREE
            count += 1
            if not attempts[slot]:
                index = self.path[slot].index
                if seq > last_first[index]:
                    last_first[index] = seq
                if self.sent_ns[slot] > newest:
                    newest = self.sent_ns[slot]
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
        slot = self.first_acked & self.mask
        return NEVER if self.attempts[slot] else self.sent_ns[slot]

    def arrived_by(self, seq: int, path: Path, retransmission: bool) -> None:
        """A SACK names the very attempt that triggered it: `seq` came over `path`."""
        slot = seq & self.mask
        if self.path[slot] is not path or bool(self.attempts[slot]) is not retransmission:
            return
        if retransmission:
            self.last_retx[path.index] = max(self.last_retx[path.index], self.order[slot])
        self.newest_sent_ns = max(self.newest_sent_ns, self.sent_ns[slot])

    def arrived_later(self, path: Path, sent_ns: int) -> bool:
        """Has a packet sent on `path` after `sent_ns` surely arrived? Retransmissions are not looked at."""
        seq = self.last_first[path.index]
        return seq >= 0 and self.known(seq) and self.sent_ns[seq & self.mask] > sent_ns

    def on_plane(self, plane: int) -> list[int]:
        """OUTSTANDING packets that were last sent on this plane."""
        state, path, mask = self.state, self.path, self.mask
        around = range(self.una, self.next)
        return [seq for seq in around if state[seq & mask] == OUTSTANDING and path[seq & mask].plane == plane]

    def oldest_path(self) -> Path | None:
        """The path of the oldest packet under way, None when there is none."""
        for seq in range(self.una, self.next):
            if self.state[seq & self.mask] == OUTSTANDING:
                return self.path[seq & self.mask]
        return None

    def sent_before(self, when_ns: int) -> tuple[list[int], int | None]:
        """OUTSTANDING packets last sent at `when_ns` or before, and when the oldest of the others was sent."""
        expired, oldest = [], None
        for seq in range(self.una, self.next):
            slot = seq & self.mask
            if self.state[slot] != OUTSTANDING:
                continue
            sent_ns = self.sent_ns[slot]
            if sent_ns <= when_ns:
                expired.append(seq)
            elif oldest is None or sent_ns < oldest:
                oldest = sent_ns
        return expired, oldest
