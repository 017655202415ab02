"""The comment of a capture file: run, link, windows, missing packets, and how to read it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.pcap.annotate import Annotations, moment
from mrc_testbed.testbed.pcap.index import late_words
from mrc_testbed.testbed.pcap.link_events import LinkEvent
from mrc_testbed.testbed.pcap.raw import FrameKind, Mark, RawCapture
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.units import format_size

_MADE = {
    WorldKind.KERNEL: "multicast, the kernel's own, is left out",
    WorldKind.VIRTUAL: "made in virtual time, with the headers that the kernel gives such packets",
}
_SHOWN = 30
"""Maximum number of lines for events outside the windows."""


def section_comment(
    record: RunRecord, raw: RawCapture, packets: int, outside: Sequence[LinkEvent], annotations: Annotations
) -> str:
    """Lines for people; `raw` must have been read."""
    scenario, about = record.scenario, raw.about
    start_ns = record.start_ns or 0
    lines = [
        f"mrc-testbed, scenario {scenario.name}, seed {scenario.seed}, link {about.link}",
        *([scenario.about] if scenario.about else []),
        f"Seen at {about.node} {about.port}: what leaves, when it leaves; what comes in, before a fault can lose it. "
        f"{format_size(about.snap_bytes)} are kept of each packet; {_MADE[scenario.world]}.",
        f"Captured: {_windows(raw.marks, start_ns, scenario.speed)}. Times count from the workload's start.",
        f"{packets} packets; {_lacking(raw)}",
        "Open it with the dissector (path: mrc-testbed decode --dissector). Packet comments tell the story; display "
        "filter: frame.comment",
    ]
    told = list(
        chain(annotations.homeless, (f"{moment(t_ns - start_ns, scenario.speed)}: {text}" for t_ns, text in outside))
    )
    if told:
        more = len(told) - _SHOWN
        lines += ["Beside the captured packets:", *told[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    return "\n".join(lines)


def _windows(marks: Sequence[Mark], start_ns: int, speed: int) -> str:
    return ", ".join(_spans(marks, start_ns, speed)) or "never"


def _spans(marks: Sequence[Mark], start_ns: int, speed: int) -> Iterator[str]:
    begin, unit = "", "s" if speed == 1 else "ms"
    for mark in marks:
        since_ns = mark.t_ns - start_ns
        at = f"{since_ns / 1e9:.1f}" if speed == 1 else f"{since_ns / 1e6:.3f}"
        if mark.kind is FrameKind.BEGIN:
            begin = at
        elif begin:
            yield f"{begin} to {at} {unit}"
            begin = ""
    if begin:
        yield f"{begin} {unit} to the end of the run"


def _lacking(raw: RawCapture) -> str:
    told = [f"{raw.lost} more were LOST by the capture"] if raw.lost else ["none lost by the capture"]
    if late := late_words(raw.late_ns):
        told.append(f"a window {late}")
    if any(mark.kind is FrameKind.FULL for mark in raw.marks):
        told.append(f"ENDED EARLY: {format_size(raw.about.most_bytes)} were written, as `most` allows")
    if raw.damage:
        told.append(f"the capture was CUT OFF: {raw.damage}")
    return "; ".join(told) + "."
