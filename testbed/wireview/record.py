"""One packet of a capture file."""

from __future__ import annotations

from dataclasses import dataclass

LINK_ETHERNET = 1
"""The link type of every port of the fabric (LINKTYPE_ETHERNET of the pcap format)."""
LINK_RAW, LINK_SLL, LINK_IPV6, LINK_SLL2 = 101, 113, 229, 276
"""Those of tunnels, and of `tcpdump -i any`, which older ones write as LINUX_SLL, newer ones as LINUX_SLL2."""
OF_ANY_INTERFACE = (LINK_SLL, LINK_SLL2)
MOST_PACKET_BYTES = 256 << 10
"""Of a packet that is kept: no tool writes longer ones (tcpdump, Wireshark)."""


@dataclass(slots=True)
class Record:
    """One packet of a file. `wire_bytes`: its length before the snapshot cut. `comments`: those of the file on this
    packet."""

    time_ns: int
    link_type: int
    frame: bytes
    wire_bytes: int
    comments: tuple[str, ...] = ()
