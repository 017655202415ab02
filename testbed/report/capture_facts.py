"""The facts about captures in the summary and in `validate`, as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mrc_testbed.testbed.pcap.budget import most_written
from mrc_testbed.testbed.pcap.index import FOLDER, CaptureFile, late_words, read_index
from mrc_testbed.testbed.report.random_targets import MAX_NAMES_SHOWN
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.captures import CaptureWindow
from mrc_testbed.topos.units import plural, some


def capture_line(folder: Path) -> str:
    """`2 files in pcap/, 1 904 packets, 0.4 MB, none lost`, and problems; empty without captures."""
    files = read_index(folder)
    if not files:
        return ""
    packets, size = sum(each.packets for each in files), sum(each.bytes for each in files)
    lost = sum(each.lost for each in files)
    parts = [f"{plural(len(files), 'file')} in {FOLDER}/", f"{packets} packets", f"{size / 1e6:.1f} MB"]
    parts.append(f"{lost} LOST by the capture" if lost else "none lost")
    parts += [f"{each.link} {text}" for each in files for text in _lacking(each)]
    return ", ".join(parts)


def _lacking(file: CaptureFile) -> Iterator[str]:
    if late := late_words(file.late_ns):
        yield late
    if file.damage:
        yield "cut off"
    elif file.full:
        yield "ended at its size (`most`)"


def capture_lines(scenario: Scenario) -> Iterator[str]:
    """The effective captures: which links, and for how long as it is written, whatever the scale."""
    scenario = scenario.as_written
    captures = scenario.captures
    if captures:
        names = some([capture.link for capture in captures], MAX_NAMES_SHOWN)
        longest = max(captures, key=lambda capture: capture.seconds)
        times = f"{plural(len(longest.windows), 'window')}, {longest.seconds:.1f} s in all"
        if longest.windows == (CaptureWindow(0, scenario.time_limit_ns),):
            times = "the whole run"
        each = "" if len(captures) == 1 else "; the longest"
        yield f"capture: {names}{each}: {times}; {_most(scenario)}"


def _most(scenario: Scenario) -> str:
    """`at most` where `most` limits every file; how many packets there are beside data is not known before the run."""
    sizes = [most_written(capture, scenario.shape()) for capture in scenario.captures]
    limited = all(size == capture.most_bytes for size, capture in zip(sizes, scenario.captures, strict=True))
    return f"{'at most' if limited else 'about'} {sum(sizes) / 1e6:.0f} MB"
