"""What a virtual port has counted one way: packets and bytes by class and verdict."""

from __future__ import annotations

from mrc_testbed.testbed.switching.port_counts import CLASSES, COUNTS, PASSED, VERDICTS
from mrc_testbed.testbed.virtual.packet import CONTROL_ROW, DATA_ROW

BYTES_AT = CLASSES * VERDICTS
"""Where the bytes begin in a row of counts."""
_DATA_AT = DATA_ROW + PASSED
_CONTROL_AT = CONTROL_ROW + PASSED


class PortRow:
    """Counts of a port. What happens to nearly all packets, data or control that passes, is counted in attributes,
    which in machine code are numbers of their own; in a list each new count is a new object."""

    __slots__ = ("_control", "_control_bytes", "_data", "_data_bytes", "_others")

    def __init__(self) -> None:
        self._data = self._data_bytes = self._control = self._control_bytes = 0
        self._others = [0] * COUNTS

    def count(self, at: int, size_bytes: int) -> None:
        """One packet more. `at`: where its class and its verdict have their place in a row."""
        if at == _DATA_AT:
            self._data += 1
            self._data_bytes += size_bytes
        elif at == _CONTROL_AT:
            self._control += 1
            self._control_bytes += size_bytes
        else:
            self._others[at] += 1
            self._others[BYTES_AT + at] += size_bytes

    def row(self) -> list[int]:
        """All counts as of testbed/switching/port_counts.py: packets, and then bytes."""
        row = list(self._others)
        row[_DATA_AT], row[BYTES_AT + _DATA_AT] = self._data, self._data_bytes
        row[_CONTROL_AT], row[BYTES_AT + _CONTROL_AT] = self._control, self._control_bytes
        return row
