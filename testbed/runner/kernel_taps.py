"""Taps of a run on the kernel."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.tap import FLUSH_S, Tap
from mrc_testbed.testbed.runner.clocks import Clocks, both_clocks
from mrc_testbed.testbed.runner.loop import Loop


class KernelTaps:
    """See mrc_testbed.testbed.runner.captures.Taps. The loop watches the sockets of taps."""

    def __init__(self, fabric: Fabric, loop: Loop) -> None:
        self._fabric = fabric
        self._loop = loop
        self._watched: list[socket.socket] = []

    def tap(self, link: str, snap_bytes: int, ready: Callable[[], None]) -> Tap:
        """In the namespace of the port."""
        tap = self._fabric.tap(link, snap_bytes)
        self._loop.watch(tap.socket, ready)
        self._watched.append(tap.socket)
        return tap

    def flush(self) -> None:
        """Wait for the kernel."""
        if self._watched:
            time.sleep(FLUSH_S)
        for each in self._watched:
            self._loop.forget(each)
        self._watched = []

    def clocks(self) -> Clocks:
        """Those of this machine."""
        return both_clocks()
