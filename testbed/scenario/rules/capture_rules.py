"""Rules about captures: links and faults must exist, packets keep their headers, windows are not empty."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.expect.reserved import ALL_FAULTS, WHOLE_RUN
from mrc_testbed.testbed.scenario.faults.selection import SelectionError
from mrc_testbed.testbed.scenario.model.captures import (
    HEADERS,
    LARGEST_SNAP_BYTES,
    LEAST_MOST_BYTES,
    LEAST_SNAP_BYTES,
    Capture,
)
from mrc_testbed.testbed.scenario.rules.fault_rules import Occurrences
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.units import format_size
from mrc_testbed.topos.plan import Plan


def capture_mistakes(file: Readable, occurrences: Occurrences, plan: Plan | None) -> Iterator[Mistake]:
    """All mistakes of `capture`; links are checked if there is a plan."""
    for index, capture in file.captures.items():
        yield from _wrong_sizes(index, capture)
        yield from _wrong_faults(index, capture, file, occurrences, plan is not None)
        if plan:
            yield from _wrong_links(index, capture, file, plan)


def _wrong_links(index: int, capture: Capture, file: Readable, plan: Plan) -> Iterator[Mistake]:
    try:
        capture.chosen(index, plan, file.scenario.seed)
    except SelectionError as error:
        for number, message in error.mistakes:
            item = (number,) if len(capture.links) > 1 else ()
            yield Mistake(("capture", index, "links", *item), message)


def _wrong_faults(
    index: int, capture: Capture, file: Readable, occurrences: Occurrences, settled: bool
) -> Iterator[Mistake]:
    known = {fault.name: number for number, fault in file.faults.items()}
    if capture.whole_run:
        return
    path = ("capture", index, "around")
    if not file.loses("faults") and not known:
        yield Mistake(path, "there is no fault to capture around; add one to `faults`, or use `around: run`")
        return
    for place, name in enumerate(capture.around):
        where = (*path, place) if len(capture.around) > 1 else path
        if name in known and settled and occurrences.get(known[name]) == ():
            yield Mistake(where, f"this seed draws no fault of {name!r}, so nothing would be captured")
        elif name not in known and not file.loses("faults"):
            hint = did_you_mean(name, [*known, ALL_FAULTS, WHOLE_RUN]) or f"; there are {', '.join(known)}"
            yield Mistake(where, f"there is no fault {name!r}{hint}")


def _wrong_sizes(index: int, capture: Capture) -> Iterator[Mistake]:
    snap, most = capture.snap_bytes, capture.most_bytes
    if snap < LEAST_SNAP_BYTES:
        fitting = [name for name, end in HEADERS.items() if end <= snap]
        holds = f"holds {', '.join(fitting)} only" if fitting else "holds no header"
        whole = f"{format_size(LEAST_SNAP_BYTES)} is the least that holds all headers"
        yield Mistake(("capture", index, "snap"), f"{format_size(snap)} cuts headers off: it {holds}; {whole}")
    if snap > LARGEST_SNAP_BYTES:
        yield Mistake(("capture", index, "snap"), f"no frame is longer than {LARGEST_SNAP_BYTES}B")
    if most < LEAST_MOST_BYTES:
        yield Mistake(("capture", index, "most"), f"must be at least {format_size(LEAST_MOST_BYTES)}")
