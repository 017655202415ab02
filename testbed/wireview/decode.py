"""`mrc-testbed decode`: a capture file as readable lines, and a summary."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from mrc_testbed.testbed.terminal import say
from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.line import HEADING, as_json, hosts_of, line
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.testbed.wireview.record import OF_ANY_INTERFACE, Record
from mrc_testbed.testbed.wireview.select import PacketFilter
from mrc_testbed.testbed.wireview.summary import Summary
from mrc_testbed.testbed.wireview.ways import WayCounts, ways_of

_PLUGINS = "~/.local/lib/wireshark/plugins"


def decode(path: Path, wanted: PacketFilter, limit: int | None, machine: bool, fields: bool) -> str:
    """Print at most `limit` of the `wanted` packets of `path`, then the summary of all wanted packets.

    `machine`: JSON lines; `fields`: every header field by scapy, also of refused packets. Returns what is wrong
    with the file, and where; empty if nothing is. Raises UsageError for a file that is not a capture.
    """
    capture, summary, ways = CaptureReader(path), Summary(), ways_of(path)
    counts = WayCounts(ways) if ways else None
    if capture.comment and not machine and limit != 0:
        say(f"{_as_lines(capture.comment)}\n")
    begin_ns: int | None = None
    printed = 0
    for record, packet in _packets(capture, summary, fields and not machine):
        begin_ns = record.time_ns if begin_ns is None else begin_ns
        if packet not in wanted:
            continue
        summary.add(packet)
        if counts:
            counts.add(packet, *hosts_of(packet))
        if limit is not None and printed >= limit:
            continue
        if not printed and not machine:
            say(HEADING)
        printed += 1
        say(as_json(packet, record.comments, ways) if machine else line(packet, begin_ns))
        if not machine:
            _say_all(record.comments)
        if fields and not machine:
            say(_all_fields(packet.frame))
    _finish(capture, summary, counts, printed, machine)
    return capture.damage


def dissector_path() -> Path:
    """Path of the installed Lua dissector."""
    return Path(__file__).with_name("mrc.lua")


def dissector_help() -> str:
    """Path of the dissector and how to load it."""
    path = dissector_path()
    return (
        f"{path}\n"
        f"once:      wireshark -X lua_script:{path} t1.pcap   (tshark alike)\n"
        f"for good:  mkdir -p {_PLUGINS} && ln -s {path} {_PLUGINS}\n"
        "as root:   Wireshark 4.4 and later load no Lua for root; docs/wireshark.md says what to do\n"
        "filters:   mrc.psn == 41, mrc.ev.plane == 1, mrc.rtx == 1, mrc.nack.reason == 1"
    )


def _packets(capture: CaptureReader, summary: Summary, show_refused: bool) -> Iterator[tuple[Record, Packet]]:
    """Yields MRC packets; all other frames go into the summary."""
    for record in capture:
        summary.of_any_interface |= record.link_type in OF_ANY_INTERFACE
        frame = unwrap(record)
        packet = parse(frame) if isinstance(frame, Frame) else frame
        if isinstance(packet, Packet):
            yield record, packet
        else:
            reason = summary.refuse(packet)
            if show_refused and isinstance(frame, Frame):
                say(f"not read: {reason}\n{_all_fields(frame)}")


def _finish(capture: CaptureReader, summary: Summary, counts: WayCounts | None, printed: int, machine: bool) -> None:
    if machine:
        about = {"damage": capture.damage} | ({"comment": capture.comment} if capture.comment else {})
        say(json.dumps({"summary": summary.as_dict() | about}))
        return
    hidden = summary.types.total() - printed
    if printed:
        say(f"... and {hidden} more\n" if hidden else "")
    say("\n".join([*summary.lines(), *(counts.lines() if counts else ())]))
    if capture.damage:
        say(f"the file is damaged: {capture.damage}")


def _all_fields(frame: Frame) -> str:
    from scapy.layers.inet import UDP
    from scapy.packet import Raw

    from mrc_testbed.testbed.wireview import layers

    # As the payload of a UDP header, bytes that fit no layer become raw bytes and not an error.
    datagram = UDP(bytes(UDP(dport=4791, sport=frame.source_port) / Raw(bytes(frame.payload))))
    mrc = datagram.getlayer(layers.BTH) or datagram.payload
    return str(mrc.show(dump=True))


def _as_lines(comment: str) -> str:
    """A comment, marked so that it cannot be mistaken for a packet."""
    return "\n".join(f"# {text}" for text in comment.splitlines())


def _say_all(comments: Iterable[str]) -> None:
    for comment in comments:
        say(_as_lines(comment))
