"""Carries the IP packets of one host: from its device into the rings of its peers, and out of its own rings. No I/O.

A TUN device drops what finds no room in its queue, and pushes nobody back. So packets in a ring that grows long are
marked (ECN), and TCP inside slows down without a loss. Reading stops while a peer's ring is full.
A peer that acknowledges nothing for a while holds up nobody else: what is for it is dropped and counted until it
acknowledges again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mrc_testbed.hosts.common.timers import NEVER
from mrc_testbed.hosts.gateway.packets import (
    LARGEST_FRAME,
    destination,
    for_several,
    frame_bytes,
    mark_congestion,
    unreachable,
)
from mrc_testbed.hosts.gateway.ring import IncomingRing, OutgoingRing

FRAMES_A_TURN = 64
"""Read in one turn at the most."""
STUCK_RTTS = 5
"""T without an acknowledgement after which a peer no longer holds up the others."""


class IpDevice(Protocol):
    """Where IP packets of this host come from and go to."""

    def read(self, buffer: memoryview) -> int:
        """Put the next frame into `buffer`; its length, 0 if there is none."""

    def write(self, frame: memoryview) -> bool:
        """Hand a frame to the kernel; False if it refuses it."""

    def fileno(self) -> int:
        """Readable when there are frames."""


class GatewayPeer(NamedTuple):
    """Another host: its addresses, the QPs to it and from it, and their rings."""

    addresses: tuple[bytes, ...]
    qp_out: str
    qp_in: str
    outgoing: OutgoingRing
    incoming: IncomingRing


class Gateway:
    """`mark_bytes`: packets are marked while more is under way to their peer. `stuck_ns`: a peer that acknowledges
    nothing for so long holds up nobody."""

    def __init__(self, device: IpDevice, peers: Sequence[GatewayPeer], mark_bytes: int, stuck_ns: int) -> None:
        self._device = device
        self._rings = {address: peer.outgoing for peer in peers for address in peer.addresses}
        self._outgoing = {peer.qp_out: peer.outgoing for peer in peers}
        self._incoming = {peer.qp_in: peer.incoming for peer in peers}
        self._mark_bytes = mark_bytes
        self._stuck_ns = stuck_ns
        self._buffer = memoryview(bytearray(LARGEST_FRAME))
        self._held = 0
        """Length of the frame in `_buffer` that waits for room."""
        self._more = False
        """Was there something in the last turn? Then the next one looks again without being woken."""
        self._stopped = False
        self._counts = dict.fromkeys(("out", "out_bytes", "in", "in_bytes"), 0)
        self._counts |= dict.fromkeys(("marked", "unknown", "multicast", "dropped", "refused"), 0)

    # Out

    def pump(self, now_ns: int) -> None:
        """Take what has come from the device, as much as a turn may take."""
        self._more = False
        if self._stopped:
            return
        for _ in range(FRAMES_A_TURN):
            size = self._held or self._device.read(self._buffer)
            if size == 0:
                break
            self._held = 0
            if not self._send(self._buffer[:size], now_ns):
                self._held, self._more = size, False
                break
            self._more = True
        for ring in self._outgoing.values():
            ring.flush()

    def _send(self, frame: memoryview, now_ns: int) -> bool:
        """False if it has to wait."""
        address, counts = destination(frame), self._counts
        ring = self._rings.get(address)
        if ring is None:
            self._answer(frame, address)
            return True
        if ring.held_bytes > self._mark_bytes and mark_congestion(frame):
            counts["marked"] += 1
        if ring.put(frame, now_ns):
            counts["out"] += 1
            counts["out_bytes"] += len(frame)
            return True
        if now_ns - ring.progress_ns < self._stuck_ns:
            return False
        counts["dropped"] += 1
        return True

    def stop(self) -> None:
        """Read no more; what waits for room is forgotten."""
        self._stopped, self._more, self._held = True, False, 0

    def _answer(self, frame: memoryview, address: bytes) -> None:
        """To a packet for an address that nobody has."""
        if not address or for_several(address) or frame_bytes(frame) != len(frame):
            self._counts["multicast"] += 1
            return
        self._counts["unknown"] += 1
        self._device.write(memoryview(unreachable(frame)))

    @property
    def wakes_by(self) -> tuple[int, ...]:
        """The device, unless the next turn looks at it anyway, or a full ring keeps it from being read."""
        return () if self._more or self._held or self._stopped else (self._device.fileno(),)

    def next_ns(self, now_ns: int) -> int:
        """When `pump` has to be called at the latest."""
        if self._more:
            return now_ns
        if self._held:
            ring = self._rings[destination(self._buffer)]
            return ring.progress_ns + self._stuck_ns
        return NEVER

    def written(self, qp: str, now_ns: int) -> bool:
        """The oldest write on a QP is acknowledged. False if the QP is not one of the gateway's."""
        ring = self._outgoing.get(qp)
        if ring is None:
            return False
        ring.acknowledged(now_ns)
        return True

    # In

    def immediate(self, qp: str, immediate: int) -> bool:
        """A write came on a QP. False if the QP is not one of the gateway's."""
        ring = self._incoming.get(qp)
        if ring is None:
            return False
        self._hand_over(ring.take(immediate))
        return True

    def _hand_over(self, frames: memoryview) -> None:
        """Give the kernel what a peer has written."""
        counts = self._counts
        while frames:
            size = frame_bytes(frames)
            if not 0 < size <= len(frames):
                counts["refused"] += 1
                return
            if self._device.write(frames[:size]):
                counts["in"] += 1
                counts["in_bytes"] += size
            else:
                counts["refused"] += 1
            frames = frames[size:]

    def counters(self) -> dict[str, int]:
        """Frames and bytes out and in; frames marked, for nobody, for several, dropped, and refused by
        the kernel."""
        return {f"gateway_{name}": count for name, count in self._counts.items()}
