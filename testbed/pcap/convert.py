"""Converts the ring files of a run to commented pcapng files, also those of a killed run."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.pcap import pcapng
from mrc_testbed.testbed.pcap.annotate import Annotations, annotate
from mrc_testbed.testbed.pcap.index import FOLDER, INDEX, CaptureFile, index_text, read_index
from mrc_testbed.testbed.pcap.link_events import LinkEvent, link_events
from mrc_testbed.testbed.pcap.raw import SUFFIX, FrameKind, Mark, RawCapture
from mrc_testbed.testbed.pcap.section_comment import section_comment
from mrc_testbed.testbed.whole_files import open_new, write_whole
from mrc_testbed.topos.nodes import Link


def write_captures(record: RunRecord) -> None:
    """Convert every ring file of the run folder to `pcap/<link>.pcapng`, with an index, and remove the ring files.

    Does nothing without ring files. Raises RunError at the end for unreadable or unwritable files; such ring files
    stay.
    """
    folder = record.folder / FOLDER
    made = {each.file: each for each in read_index(record.folder)}
    wrong = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            done = _convert(path, record)
            made[done.file] = done
            write_whole(folder / INDEX, index_text(made.values()))
            path.unlink()
        except OSError as error:
            wrong.append(f"cannot make a capture of {path}: {error.strerror or error}")
        except ValueError as error:
            wrong.append(str(error))
        except (ArithmeticError, TypeError, struct.error) as error:  # times and lengths that nothing holds
            wrong.append(f"cannot make a capture of {path}: it is damaged: {error}")
    if wrong:
        raise RunError("; ".join(wrong))


def _convert(path: Path, record: RunRecord) -> CaptureFile:
    """Raises OSError, ValueError; for numbers and types that no capture has ArithmeticError, TypeError,
    struct.error."""
    raw = RawCapture(path)
    link = record.plan.link_by_name.get(raw.about.link)
    if link is None:
        raise ValueError(f"{path}: this fabric has no link {raw.about.link!r}")
    times_ns = raw.times_ns()
    inside, outside = _split(link_events(record, link), raw.marks)
    annotations = annotate(inside, times_ns, record.start_ns or 0, record.scenario.speed)
    target = path.with_suffix(".pcapng")
    with open_new(target) as file:
        file.write(pcapng.section(section_comment(record, raw, len(times_ns), outside, annotations)))
        file.writelines(_interfaces(link, raw.about.snap_bytes))
        file.writelines(_packets(raw, annotations))
    full = any(mark.kind is FrameKind.FULL for mark in raw.marks)
    commented = sum(map(len, annotations.at.values()))
    size = target.stat().st_size
    return CaptureFile(target.name, link.name, len(times_ns), size, raw.lost, full, commented, raw.damage, raw.late_ns)


def _split(events: Sequence[LinkEvent], marks: Sequence[Mark]) -> tuple[list[LinkEvent], list[LinkEvent]]:
    """Events inside a captured window, and the others."""
    begins = [mark.t_ns for mark in marks if mark.kind is FrameKind.BEGIN]
    ends = [mark.t_ns for mark in marks if mark.kind is not FrameKind.BEGIN]
    windows = [(begin, min((end for end in ends if end >= begin), default=inf)) for begin in begins]
    halves: tuple[list[LinkEvent], list[LinkEvent]] = ([], [])
    for event in events:
        halves[not any(begin <= event.t_ns <= end for begin, end in windows)].append(event)
    return halves


def _interfaces(link: Link, snap_bytes: int) -> Iterator[bytes]:
    """One per direction, so that a packet list can show it: number 0 away from the hosts, 1 towards them."""
    near, far = link.near, link.far
    at = f"seen at {near.node} {near.name}"
    yield pcapng.interface(f"{near.node}->{far.node}", f"{link.name}, away from the hosts, {at}", snap_bytes)
    yield pcapng.interface(f"{far.node}->{near.node}", f"{link.name}, towards the hosts, {at}", snap_bytes)


def _packets(raw: RawCapture, annotations: Annotations) -> Iterator[bytes]:
    counts, last_ns = [0, 0], 0
    for number, (_, lost, (wall_ns, outgoing, wire_bytes, frame)) in enumerate(raw):
        side = 0 if outgoing else 1
        counts[side] += 1
        last_ns = wall_ns
        direction = pcapng.OUTBOUND if outgoing else pcapng.INBOUND
        yield pcapng.packet(side, wall_ns, frame, wire_bytes, direction, annotations.at.get(number, ()), lost)
    # Both directions share a ring, so its losses are reported once.
    yield pcapng.statistics(0, last_ns, counts[0], raw.lost)
    yield pcapng.statistics(1, last_ns, counts[1], 0)
