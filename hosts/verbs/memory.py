"""The memory of a program, by the descriptor of its own /proc/self/mem that it sent.

It needs no right over the process, and after the end of the program reads give nothing. The kernel faults in what is
not there yet (proc(5)).
"""

from __future__ import annotations

import os

_ALL = 1 << 63
"""File offsets are signed: addresses from here on are none of a program's."""


class ProgramMemory:
    """What peers write to, and `Slice`s are read from. `descriptor` is closed by `close`. `placed`: bytes written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.placed = 0

    def write(self, address: int, data: memoryview) -> bool:
        """As `mrc_testbed.hosts.common.memory.Memory`."""
        if not data:
            return True
        try:
            written = os.pwrite(self._descriptor, data, address)
        except OSError:
            return False
        self.placed += written
        return written == len(data)

    def read(self, address: int, size: int) -> memoryview:
        """What is there: fewer bytes, or none, where memory is not mapped or the program has gone."""
        if address >= _ALL:
            return memoryview(b"")
        try:
            return memoryview(os.pread(self._descriptor, size, address))
        except OSError:
            return memoryview(b"")

    def holds(self, address: int, size: int) -> bool:
        """Are the first and the last of these bytes mapped?"""
        if address + size > _ALL:
            return False
        return not size or (len(self.read(address, 1)) == 1 and len(self.read(address + size - 1, 1)) == 1)

    def close(self) -> None:
        """The program has gone."""
        os.close(self._descriptor)
        self._descriptor = -1


class Slice:
    """The bytes of a posted write, in the program until they are sent; a `ReadableMemory`."""

    __slots__ = ("_address", "_memory", "_size")

    def __init__(self, memory: ProgramMemory, address: int, size: int) -> None:
        self._memory = memory
        self._address = address
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> memoryview:
        start, stop, _ = part.indices(self._size)
        return self._memory.read(self._address + start, stop - start)
