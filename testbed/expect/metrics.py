"""The metrics, each declared once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from types import MappingProxyType
from typing import Any

from mrc_testbed.testbed.expect.vocabulary import By, Dimension, Job, Known, Metric, Windows

_TAIL = ("p50", "p90", "p95", "p99", "p99.9", "p100")
_SPREAD = ("min", "mean", "median", *_TAIL, "max")
_EACH = ("min", "mean", "median", "max")
_ANY = Windows.ANY
_HOST, _PAIR, _FLOW, _JOB = By.HOST, By.PAIR, By.FLOW, By.JOB
_COUNT, _TIME, _RATE = Dimension.COUNT, Dimension.TIME, Dimension.RATE
_OF_FLOWS: dict[str, Any] = {"has_clean": True, "job": Job.FLOWS, "by": _FLOW}
_OF_GREEDY: dict[str, Any] = {**_OF_FLOWS, "flows": "greedy"}
_OF_TRACE: dict[str, Any] = {**_OF_FLOWS, "flows": "trace"}
_OF_SHARES: dict[str, Any] = {**_OF_GREEDY, "steps_disturb": True}
_OF_TRAINING: dict[str, Any] = {"job": Job.TRAIN, "by": _HOST | _JOB}
_OF_SENDERS: dict[str, Any] = {"by": _HOST | _PAIR}
_OF_PATHS: dict[str, Any] = {"needs": Known.PATHS}
_OF_PATH_SENDERS: dict[str, Any] = {**_OF_SENDERS, **_OF_PATHS}
_OF_PACKETS: dict[str, Any] = {"needs": Known.PACKETS}
"""What endpoints count that see their own packets; the kernel's TCP keeps it to itself."""

_SPEED = (
    Metric("steps_done", _COUNT, "steps that every rank finished", _ANY, **_OF_TRAINING),
    Metric("step_time", _TIME, "time of a step over all ranks", _ANY, _SPREAD, has_clean=True, **_OF_TRAINING),
    Metric(
        *("goodput", _RATE, "bytes of finished steps, or delivered by flows, per time", _ANY),
        has_clean=True,
        by=_HOST | _FLOW | _JOB,
        flows="greedy",
    ),
    Metric(
        *("wait_time", _TIME, "time that a rank waited in a step for what others had to write", _ANY, _SPREAD),
        **{**_OF_TRAINING, "by": _HOST | _PAIR | _JOB, "has_clean": True, "of_receivers": True},
    ),
    Metric("flow_goodput", _RATE, "bytes delivered per time, of each flow", _ANY, _EACH, **_OF_GREEDY),
    Metric("fair_share", _COUNT, "goodput of each flow over its fair share", _ANY, _EACH, **_OF_SHARES),
    Metric(
        *("fair_after", _TIME, "from a change until all flows are within 10 % of their fair shares", Windows.EVENTS),
        **{**_OF_SHARES, "has_clean": False, "stats": _TAIL, "zero": "at once"},
    ),
    Metric(
        *("balance", _COUNT, "the least of these shares over the greatest", _ANY),
        **{**_OF_SHARES, "of_several": True, "ranges": {None: (0.0, 1.0)}},
    ),
    Metric(
        *("latency", _TIME, "half the time from posting a message to its completion", _ANY, _SPREAD),
        **{**_OF_FLOWS, "flows": "latency"},
    ),
    Metric("message_time", _TIME, "from posting a message to its completion", _ANY, _SPREAD, **_OF_GREEDY),
    Metric("flow_time", _TIME, "completion time of each flow of a trace", _ANY, _SPREAD, **_OF_TRACE),
    Metric("slowdown", _COUNT, "flow_time over that of the flow alone in the idle fabric", _ANY, _SPREAD, **_OF_TRACE),
)
_NETWORK = (
    Metric(
        *("stall", _TIME, "longest time in which a QP with work outstanding delivered nothing, of each QP", _ANY),
        **{**_OF_SENDERS, "stats": ("p50", "p100"), "zero": "none"},
    ),
    Metric("wasted", _COUNT, "bytes sent over bytes delivered, less 1", _ANY),
    Metric(
        *("uplink_share", _COUNT, "load of each uplink of a switch over the mean of that switch", _ANY, ("min", "max")),
        ranges={"min": (0.0, 1.0), "max": (1.0, inf)},
    ),
    Metric("link_load", _COUNT, "bits that a link carried one way, over its rate", _ANY, _EACH),
)
_RECOVERY = (
    Metric("recovery", _TIME, "from first loss to leaving the path", Windows.FAULTS, _TAIL, **_OF_PATH_SENDERS),
    Metric(
        *("exposure", _TIME, "from the fault to the last packet sent on a path it broke", Windows.FAULTS, _TAIL),
        **_OF_PATH_SENDERS,
    ),
    Metric(
        *("goodput_back", _TIME, "until goodput is within 5 % of clean again", Windows.EVENTS, _TAIL),
        by=_HOST | _FLOW | _JOB,
        flows="greedy",
        zero="never fell",
    ),
    Metric(
        *("route_back", _TIME, "from the heal until BGP has all routes again", Windows.FAULTS, _TAIL),
        zero="none was missing",
    ),
    Metric("route_updates", _COUNT, "UPDATE messages of BGP since all routes were there"),
    Metric("evs_retired", _COUNT, "times an EV became ASSUMED_BAD", _ANY, **_OF_PATH_SENDERS),
    Metric("evs_restored", _COUNT, "times an EV left ASSUMED_BAD for use", _ANY, **_OF_PATH_SENDERS),
    Metric("unrestored_evs", _COUNT, "EVs still ASSUMED_BAD at the end", **_OF_PATH_SENDERS),
    Metric(
        *("data_on_bad_ev", _COUNT, "data packets sent on an EV that was ASSUMED_BAD or DENIED"),
        hard=True,
        by=_HOST,
        counter="data_on_bad_ev",
        **_OF_PATHS,
    ),
)
_FOUND: dict[str, Any] = {"of_mapper": True, "stats": ("p50", "p99", "p100")}
_SHARE: dict[str, Any] = {"of_mapper": True, "ranges": {None: (0.0, 1.0)}}
_MAPPER = (
    Metric("located", _TIME, "from a fault in place until the mapper accused all of it", Windows.FAULTS, **_FOUND),
    Metric("cleared", _TIME, "from its heal until the mapper accused nothing of it", Windows.FAULTS, **_FOUND),
    Metric("map_precision", _COUNT, "the part of the mapper's accusations that was right", _ANY, **_SHARE),
    Metric("map_recall", _COUNT, "the part of the faults that the mapper located before their heal", _ANY, **_SHARE),
    Metric("falsely_accused", _COUNT, "accusations of what was whole", _ANY, of_mapper=True),
)
_PROGRAMS = (
    Metric("programs_failed", _COUNT, "programs of the user that did not end with 0 by themselves", **_OF_TRAINING),
    Metric("program_time", _TIME, "how long each program of the user ran", Windows.RUN, _SPREAD, **_OF_TRAINING),
)
_COUNTS = (
    Metric("qp_errors", _COUNT, "queue pairs that went to ERROR", _ANY, **_OF_SENDERS),
    Metric(
        *("job_died", _COUNT, "1 if a QP went to ERROR before its job or flow was done, else 0"),
        by=_HOST | _FLOW | _JOB,
        ranges={None: (0.0, 1.0)},
    ),
    Metric(
        "died_at", _TIME, "when the first of these QPs did, from the start of the workload", by=_HOST | _FLOW | _JOB
    ),
    Metric(
        *("unfinished", _COUNT, "ranks that did not finish all steps, and flows that did not end"),
        by=_HOST | _FLOW | _JOB,
    ),
    Metric(
        *("bytes_wrong", Dimension.BYTES, "bytes that differ from what was sent", _ANY),
        hard=True,
        by=_HOST | _FLOW | _JOB,
    ),
    Metric("packets_lost", _COUNT, "data packets that senders declared lost", _ANY, **_OF_PATH_SENDERS),
    Metric("lost_per_qp", _COUNT, "packets lost, of each QP that sent data", _ANY, _EACH, **_OF_PATH_SENDERS),
    Metric(
        "retransmissions", _COUNT, "data packets sent again, for any reason", _ANY, by=_HOST, counter="retransmitted"
    ),
    Metric(
        *("out_of_order", _COUNT, "data packets that came after one of a higher PSN, over all that came"),
        by=_HOST,
        ranges={None: (0.0, 1.0)},
        **_OF_PACKETS,
    ),
    Metric(
        "timeouts", _COUNT, "times a retransmission timer ran out", _ANY, by=_HOST, counter="timeouts", **_OF_PACKETS
    ),
    Metric("nacks", _COUNT, "NACKs that senders received", _ANY, by=_HOST, counter="nacks_received", **_OF_PACKETS),
    Metric("trims", _COUNT, "packets that arrived trimmed", _ANY, by=_HOST, counter="trimmed_received", **_OF_PATHS),
    Metric(
        "ecn_skips",
        _COUNT,
        "times an EV was set aside because of ECN",
        _ANY,
        by=_HOST,
        counter="evs_skipped",
        **_OF_PATHS,
    ),
    Metric("marks", _COUNT, "packets that the ports of switches marked with ECN"),
    Metric("queue_drops", _COUNT, "packets dropped by the queues of all ports"),
    Metric("pauses", _COUNT, "times that a port was paused (PFC), all ports together"),
    Metric("paused", _TIME, "for how long each port was paused in all (PFC)", Windows.RUN, _EACH, zero="never"),
)
METRICS: Mapping[str, Metric] = MappingProxyType(
    {metric.name: metric for metric in (*_COUNTS, *_SPEED, *_PROGRAMS, *_NETWORK, *_RECOVERY, *_MAPPER)}
)
"""Ours; `mrc_testbed.testbed.checks` computes those without a counter."""

PROGRAM = "program."
"""How the name of a figure begins that programs print."""


def program_metric(figure: str) -> Metric:
    """What `metric` of programs gives: the values of one figure, in order of time."""
    about = f"{figure} as programs print it"
    stats = ("last", *_SPREAD)
    anything: dict[str | None, tuple[float, float]] = {None: (-inf, inf)}
    return Metric(f"{PROGRAM}{figure}", _COUNT, about, _ANY, stats, has_clean=True, ranges=anything, **_OF_TRAINING)


_OF_PLUGINS: ContextVar[Mapping[str, Metric]] = ContextVar("metrics of plugins", default=MappingProxyType({}))


def known_metrics() -> Mapping[str, Metric]:
    """The metrics that a text can name: METRICS, and inside `with_metrics` those of plugins."""
    return {**METRICS, **_OF_PLUGINS.get()}


@contextmanager
def with_metrics(more: Mapping[str, Metric]) -> Iterator[None]:
    """Makes these metrics available to texts parsed in the block: each scenario has its own plugins."""
    token = _OF_PLUGINS.set(more)
    try:
        yield
    finally:
        _OF_PLUGINS.reset(token)
