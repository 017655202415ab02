"""Captures during a run: taps that listen in their windows, and ring files that take the captured blocks.

Taps fill blocks by themselves; there is no work per packet here. After the run `mrc_testbed.testbed.pcap` converts them
to pcapng.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Protocol

from mrc_testbed.testbed.pcap.index import FOLDER
from mrc_testbed.testbed.pcap.raw import About, FrameKind, frame_header, head, raw_name
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.clocks import Clocks
from mrc_testbed.testbed.runner.loop import Loop
from mrc_testbed.testbed.scenario.model.captures import LinkCapture
from mrc_testbed.topos.nodes import Interface


class PortTap(Protocol):
    """A tap on one port (testbed/fabric/tap.py, testbed/virtual/tap.py). Muted at first."""

    port: Interface

    def listen(self) -> None:
        """Start capturing. Raises FabricError."""

    def mute(self) -> None:
        """Stop capturing."""

    def blocks(self) -> Iterator[memoryview]:
        """Blocks that have been released; each is valid until the next is requested."""

    def lost(self) -> int:
        """Packets that found no room since the last call."""

    def close(self) -> None:
        """No more is asked of it."""


class Taps(Protocol):
    """The taps of a world."""

    def tap(self, link: str, snap_bytes: int, ready: Callable[[], None]) -> PortTap:
        """A tap on a link, both ways, at its end nearer to the hosts, which stays up when the link is cut.

        `ready` is called when the tap has blocks. Raises FabricError.
        """

    def flush(self) -> None:
        """Returns when all that muted taps have heard is released. After that no `ready` is called."""

    def clocks(self) -> Clocks:
        """Both clocks now."""


class Captures:
    """All taps of a run, created before the measured part; `schedule` sets their windows, before the hosts are told
    when to begin."""

    def __init__(self, wanted: Iterable[LinkCapture], taps: Taps, loop: Loop, recorder: Recorder) -> None:
        """Raises FabricError, RunError."""
        self._loop = loop
        self._taps = taps
        self._links = [_LinkTap(each, taps, recorder) for each in wanted]

    def schedule(self, start_ns: int) -> None:
        """Set the windows, relative to the start of the workload, which is still to come. Those from the start on begin
        now: by a timer they would begin late where the machine is. Raises FabricError, RunError."""
        for tap in self._links:
            for window in tap.wanted.windows:
                begin_ns = start_ns + window.begin_ns
                if window.begin_ns == 0:
                    tap.begin(begin_ns)
                else:
                    self._loop.at(begin_ns, partial(tap.begin, begin_ns))
                self._loop.at(start_ns + window.end_ns, tap.end)

    def finish(self) -> None:
        """Stop all taps and write the remaining blocks. Raises RunError."""
        for tap in self._links:
            tap.end()
        self._taps.flush()
        for tap in self._links:
            tap.close()
        self._links = []


class _LinkTap:
    """One link."""

    def __init__(self, wanted: LinkCapture, taps: Taps, recorder: Recorder) -> None:
        self.wanted = wanted
        self._recorder = recorder
        self._taps = taps
        self._tap = taps.tap(wanted.link, wanted.snap_bytes, self.drain)
        self._listens = False
        self._full = False
        self._file: IO[bytes] = recorder.binary(f"{FOLDER}/{raw_name(wanted.link)}")
        port = self._tap.port
        self._written = 0
        self._write(head(About(wanted.link, port.node, port.name, wanted.snap_bytes, wanted.most_bytes)))

    def begin(self, due_ns: int) -> None:
        """Begin a window: packets are taken from now on. It is to begin at `due_ns`: the file says if that is not
        now."""
        if not self._full:
            self._tap.listen()
            now_ns, wall_ns = self._taps.clocks()
            if now_ns != due_ns:
                self._write(frame_header(FrameKind.DUE, 0, 0, (due_ns, wall_ns - (now_ns - due_ns))))
            self._mark(FrameKind.BEGIN)
            self._listens = True

    def end(self) -> None:
        """Stop capturing; blocks in progress are still written."""
        if self._listens:
            self._tap.mute()
            self._mark(FrameKind.END)
            self._listens = False

    def drain(self) -> None:
        """Write the blocks that the tap has released."""
        for block in self._tap.blocks():
            if not self._full and self._written + len(block) > self.wanted.most_bytes:
                self._tap.mute()
                self._mark(FrameKind.FULL)
                self._full, self._listens = True, False
            if not self._full:
                header = frame_header(FrameKind.BLOCK, len(block), self._tap.lost(), self._taps.clocks())
                self._write(header, block)

    def close(self) -> None:
        """Write the last blocks and close the tap."""
        self.drain()
        self._file.close()
        self._tap.close()

    def _mark(self, kind: FrameKind) -> None:
        self._write(frame_header(kind, 0, self._tap.lost(), self._taps.clocks()))

    def _write(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            self._recorder.append(self._file, part)
            self._written += len(part)
