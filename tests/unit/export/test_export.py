"""A run for other tools: the timeline of a small run, and the file for Perfetto by the format's rules."""

from __future__ import annotations

import gzip
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.export import timeline as timeline_module
from mrc_testbed.testbed.export.perfetto import perfetto_text
from mrc_testbed.testbed.export.timeline import RUN, timeline
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario
from tests.unit.calls import Call

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"
MOST_BYTES = 4 << 20


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    out = tmp_path_factory.mktemp("export")
    outcome = run_scenario(load_scenario(SMALL, ["world=virtual"]), out, True, PatientConsole(quiet=True))
    assert outcome.folder is not None
    return load_record(outcome.folder)


def rows_of(record: RunRecord) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(perfetto_text(timeline(record), "small"))["traceEvents"]
    return rows


def test_the_run_is_on_it(record: RunRecord) -> None:
    course = timeline(record)
    names = {span.name for span in course.spans if span.node == RUN}
    assert {"run", "warm up", "step 0", "step 3", "switch-reboot p1-t1-1"} <= names
    assert [span.name for span in course.spans if span.node == "h2"] == ["not up"]
    assert {moment.name for moment in course.moments} >= {"EV retired", "EV back"}
    delivered: dict[str, float] = defaultdict(float)
    for point in course.curves:
        delivered[point.node] += point.value
    assert set(delivered) == {"h0", "h1", "h2", "h3"}
    assert all(delivered.values())
    assert not course.left_out


def test_spans_of_a_track_nest_and_all_have_names(record: RunRecord) -> None:
    rows = rows_of(record)
    named = {(row["pid"], row["tid"]) for row in rows if row["name"] == "thread_name"}
    processes = {row["pid"] for row in rows if row["name"] == "process_name"}
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        assert row["ph"] in "MXiC"
        if row["ph"] == "M":
            continue
        assert row["ts"] >= 0
        assert row["pid"] in processes
        if row["ph"] == "X":
            tracks[row["pid"], row["tid"]].append((row["ts"], row["dur"]))
    assert set(tracks) <= named
    for spans in tracks.values():
        open_: list[float] = []
        for begin, length in spans:
            assert length >= 0
            while open_ and open_[-1] <= begin + 0.001:
                open_.pop()
            assert not open_ or begin + length <= open_[-1] + 0.002, "it ends after the one that it is in"
            open_.append(begin + length)


def test_times_are_microseconds_since_the_first_phase(record: RunRecord) -> None:
    (run,) = (row for row in rows_of(record) if row["ph"] == "X" and row["name"] == "run")
    assert run["dur"] == pytest.approx((record.end_ns - (record.start_ns or 0)) / 1e3, rel=0.2)


def test_what_is_too_much_is_left_out_and_said(record: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_module, "MOST_OF_A_KIND", 10)
    monkeypatch.setattr(timeline_module, "MOST_STEPS", 3)
    monkeypatch.setattr(timeline_module, "SLOWEST", 1)
    course = timeline(replace(record))
    assert len(course.moments) == 10
    assert len(course.curves) <= 20
    assert len([span for span in course.spans if span.track.startswith("steps")]) == 1
    assert [text.split(",")[0].rpartition(" of ")[2] for text in course.left_out] == ["job-1", "EVs"]


def test_the_command_writes_it_beside_the_run(record: RunRecord, call: Call) -> None:
    ended = call("export", str(record.folder), "--to", "perfetto")
    written = record.folder / "perfetto.json"
    assert (ended.status, ended.out.strip()) == (0, str(written))
    assert written.stat().st_size < MOST_BYTES
    assert (
        json.loads(call("export", str(record.folder), "--to", "perfetto", "--file", "-").out)["displayTimeUnit"] == "ms"
    )


def test_a_file_that_cannot_be_written_is_named(record: RunRecord, call: Call, tmp_path: Path) -> None:
    ended = call("export", str(record.folder), "--to", "perfetto", "--file", str(tmp_path / "no" / "such.json"))
    assert ended.status == 2
    assert "such.json" in ended.err


ANSWERS = {
    "/v1/traces": (200, "", b""),
    "/moved": (308, "/v1/traces", b""),
    "/signed-out": (302, "https://login.example/", b""),
    "/full": (200, "", b"\x0a\x07\x08\x05\x12\x03ful"),
    "/page": (200, "", b"<html>sign in</html>"),
}
"""Status, `Location` and body by path; field 1 of the body is what was refused."""


class Receiver(BaseHTTPRequestHandler):
    """Takes traces, and reads them by the protobufs of OTLP."""

    taken: ClassVar[list[ExportTraceServiceRequest]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.taken.append(ExportTraceServiceRequest.FromString(body))
        status, location, answer = ANSWERS.get(self.path, (400, "", b""))
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[str]:
    Receiver.taken.clear()
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_trace_is_taken_and_read_by_the_protobufs(record: RunRecord, call: Call, receiver: str) -> None:
    for _ in range(2):
        ended = call("export", str(record.folder), "--otlp", f"{receiver}/v1/traces")
        assert ended.status == 0, ended.err
    first, again = Receiver.taken
    assert first == again, "the same run is the same trace"
    (resource,) = first.resource_spans
    assert "mrc-testbed" in {each.value.string_value for each in resource.resource.attributes}
    spans = [span for scope in resource.scope_spans for span in scope.spans]
    (root,) = (span for span in spans if not span.parent_span_id)
    assert root.name == record.folder.name
    assert root.status.code == Status.STATUS_CODE_OK
    assert len(root.events) == min(128, len(timeline(record).moments))
    assert all(span.parent_span_id == root.span_id for span in spans if span is not root)
    assert {"step 0", "switch-reboot p1-t1-1", "run"} <= {span.name for span in spans}
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    wall_ns = record.environment["clocks"]["wall_ns"]
    assert root.start_time_unix_nano >= wall_ns


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/moved", "the answer 308 leads to /v1/traces; send it there"),
        ("/signed-out", "the answer 302 leads to https://login.example/"),
        ("/full", "5 spans were refused: ful"),
        ("/page", "what answers is no OTLP receiver"),
    ],
)
def test_an_answer_that_takes_no_trace_is_told(
    record: RunRecord, call: Call, receiver: str, path: str, says: str
) -> None:
    ended = call("export", str(record.folder), "--otlp", f"{receiver}{path}")
    assert (ended.status, len(Receiver.taken)) == (3, 1)
    assert f"{path}: the trace was not taken: {says}" in ended.err


def test_a_receiver_that_refuses_or_is_none_is_named(record: RunRecord, call: Call, receiver: str) -> None:
    refused = call("export", str(record.folder), "--otlp", f"{receiver}/elsewhere")
    assert refused.status != 0
    assert f"--otlp {receiver}/elsewhere: the trace was not taken" in refused.err
    assert "such as" in refused.err or "is an OTLP receiver" in refused.err
    nothing = call("export", str(record.folder), "--otlp", "collector:4318")
    assert (nothing.status, "write for example" in nothing.err) == (2, True)
    assert call("export", str(record.folder)).status == 2
