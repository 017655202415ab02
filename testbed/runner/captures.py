"""Captures during a run: taps that listen in their windows, and ring files that take the captured blocks.

The kernel fills the rings; there is no work per packet. After the run `testbed.pcap` converts them to pcapng.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import IO

from testbed.fabric.fabric import Fabric
from testbed.fabric.tap import FLUSH_S
from testbed.pcap.index import FOLDER
from testbed.pcap.raw import About, FrameKind, frame_header, head, raw_name
from testbed.rundir.recorder import Recorder
from testbed.runner.clocks import both_clocks
from testbed.runner.loop import Loop
from testbed.scenario.captures import LinkCapture


class Captures:
    """All taps of a run, created before the measured part; `schedule` sets their windows."""

    def __init__(self, wanted: Iterable[LinkCapture], fabric: Fabric, loop: Loop, recorder: Recorder) -> None:
        """Raises FabricError, RunError."""
        self._loop = loop
        self._links = [_LinkTap(each, fabric, recorder) for each in wanted]
        for tap in self._links:
            loop.watch(tap.socket, tap.drain)

    def schedule(self, start_ns: int) -> None:
        """Set the windows, relative to the start of the workload."""
        for tap in self._links:
            for window in tap.wanted.windows:
                self._loop.at(start_ns + window.begin_ns, tap.begin)
                self._loop.at(start_ns + window.end_ns, tap.end)

    def finish(self) -> None:
        """Stop all taps and write the remaining blocks. Raises RunError."""
        for tap in self._links:
            tap.end()
        if self._links:
            time.sleep(FLUSH_S)
        for tap in self._links:
            self._loop.forget(tap.socket)
            tap.close()
        self._links = []


class _LinkTap:
    """One link, captured at its end nearer to the hosts, which stays up when the link is cut."""

    def __init__(self, wanted: LinkCapture, fabric: Fabric, recorder: Recorder) -> None:
        self.wanted = wanted
        self._recorder = recorder
        self._tap = fabric.tap(wanted.link, wanted.snap_bytes)
        self.socket = self._tap.socket
        self._listens = False
        self._full = False
        self._file: IO[bytes] = recorder.binary(f"{FOLDER}/{raw_name(wanted.link)}")
        port = self._tap.port
        self._written = 0
        self._write(head(About(wanted.link, port.node, port.name, wanted.snap_bytes, wanted.most_bytes)))

    def begin(self) -> None:
        """Begin a window: packets are taken from now on."""
        if not self._full:
            self._tap.listen()
            self._mark(FrameKind.BEGIN)
            self._listens = True

    def end(self) -> None:
        """Stop capturing; blocks in progress are still written."""
        if self._listens:
            self._tap.mute()
            self._mark(FrameKind.END)
            self._listens = False

    def drain(self) -> None:
        """Write the blocks that the kernel has released."""
        for block in self._tap.blocks():
            if not self._full and self._written + len(block) > self.wanted.most_bytes:
                self._tap.mute()
                self._mark(FrameKind.FULL)
                self._full, self._listens = True, False
            if not self._full:
                self._write(frame_header(FrameKind.BLOCK, len(block), self._tap.lost(), both_clocks()), block)

    def close(self) -> None:
        """Write the last blocks and close the socket."""
        self.drain()
        self._file.close()
        self._tap.close()

    def _mark(self, kind: FrameKind) -> None:
        self._write(frame_header(kind, 0, self._tap.lost(), both_clocks()))

    def _write(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            self._recorder.append(self._file, part)
            self._written += len(part)
