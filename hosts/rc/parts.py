"""Writes cut evenly over the ports of one connection, and put together again at the other end. Pure.

Each write is a request with a number, and has a part on every port, an RC write of its own with an immediate, be it
empty. That immediate says which request and part it is, and carries half of the request's own, if there is one: the
first part the lower half, the second the upper.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from mrc_testbed.hosts.rc.wire import FLAGS_BYTES

MOST_OPEN = 32
"""Requests that one end may have under way (NCCL_NET_MAX_REQUESTS)."""
ALIGN_BYTES = 128
"""Parts but the last have a multiple of it (NCCL's net_ib)."""
_NUMBER_BITS, _SLOT_BITS = 11, 4
_NUMBERS, _SLOTS = 1 << _NUMBER_BITS, 1 << _SLOT_BITS
_HALF = 16
_HALF_MASK = (1 << _HALF) - 1
_FLAGS = Struct(f">{FLAGS_BYTES // 2}H")


def parts_of(ports: int) -> int:
    """Of each request: one a port, and two at the least, so that an immediate has room."""
    return max(ports, 2)


def cut(size: int, ports: int) -> Iterator[tuple[int, int]]:
    """(begin, end) of each part of a write of `size` bytes; the last ones may be empty."""
    even = -(-size // ports)
    even += -even % ALIGN_BYTES
    return ((min(part * even, size), min((part + 1) * even, size)) for part in range(parts_of(ports)))


def label(request: int, slot: int, immediate: int | None) -> int:
    """The immediate of a part."""
    half = 0 if immediate is None or slot > 1 else immediate >> _HALF * slot & _HALF_MASK
    told = (request % _NUMBERS << _SLOT_BITS | slot) << 1 | (immediate is not None)
    return told << _HALF | half


class OpenRequest:
    """A request that is under way, or waits to be. `missing`: bit i is set while part i has not arrived for sure;
    `ports`: to which port each part was last given."""

    __slots__ = ("address", "data", "immediate", "missing", "places", "ports", "wr_id")

    def __init__(self, data: memoryview, address: int, wr_id: int, immediate: int | None, ports: int) -> None:
        self.data = data
        self.address = address
        self.wr_id = wr_id
        self.immediate = immediate
        self.places = list(cut(len(data), ports))
        self.missing = (1 << len(self.places)) - 1
        self.ports = [slot % ports for slot in range(len(self.places))]

    def part(self, slot: int) -> tuple[memoryview, int]:
        """Its bytes, and where they go."""
        begin, end = self.places[slot]
        return self.data[begin:end], self.address + begin


class ArrivedParts:
    """What has arrived of the peer's requests, the completion flags that it may READ."""

    __slots__ = ("_all", "_immediates", "_masks", "base")

    def __init__(self, ports: int) -> None:
        self._all = (1 << parts_of(ports)) - 1
        self._masks = [0] * MOST_OPEN
        self._immediates: list[int | None] = [None] * MOST_OPEN
        self.base = 0
        """The first request that is not whole."""

    def take(self, told: int) -> list[int | None] | None:
        """A part with this immediate has arrived whole. The immediates of the requests that are whole now, in their
        order; None for a part that no peer of ours can have sent now."""
        half, told = told & _HALF_MASK, told >> _HALF
        has_immediate, slot, number = told & 1, told >> 1 & _SLOTS - 1, told >> 1 + _SLOT_BITS
        ahead = (number - self.base) % _NUMBERS
        at = (self.base + ahead) % MOST_OPEN
        if ahead >= MOST_OPEN or not self._all >> slot & 1 or self._masks[at] >> slot & 1:
            return None
        self._masks[at] |= 1 << slot
        if has_immediate:
            self._immediates[at] = (self._immediates[at] or 0) | (half << _HALF * slot if slot < 2 else 0)
        return self._whole()

    def _whole(self) -> list[int | None]:
        whole = []
        while self._masks[at := self.base % MOST_OPEN] == self._all:
            whole.append(self._immediates[at])
            self._masks[at], self._immediates[at] = 0, None
            self.base += 1
        return whole

    def flags(self) -> bytes:
        """As a READ brings them: a mask for each request from `base` on, at its number modulo MOST_OPEN."""
        return _FLAGS.pack(*self._masks)


class FlagsSeen:
    """Flags that a READ has brought: `base` as of `ArrivedParts`, modulo 2^24."""

    __slots__ = ("_base", "_masks")

    def __init__(self, base: int, flags: bytes, near: int) -> None:
        """`near`: the oldest request that is open here."""
        self._base = near + ((base - near + (1 << 23)) % (1 << 24) - (1 << 23))
        self._masks: tuple[int, ...] = _FLAGS.unpack(flags)

    def arrived(self, request: int, slot: int) -> bool:
        """Is this part there?"""
        return request < self._base or bool(self._masks[request % MOST_OPEN] >> slot & 1)
