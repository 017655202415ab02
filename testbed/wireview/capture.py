"""Reads capture files: pcap and pcapng, also gzipped or from a pipe. Damage becomes a note, never an exception."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.wireview.section import section_comment

LINK_ETHERNET = 1
"""The link type of every port of the fabric (LINKTYPE_ETHERNET of the pcap format)."""

_PCAP_HEADER_BYTES = 24
_PCAP_RECORD_BYTES = 16


@dataclass(slots=True)
class Record:
    """One packet of a file. `wire_bytes`: its length before the snapshot cut. `comments`: those of the file on this
    packet."""

    time_ns: int
    link_type: int
    frame: bytes
    wire_bytes: int
    comments: tuple[str, ...] = ()


class CaptureReader:
    """A capture file that can be iterated once; afterwards `damage` names what was wrong with it, or is empty.

    `comment`: the comment of the file itself.
    """

    def __init__(self, path: Path) -> None:
        """Raises UsageError if the file cannot be opened or is not a capture."""
        self.damage = ""
        self._reader = _open(path)
        self.comment = section_comment(path)

    def __iter__(self) -> Iterator[Record]:
        log = logging.getLogger("scapy.runtime")
        log.filters.insert(0, self._note)  # before scapy's own, which lets a message through only now and then
        try:
            yield from self._records()
        # A damaged file: scapy says some of it by log, some by whatever its parsing ran into.
        except (EOFError, OSError, struct.error, KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            self.damage = self.damage or f"{type(error).__name__}: {error}"
        finally:
            log.removeFilter(self._note)
            self._reader.close()

    def _note(self, record: logging.LogRecord) -> bool:
        self.damage = self.damage or record.getMessage()
        return False

    def _records(self) -> Iterator[Record]:
        from scapy.utils import RawPcapNgReader

        return self._from_pcapng() if isinstance(self._reader, RawPcapNgReader) else self._from_pcap()

    def _from_pcap(self) -> Iterator[Record]:
        reader = self._reader
        link_type, fraction_ns, consumed = reader.linktype, 1 if reader.nano else 1000, _PCAP_HEADER_BYTES
        for frame, about in reader:
            consumed += _PCAP_RECORD_BYTES + about.caplen
            yield Record(about.sec * 1_000_000_000 + about.usec * fraction_ns, link_type, frame, about.wirelen)
        if reader.f.seekable() and reader.f.tell() != consumed:
            self.damage = "the file ends within a packet"

    def _from_pcapng(self) -> Iterator[Record]:
        for frame, about in self._reader:
            ticks = (about.tshigh or 0) << 32 | (about.tslow or 0)
            comments = tuple(text.decode(errors="replace") for text in about.comments or ())
            yield Record(ticks * 1_000_000_000 // about.tsresol, about.linktype, frame, about.wirelen, comments)


def _open(path: Path) -> Any:
    from scapy.error import Scapy_Exception
    from scapy.utils import RawPcapReader

    log = logging.getLogger("scapy.runtime")
    was = log.disabled
    log.disabled = True
    try:
        return RawPcapReader(str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (Scapy_Exception, EOFError, struct.error) as error:
        raise UsageError(f"{path}: not a capture file (pcap or pcapng)") from error
    finally:
        log.disabled = was
