"""Idle CPUs that do not halt: a CPU that halts between packets wakes late, with caches that others have emptied."""

from __future__ import annotations

import os
import struct
from pathlib import Path

_QUALITY_OF_SERVICE = Path("/dev/cpu_dma_latency")
_NO_LATENCY = struct.pack("i", 0)
"""Microseconds that a CPU may take to wake (Linux, Documentation/power/pm_qos_interface.rst)."""


class AwakeCpus:
    """From `begin` to `end`, or the end of this process, no idle CPU halts, where the kernel offers that."""

    def __init__(self) -> None:
        self._descriptor = -1
        self.words = "halt: this machine has no /dev/cpu_dma_latency"
        if os.access(_QUALITY_OF_SERVICE, os.W_OK):
            self.words = "stay awake while the workload runs (/dev/cpu_dma_latency)"
        elif _QUALITY_OF_SERVICE.exists():
            self.words = "halt: /dev/cpu_dma_latency may not be written"

    def begin(self) -> None:
        """Raises OSError if the kernel refuses what it offers."""
        if self._descriptor < 0 and os.access(_QUALITY_OF_SERVICE, os.W_OK):
            self._descriptor = os.open(_QUALITY_OF_SERVICE, os.O_WRONLY | os.O_CLOEXEC)
            os.write(self._descriptor, _NO_LATENCY)

    def end(self) -> None:
        """Idle CPUs halt as before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
