"""Reads capture files: pcap and pcapng, also gzipped or from a pipe. Damage becomes a note with its place, never an
exception; no block or packet is larger in memory than any tool writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.wireview.pcap import PcapReader
from mrc_testbed.testbed.wireview.pcapng import PcapngReader
from mrc_testbed.testbed.wireview.record import Record
from mrc_testbed.testbed.wireview.stream import ByteStream, Damage


class CaptureReader:
    """A capture file that can be iterated once; afterwards `damage` names what was wrong with it and where, or is
    empty. The packets before the damage are read.

    `comment`: the comment of the file itself.
    """

    def __init__(self, path: Path) -> None:
        """Raises UsageError if the file cannot be opened or is not a capture."""
        self.damage = ""
        self._stream = ByteStream(path)
        try:
            self._reader = _reader(self._stream)
        except (Damage, ValueError) as error:
            self._stream.close()
            raise UsageError(f"{path}: not a capture file (pcap or pcapng)") from error
        self.comment = self._reader.comment

    def __iter__(self) -> Iterator[Record]:
        try:
            yield from self._reader
        except Damage as damage:
            self.damage = str(damage)
        finally:
            self._stream.close()


def _reader(stream: ByteStream) -> PcapReader | PcapngReader:
    """Raises ValueError, Damage."""
    magic = stream.take(4)
    try:
        return PcapReader(stream, magic)
    except ValueError:
        return PcapngReader(stream, magic)
