"""Memory that peers may write into, and the address by which they do."""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

_ADDRESS: Final = struct.Struct("!II16sQQI")


@dataclass(frozen=True)
class Address:
    """What a peer has to know to connect to a QP and to write into a region. Send it over any socket, as bytes or JSON.

    `qpn` and `psn` are 24-bit numbers of the QP, `gid` is the 16 bytes that name its host. `address`, `length` (bytes)
    and `key` are those of the region; all zero where there is none.
    """

    qpn: int
    psn: int
    gid: bytes
    address: int = 0
    length: int = 0
    key: int = 0

    def to_bytes(self) -> bytes:
        """44 bytes, in network order."""
        return _ADDRESS.pack(self.qpn, self.psn, self.gid, self.address, self.length, self.key)

    @classmethod
    def from_bytes(cls, text: bytes) -> Address:
        """Raises ValueError for anything but what `to_bytes` gave."""
        if len(text) != _ADDRESS.size:
            raise ValueError(f"an address has {_ADDRESS.size} bytes, not {len(text)}")
        return cls(*_ADDRESS.unpack(text))

    def to_json(self) -> str:
        """One line."""
        return json.dumps({**asdict(self), "gid": self.gid.hex()})

    @classmethod
    def from_json(cls, text: str | bytes) -> Address:
        """Raises ValueError for anything but what `to_json` gave."""
        try:
            fields = json.loads(text)
            return cls(**{**fields, "gid": bytes.fromhex(fields["gid"])})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an address: {text!r}") from error


class Region:
    """Registered memory of this program (`device.register`). It keeps the buffer alive, and the buffer keeps its size.

    `address` is where it begins in this process, `length` its bytes, `key` what writes from it and into it name.
    """

    def __init__(self, pinned: Pinned, key: int, forget: Callable[[int], None]) -> None:
        self.buffer, self.key, self.length = pinned.buffer, key, pinned.length
        self.address = pinned.address
        self.view = pinned.view
        """The bytes, to read and to change."""
        self._forget = forget

    def close(self) -> None:
        """Take the registration back. What a peer then writes is refused, and its QP fails."""
        key, self.key = self.key, 0
        if key:
            self._forget(key)

    def at(self, offset: int, length: int) -> int:
        """The address of `length` bytes from `offset`. Raises ValueError where they do not lie in the region."""
        if not self.key:
            raise ValueError("the region is closed")
        if offset < 0 or length < 0 or offset + length > self.length:
            raise ValueError(f"bytes {offset} to {offset + length} do not lie in a region of {self.length}")
        return self.address + offset

    def __len__(self) -> int:
        return self.length


class Pinned:
    """The bytes of a buffer, held where they are. Raises ValueError for a buffer that cannot be written into, or is
    empty or in pieces, and TypeError for what is no buffer."""

    def __init__(self, buffer: Any) -> None:
        with memoryview(buffer) as looked:
            self.length = looked.nbytes
            if looked.readonly:
                raise ValueError("a read-only buffer cannot be registered: peers write into it")
            if not looked.c_contiguous:
                raise ValueError("a buffer in pieces cannot be registered: it must be contiguous")
        if not self.length:
            raise ValueError("an empty buffer cannot be registered")
        held = (ctypes.c_char * self.length).from_buffer(buffer)
        self.buffer = buffer
        self.address = ctypes.addressof(held)
        self.view = memoryview(held).cast("B")
