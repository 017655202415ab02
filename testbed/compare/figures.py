"""Which figures runs are compared by, in the words of the expectation language, and what one run has of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from testbed.checks.metrics import measure
from testbed.checks.question import with_bound
from testbed.checks.record import RunRecord
from testbed.checks.scale import number, usual_scale
from testbed.checks.windows import NoData
from testbed.expect import Expectation, parse_expectation
from testbed.expect.vocabulary import RTT, Dimension, Job

LESS, MORE, NEITHER = "less", "more", ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run: `text` is an expectation without its comparison, over that of `over` where there is one.

    `better`: whether LESS or MORE of it is, or NEITHER. `main`: it stands in tables that have room for few. `in_rtt`:
    counted in base RTTs of its own run. `job`: known of that kind of workload only, None for all.
    """

    key: str
    title: str
    text: str
    better: str = LESS
    main: bool = False
    over: str = ""
    in_rtt: bool = False
    job: Job | None = None

    @property
    def dimension(self) -> Dimension:
        """Of its values."""
        return Dimension.COUNT if self.over or self.in_rtt else _wanted(self.text).metric.dimension

    @property
    def counts(self) -> bool:
        """It counts things that happen: it can be 0, and a few more or less are nothing."""
        kind = _wanted(self.text).metric.dimension
        return kind in (Dimension.COUNT, Dimension.BYTES) and self.key not in _SHARES

    def shown(self, value: float, size: float | None = None) -> str:
        """A value with its unit, in that which suits `size`, or the value itself."""
        if self.in_rtt:
            return f"{number(value)} {RTT}"
        scale = usual_scale(self.dimension, value if size is None else size)
        return f"{number(value / scale.factor)} {scale.unit}".rstrip()


_STEPS, _FLOWS = Job.TRAIN, Job.FLOWS
_SHARES = ("fair_share.min", "balance")
FIGURES: tuple[Figure, ...] = (
    Figure("step_time.median clean", "step, clean median", "step_time.median clean", main=True, job=_STEPS),
    Figure("step_time.median during faults", "step, median in faults", "step_time.median during faults", job=_STEPS),
    Figure("step_time.p100 during faults", "step, P100 in faults", "step_time.p100 during faults", job=_STEPS),
    Figure("step_time.median", "step, median", "step_time.median", job=_STEPS),
    Figure("step_time.p100", "step, P100", "step_time.p100", main=True, job=_STEPS),
    Figure(
        *("step_time.p100 during faults / clean", "step, P100 in faults / clean", "step_time.p100 during faults"),
        main=True,
        over="step_time.median clean",
        job=_STEPS,
    ),
    Figure("goodput clean", "goodput, clean", "goodput clean", MORE),
    Figure("goodput during faults", "goodput in faults", "goodput during faults", MORE),
    Figure(
        *("goodput during faults / clean", "goodput in faults / clean", "goodput during faults", MORE),
        main=True,
        over="goodput clean",
    ),
    Figure("flow_goodput.min", "slowest flow", "flow_goodput.min", MORE, main=True, job=_FLOWS),
    Figure("fair_share.min", "least fair share", "fair_share.min", MORE, main=True, job=_FLOWS),
    Figure("balance", "balance of flows", "balance", MORE, job=_FLOWS),
    Figure("message_time.median", "message time, median", "message_time.median", job=_FLOWS),
    Figure("message_time.p99", "message time, P99", "message_time.p99", main=True, job=_FLOWS),
    Figure("latency.median", "latency, median", "latency.median", main=True, job=_FLOWS),
    Figure("latency.p99", "latency, P99", "latency.p99", main=True, job=_FLOWS),
    Figure("recovery.p50", "recovery, P50", "recovery.p50", main=True),
    Figure("recovery.p50 in rtt", "recovery, P50, in RTT", "recovery.p50", in_rtt=True),
    Figure("recovery.p100", "recovery, P100", "recovery.p100", main=True),
    Figure("recovery.p100 in rtt", "recovery, P100, in RTT", "recovery.p100", main=True, in_rtt=True),
    Figure("goodput_back.p100", "goodput back, P100", "goodput_back.p100"),
    Figure("evs_retired", "EVs retired", "evs_retired", NEITHER),
    Figure("packets_lost", "packets lost", "packets_lost", main=True),
    Figure("retransmissions", "retransmissions", "retransmissions", main=True),
    Figure("trims", "trims", "trims", NEITHER, main=True),
    Figure("ecn_skips", "EVs rested for ECN", "ecn_skips", NEITHER, main=True),
    Figure("nacks", "NACKs", "nacks", NEITHER),
    Figure("timeouts", "timeouts", "timeouts"),
    Figure("queue_drops", "queue drops", "queue_drops"),
    Figure("unrestored_evs", "EVs not restored", "unrestored_evs"),
    Figure("qp_errors", "QP errors", "qp_errors"),
    Figure("bytes_wrong", "wrong bytes", "bytes_wrong"),
    Figure("data_on_bad_ev", "data on bad EVs", "data_on_bad_ev"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run has of every figure: values in base units by key, and of the others why not."""

    values: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)


def measured(record: RunRecord) -> Measured:
    """Every figure that the run can give, as its expectations would have it."""
    values, lacking = {}, {}
    for figure in FIGURES:
        if not _known(figure, record):
            continue
        try:
            values[figure.key] = _value(figure, record)
        except NoData as reason:
            lacking[figure.key] = str(reason)
    return Measured(values, lacking)


def _known(figure: Figure, record: RunRecord) -> bool:
    job = record.scenario.job
    return {_STEPS: bool(job.steps), _FLOWS: bool(job.flows), None: True}[figure.job]


def _value(figure: Figure, record: RunRecord) -> float:
    found = _asked(figure.text, record)
    if figure.in_rtt:
        if not record.base_rtt_ns:
            raise NoData("the base RTT was not measured in warm-up")
        return found / record.base_rtt_ns
    if figure.over:
        base = _asked(figure.over, record)
        if not base:
            raise NoData(f"{figure.over} is 0")
        return found / base
    return found


def _asked(text: str, record: RunRecord) -> float:
    wanted = _wanted(text)
    return measure(record, wanted.metric.name, wanted.stat, wanted.window)


@cache
def _wanted(text: str) -> Expectation:
    return parse_expectation(with_bound(text))
