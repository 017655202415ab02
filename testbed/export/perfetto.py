"""A run for Perfetto (ui.perfetto.dev) and Chrome's tracing: JSON trace events. Pure.

Format: "Trace Event Format", JSON object with `traceEvents`; `ts` and `dur` in microseconds. Nodes are processes,
tracks are threads. Spans of a track are complete events (`ph: X`), which must nest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mrc_testbed.testbed.export.timeline import RUN, RunCourse, TraceMoment

_FIRST_HOST = 10


def perfetto_text(course: RunCourse, title: str) -> str:
    """The file. Times count from the begin of the run's first phase."""
    rows = list(_Tracks(course).rows())
    content = {
        "displayTimeUnit": "ms",
        "otherData": {"title": title, "left out": "; ".join(course.left_out)},
        "traceEvents": rows,
    }
    return json.dumps(content, separators=(",", ":")) + "\n"


class _Tracks:
    """Numbers of processes and threads, in order of their names."""

    def __init__(self, course: RunCourse) -> None:
        self._course = course
        marks: list[TraceMoment] = [*course.spans, *course.moments]
        nodes = {RUN, *(mark.node for mark in marks), *(point.node for point in course.curves)}
        ordered = sorted(nodes, key=lambda node: (node != RUN, len(node), node))
        self._processes = {node: 1 if node == RUN else _FIRST_HOST + place for place, node in enumerate(ordered)}
        tracks = dict.fromkeys((mark.node, mark.track) for mark in marks)
        self._threads = {key: number for number, key in enumerate(tracks, 1)}

    def rows(self) -> Iterator[dict[str, Any]]:
        """All events, names of tracks first."""
        yield from self._names()
        for span in sorted(self._course.spans, key=lambda span: (span.begin_ns, -span.end_ns)):
            where = self._where(span.node, span.track)
            times = {"ts": self._us(span.begin_ns), "dur": round((span.end_ns - span.begin_ns) / 1e3, 3)}
            yield {"ph": "X", "name": span.name, "cat": "run", **where, **times, "args": dict(span.facts)}
        for moment in self._course.moments:
            where = self._where(moment.node, moment.track)
            at = {"ts": self._us(moment.begin_ns), "s": "t"}
            yield {"ph": "i", "name": moment.name, "cat": "run", **where, **at, "args": dict(moment.facts)}
        for point in self._course.curves:
            value = {"ts": self._us(point.t_ns), "args": {"value": point.value}}
            yield {"ph": "C", "name": point.name, "pid": self._processes[point.node], **value}

    def _names(self) -> Iterator[dict[str, Any]]:
        for place, (node, number) in enumerate(self._processes.items()):
            yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": node}}
            yield {"ph": "M", "name": "process_sort_index", "pid": number, "args": {"sort_index": place}}
        for (node, track), number in self._threads.items():
            where = {"pid": self._processes[node], "tid": number}
            yield {"ph": "M", "name": "thread_name", **where, "args": {"name": track}}
            yield {"ph": "M", "name": "thread_sort_index", **where, "args": {"sort_index": number}}

    def _where(self, node: str, track: str) -> dict[str, int]:
        return {"pid": self._processes[node], "tid": self._threads[node, track]}

    def _us(self, t_ns: int) -> float:
        return round((t_ns - self._course.begin_ns) / 1e3, 3)
