"""Memory of programs: what peers may write to, by rkey, and what is read when a packet is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ReadableMemory(Protocol):
    """The bytes of a write. Memory that has gone gives fewer than were asked for."""

    def __len__(self) -> int:
        """Bytes in all."""

    def __getitem__(self, part: slice, /) -> memoryview:
        """Those of a part without a step."""


class Memory(Protocol):
    """What a peer may write to."""

    def write(self, address: int, data: memoryview) -> bool:
        """Place `data`, in ascending order; False if it cannot be placed there (unmapped, or its program has gone)."""


@dataclass(frozen=True, slots=True)
class MemoryWindow:
    """A registered region: `length` bytes from virtual address `address` on."""

    address: int
    length: int
    memory: Memory


class Domain:
    """A protection domain: the regions that the peers of its QPs may write to, by rkey."""

    __slots__ = ("windows",)

    def __init__(self) -> None:
        self.windows: dict[int, MemoryWindow] = {}

    def find(self, rkey: int, address: int, size: int) -> Memory | None:
        """The memory that `rkey` opens for these bytes; None: it does not."""
        window = self.windows.get(rkey)
        if window is None or address < window.address or address + size > window.address + window.length:
            return None
        return window.memory


NO_DOMAIN = Domain()
"""Of QPs that have one region of their own."""


@dataclass(frozen=True, slots=True)
class QpTerms:
    """What a program says of a QP when it connects it; `None`: as the endpoint has it.

    `remote_qpn` and `remote_psn`: the peer's QP and the PSN of its first packet. `mtu` in bytes, the smaller of both
    sides holds. `timeout`: 1.024 us x 2^timeout, never below the endpoint's own. `linear` and `exponential`: tries.
    `mpr` in units of 128 PSNs and `max_wimm` in writes with immediate: what this side may have open at the peer; an
    `mpr` above the endpoint's own counts as that.
    """

    remote_qpn: int
    remote_psn: int
    mtu: int
    timeout: int | None = None
    linear: int | None = None
    exponential: int | None = None
    mpr: int | None = None
    max_wimm: int | None = None
    trim_nack: bool = True
    """This side may ask for trimmed packets by NACK."""
