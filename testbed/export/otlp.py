"""A run as an OpenTelemetry trace: the run is the root span; phases, steps, faults with their recoveries, ports and
stalls are below it; changes of EVs are events of the run. The extra `otel` has the SDK that sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.errors import MissingCapability, RunError, UsageError
from mrc_testbed.testbed.export.timeline import RUN, RunCourse, TraceSpan
from mrc_testbed.testbed.interchange.protobuf import WireError, fields
from mrc_testbed.testbed.version import NAME, install_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

MOST_EVENTS = 128
"""Of a span, as the SDK's own limit: changes of EVs beyond it are counted in `mrc.ev_changes`."""
_TIMEOUT_S = 10


def send_trace(record: RunRecord, verdict: Verdict, course: RunCourse, url: str) -> int:
    """Send the trace to an OTLP receiver over HTTP, such as `http://127.0.0.1:4318/v1/traces`. Returns how many spans
    it has. Raises UsageError for what is no address, MissingCapability without the extra, RunError if it is not taken.
    """
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--otlp {url}: no address; write for example --otlp http://127.0.0.1:4318/v1/traces")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SpanExportResult
    except ImportError:
        raise MissingCapability("--otlp needs the OpenTelemetry SDK", install_extra("otel")) from None
    spans = trace_of(record, verdict, course)
    session, answers = _session()
    exporter = OTLPSpanExporter(endpoint=url, timeout=_TIMEOUT_S, session=session)
    try:
        result = exporter.export(spans)
    except OSError as error:
        raise RunError(f"--otlp {url}: {error}") from None
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    if why := next(filter(None, map(_refusal, answers[-1:])), ""):
        raise RunError(f"--otlp {url}: the trace was not taken: {why}")
    if result is not SpanExportResult.SUCCESS:
        raise RunError(f"--otlp {url}: the trace was not taken; is an OTLP receiver for HTTP there?")
    return len(spans)


def _session() -> tuple[Any, list[Any]]:
    """A session of the library that the exporter sends by, which goes nowhere but where it was sent, and the answers
    that it got. Else it follows a redirect without the trace, and the exporter takes what is there for success."""
    session, answers = import_module("requests").Session(), []
    send = session.send

    def direct(request: Any, **options: Any) -> Any:
        answers.append(send(request, **{**options, "allow_redirects": False}))
        return answers[-1]

    session.send = direct
    return session, answers


def _refusal(answer: Any) -> str:
    """Why an answer to a trace is no success; empty where it is one, or the exporter says it."""
    if 300 <= answer.status_code < 400:
        return f"the answer {answer.status_code} leads to {answer.headers.get('Location', 'nowhere')}; send it there"
    if not answer.ok or "json" in answer.headers.get("Content-Type", ""):
        return ""
    try:
        partial = {
            one.key: one for each in fields(answer.content) if each.key == 1 for one in fields(each.content or b"")
        }
    except WireError:
        return "what answers is no OTLP receiver"
    if 1 not in partial or not partial[1].number:
        return ""
    why = partial[2].content if 2 in partial else None
    return f"{partial[1].number} spans were refused: {(why or b'no reason is given').decode(errors='replace')}"


def trace_of(record: RunRecord, verdict: Verdict, course: RunCourse) -> list[ReadableSpan]:
    """The spans, children first. Ids follow from the folder's name: the same run sent again is the same trace."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = _provider(record)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer(NAME)
    ahead_ns = _wall_ahead_ns(record.environment)
    root = tracer.start_span(
        record.folder.name, start_time=course.begin_ns + ahead_ns, attributes=_facts(record, verdict)
    )
    _add_events(root, course, ahead_ns)
    if verdict.status in (Status.PASS, Status.FAIL):
        code = trace.StatusCode.OK if verdict.status is Status.PASS else trace.StatusCode.ERROR
        root.set_status(trace.Status(code, None if code is trace.StatusCode.OK else verdict.status.value))
    whole = trace.set_span_in_context(root)
    for one in course.spans:
        span = tracer.start_span(_name(one), whole, start_time=one.begin_ns + ahead_ns, attributes=_attributes(one))
        if "error" in one.facts:
            span.set_status(trace.Status(trace.StatusCode.ERROR, str(one.facts["error"])))
        span.end(one.end_ns + ahead_ns)
    root.end(max(course.end_ns, course.begin_ns) + ahead_ns)
    return list(kept.get_finished_spans())


def _provider(record: RunRecord) -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator

    class FromName(IdGenerator):
        """Ids by hash of the folder's name and their number."""

        def __init__(self) -> None:
            self._number = 0

        def generate_trace_id(self) -> int:
            return int.from_bytes(self._next()[:16])

        def generate_span_id(self) -> int:
            return int.from_bytes(self._next()[16:24])

        def _next(self) -> bytes:
            self._number += 1
            return sha256(f"{record.folder.name} {self._number}".encode()).digest()

    resource = Resource({"service.name": NAME, "service.instance.id": record.folder.name})
    return TracerProvider(resource=resource, id_generator=FromName(), span_limits=SpanLimits(max_events=MOST_EVENTS))


def _wall_ahead_ns(environment: Mapping[str, Any]) -> int:
    """Wall time less CLOCK_MONOTONIC, as it was at the begin of the run; 0 where that is not known."""
    clocks = environment.get("clocks") or {}
    return int(clocks.get("wall_ns", 0)) - int(clocks.get("monotonic_ns", 0))


def _facts(record: RunRecord, verdict: Verdict) -> dict[str, str | int]:
    scenario = record.scenario
    return {
        "mrc.scenario": scenario.name,
        "mrc.seed": scenario.seed,
        "mrc.world": scenario.world.value,
        "mrc.transport": scenario.transport.word,
        "mrc.verdict": verdict.status.value,
    }


def _add_events(root: Any, course: RunCourse, ahead_ns: int) -> None:
    root.set_attribute("mrc.ev_changes", len(course.moments))
    for moment in course.moments[:MOST_EVENTS]:
        root.add_event(moment.name, {"host": moment.node, **moment.facts}, moment.begin_ns + ahead_ns)


def _name(span: TraceSpan) -> str:
    return span.name if span.node == RUN else f"{span.node} {span.track}: {span.name}"


def _attributes(span: TraceSpan) -> dict[str, str | int | float]:
    return {
        "mrc.node": span.node,
        "mrc.track": span.track,
        **{f"mrc.{key}": value for key, value in span.facts.items()},
    }
