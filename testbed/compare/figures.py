"""The figures by which runs are compared, in the expectation language, and their values in one run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isfinite

from mrc_testbed.testbed.checks.figure import Observed, evaluate_figure
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import number, usual_scale
from mrc_testbed.testbed.expect import Figure, parse_figure, with_metrics
from mrc_testbed.testbed.expect.metrics import PROGRAM, program_metric
from mrc_testbed.testbed.expect.vocabulary import BASE_UNITS, RTT, Dimension, Job

LESS, MORE, NEITHER = "less", "more", ""
_IN_RTT = f" in {RTT}"


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A compared figure: `text`, divided by `over` if given.

    `better`: LESS, MORE or NEITHER. `main`: shown in tables with little room. `job`: the kind of workload that has it,
    None for all. `of_programs`: only programs of the user have it.
    """

    key: str
    title: str
    better: str = LESS
    main: bool = False
    over: str = ""
    job: Job | None = None
    of_programs: bool = False

    @property
    def text(self) -> str:
        """In the expectation language: the key without what its value is divided by."""
        return self.key.partition(" / ")[0].removesuffix(_IN_RTT)

    @property
    def in_rtt(self) -> bool:
        """Counted in base RTTs of its own run."""
        return self.key.endswith(_IN_RTT)

    @property
    def dimension(self) -> Dimension:
        """The dimension of its values."""
        return Dimension.COUNT if self.over or self.in_rtt else _figure(self.text).metric.dimension

    @property
    def counts(self) -> bool:
        """True for a count, which can be 0 and where small differences mean nothing."""
        kind = _figure(self.text).metric.dimension
        return kind in (Dimension.COUNT, Dimension.BYTES) and self.key not in _SHARES

    def shown(self, value: float, size: float | None = None) -> str:
        """A value with a unit that suits `size`, or else the value."""
        if self.in_rtt:
            return f"{number(value)} {RTT}"
        scale = usual_scale(self.dimension, value if size is None else size)
        return f"{number(value / scale.factor)} {scale.unit}".rstrip()


_STEPS, _FLOWS = Job.TRAIN, Job.FLOWS
_SHARES = (
    *("fair_share.min", "balance", "wasted", "uplink_share.max", "uplink_share.min", "link_load.max"),
    *("slowdown.median", "slowdown.p99", "out_of_order"),
)
_PRINTED_STATS, _SHOWN_STATS = ("median", "min", "max"), ("median", "min")
FIGURES: tuple[ComparedFigure, ...] = (
    ComparedFigure("programs_failed", "programs that failed", main=True, of_programs=True),
    ComparedFigure("program_time.p100", "longest program", main=True, of_programs=True),
    ComparedFigure("step_time.median clean", "step, clean median", main=True, job=_STEPS),
    ComparedFigure("step_time.median during faults", "step, median in faults", job=_STEPS),
    ComparedFigure("step_time.p100 during faults", "step, P100 in faults", job=_STEPS),
    ComparedFigure("step_time.median", "step, median", job=_STEPS),
    ComparedFigure("step_time.p100", "step, P100", main=True, job=_STEPS),
    ComparedFigure(
        "step_time.p100 during faults / clean",
        "step, P100 in faults / clean",
        main=True,
        over="step_time.median clean",
        job=_STEPS,
    ),
    ComparedFigure("goodput clean", "goodput, clean", MORE),
    ComparedFigure("goodput during faults", "goodput in faults", MORE),
    ComparedFigure("goodput during faults / clean", "goodput in faults / clean", MORE, main=True, over="goodput clean"),
    ComparedFigure("flow_goodput.min", "slowest flow", MORE, main=True, job=_FLOWS),
    ComparedFigure("fair_share.min", "least fair share", MORE, main=True, job=_FLOWS),
    ComparedFigure("fair_after.p100", "fair shares after, P100", job=_FLOWS),
    ComparedFigure("balance", "balance of flows", MORE, job=_FLOWS),
    ComparedFigure("message_time.median", "message time, median", job=_FLOWS),
    ComparedFigure("message_time.p99", "message time, P99", main=True, job=_FLOWS),
    ComparedFigure("latency.median", "latency, median", main=True, job=_FLOWS),
    ComparedFigure("latency.p99", "latency, P99", main=True, job=_FLOWS),
    ComparedFigure("slowdown.median", "slowdown, median", job=_FLOWS),
    ComparedFigure("slowdown.p99", "slowdown, P99", main=True, job=_FLOWS),
    ComparedFigure("flow_time.p99", "flow time, P99", main=True, job=_FLOWS),
    ComparedFigure("stall.p100", "longest stall", main=True),
    ComparedFigure("wasted", "wasted"),
    ComparedFigure("uplink_share.max", "most loaded uplink / mean"),
    ComparedFigure("uplink_share.min", "least loaded uplink / mean", MORE),
    ComparedFigure("link_load.max", "most loaded link", NEITHER),
    ComparedFigure("recovery.p50", "recovery, P50", main=True),
    ComparedFigure("recovery.p50 in rtt", "recovery, P50, in RTT"),
    ComparedFigure("recovery.p100", "recovery, P100", main=True),
    ComparedFigure("recovery.p100 in rtt", "recovery, P100, in RTT", main=True),
    ComparedFigure("goodput_back.p100", "goodput back, P100"),
    ComparedFigure("evs_retired", "EVs retired", NEITHER),
    ComparedFigure("packets_lost", "packets taken for lost", main=True),
    ComparedFigure("retransmissions", "retransmissions", main=True),
    ComparedFigure("out_of_order", "out of order", NEITHER),
    ComparedFigure("marks", "marks", NEITHER),
    ComparedFigure("trims", "trims", NEITHER, main=True),
    ComparedFigure("ecn_skips", "EVs rested for ECN", NEITHER, main=True),
    ComparedFigure("nacks", "NACKs", NEITHER),
    ComparedFigure("timeouts", "timeouts"),
    ComparedFigure("queue_drops", "queue drops"),
    ComparedFigure("unrestored_evs", "EVs not restored"),
    ComparedFigure("qp_errors", "QP errors"),
    ComparedFigure("job_died", "jobs that died"),
    ComparedFigure("died_at", "died after", MORE),
    ComparedFigure("bytes_wrong", "wrong bytes"),
    ComparedFigure("data_on_bad_ev", "data on bad EVs"),
    ComparedFigure("located.p100", "faults located, P100", main=True),
    ComparedFigure("cleared.p100", "faults cleared, P100"),
    ComparedFigure("map_precision", "right accusations", MORE),
    ComparedFigure("map_recall", "faults located", MORE, main=True),
    ComparedFigure("falsely_accused", "whole things accused", main=True),
    ComparedFigure("route_updates", "UPDATEs of BGP", NEITHER),
)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """All figures of a run: values in base units by key, and the reason for each missing one."""

    values: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)


def figures_among(keys: Iterable[str]) -> tuple[ComparedFigure, ...]:
    """All that there are, and before them what programs of the user printed in runs that have figures with these
    keys."""
    return (*(_printed(key) for key in dict.fromkeys(keys) if key.startswith(PROGRAM)), *FIGURES)


def _printed(key: str) -> ComparedFigure:
    """Nobody knows whether more of it is better."""
    name, _, stat = key.removeprefix(PROGRAM).rpartition(".")
    return ComparedFigure(key, f"{name}, {stat}", NEITHER, main=stat in _SHOWN_STATS, of_programs=True)


def measured(record: RunRecord) -> RunFigures:
    """All figures that the run can give."""
    values, lacking = {}, {}
    names = (name for job in record.scenario.job.programs for name in job.figures)
    printed = (f"{PROGRAM}{name}.{stat}" for name in names for stat in _PRINTED_STATS)
    for figure in figures_among(printed):
        if _known(figure, record):
            found = _observed(figure, record)
            if found.value is None:
                lacking[figure.key] = found.why
            else:
                values[figure.key] = found.value
    return RunFigures(values, lacking)


def _known(figure: ComparedFigure, record: RunRecord) -> bool:
    job = record.scenario.job
    has_steps = any(one.entry.has_steps for one in job.jobs)
    if figure.of_programs:
        return bool(job.programs)
    return {_STEPS: has_steps, _FLOWS: bool(job.flows), None: True}[figure.job]


def _observed(figure: ComparedFigure, record: RunRecord) -> Observed:
    found = asked(figure.text, record, RTT if figure.in_rtt else None)
    if found.value is None or not figure.over:
        return found
    base = asked(figure.over, record)
    if not base.value:
        return Observed(None, why=base.why or f"{figure.over} is 0")
    return Observed(found.value / base.value)


def asked(text: str, record: RunRecord, unit: str | None = None) -> Observed:
    """A figure of a run, in base units unless another unit is given."""
    figure = _figure(text)
    found = evaluate_figure(record, figure, unit or BASE_UNITS[figure.metric.dimension])
    if found.value is not None and not isfinite(found.value):
        return Observed(None, why=f"a program printed {found.value}")
    return found


@cache
def _figure(text: str) -> Figure:
    name = text.removeprefix(PROGRAM).rpartition(".")[0]
    printed = {f"{PROGRAM}{name}": program_metric(name)} if text.startswith(PROGRAM) else {}
    with with_metrics(printed):
        return parse_figure(text)
