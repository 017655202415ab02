"""What KPIs are made of: the formulas by name, of the record of one run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from mrc_testbed.testbed.bench.formulas import Rooflines, bus_bandwidth, jain, mmr, rooflines
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.flows import latencies
from mrc_testbed.testbed.checks.link_loads import shares_by_switch
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.steps import JobStep, steps_by_job, steps_in
from mrc_testbed.testbed.checks.windows import NoData
from mrc_testbed.testbed.expect import Window, parse_figure
from mrc_testbed.testbed.workloads.steps import Compute, Exchange, StepJob
from mrc_testbed.topos.shape import Shape

_GBIT = 1e9 / 8
"""Bytes a second."""


def step_times(record: RunRecord) -> list[float]:
    """Microseconds that each step took, of all jobs."""
    return [step.duration_ns / 1e3 for step in _steps(record)]


def bus_bandwidths(record: RunRecord) -> list[float]:
    """Bus bandwidth of each step in Gb/s, of a job that does one collective and nothing else."""
    job, exchange = _collective(record)
    ranks, size = len(job.hosts), exchange.terms.size_bytes
    return [bus_bandwidth(exchange.kind, ranks, size, step.duration_ns / 1e9) / _GBIT for step in _steps(record)]


def bus_efficiencies(record: RunRecord) -> list[float]:
    """The same over the rate of all ports of a host, headers included."""
    line = line_bps(record.scenario.shape())
    return [each * 1e9 / line for each in bus_bandwidths(record)]


def line_bps(shape: Shape) -> float:
    """Bits a second of all ports of a host, as the draft counts its line rate."""
    return float(shape.planes * shape.port_rate_bps)


def _steps(record: RunRecord) -> list[JobStep]:
    found = [step for steps in steps_by_job(record).values() for step in steps]
    if not found:
        raise NoData("no step was finished by all ranks")
    return found


def _collective(record: RunRecord) -> tuple[StepJob, Exchange]:
    (job,) = (one.steps(record.scenario.shape()) for one in record.scenario.jobs)
    (exchange,) = job.exchanges
    return job, exchange


def efficiencies(record: RunRecord) -> list[float]:
    """Goodput of all hosts over what their ports carry in all, headers included."""
    found = ask(record, "goodput", "gbit")
    if found.value is None:
        raise NoData(found.why)
    shape = record.scenario.shape()
    return [found.value * 1e9 / (line_bps(shape) * shape.hosts)]


def latencies_us(record: RunRecord) -> list[float]:
    """Half the time of each message of latency flows, in microseconds."""
    return [each / 1e3 for each in latencies(record, _window("latency.p50"))]


def uplink_fairness(record: RunRecord) -> list[float]:
    """Jain's index over the bytes of the uplinks of each switch that sent data up."""
    return [jain(shares) for shares in shares_by_switch(record, _window("uplink_share.max"))]


def uplink_imbalance(record: RunRecord) -> list[float]:
    """Max-mean ratio of the same bytes."""
    return [mmr(shares) for shares in shares_by_switch(record, _window("uplink_share.max"))]


def _window(figure: str) -> Window:
    return parse_figure(figure).window


def job_rooflines(record: RunRecord) -> Rooflines:
    """Of one step of a job that computes and then does an all-reduce over all of its ranks."""
    job, exchange = _collective(record)
    shape = record.scenario.shape()
    compute_ns = sum(part.ns for part in job.parts if isinstance(part, Compute))
    return rooflines(
        compute_ns / 1e9,
        exchange.terms.size_bytes,
        len(job.hosts),
        line_bps(shape),
        shape.payload_bytes,
        shape.header_bytes,
        (record.base_rtt_ns or shape.rtt_ns) / 1e9,
    )


def jct_over(roofline: str) -> Callable[[RunRecord], Sequence[float]]:
    """Time of all steps over that of one of the rooflines, by its name; one value a run."""

    def ratio(record: RunRecord) -> list[float]:
        steps = _steps(record)
        took_s = sum(step.duration_ns for step in steps) / 1e9
        return [took_s / (len(steps) * float(getattr(job_rooflines(record), roofline)))]

    return ratio


def job_times(record: RunRecord) -> list[float]:
    """Milliseconds of all steps together."""
    return [sum(step.duration_ns for step in _steps(record)) / 1e6]


def failure_overhead(record: RunRecord) -> list[float]:
    """The longest step that overlaps a fault, over the median of the steady ones."""
    longest, steady = _failure(record)
    return [longest / median(steady)]


def failure_rank(record: RunRecord) -> list[float]:
    """The share of the steady steps, in percent, that were shorter than the longest step that overlaps a fault. Up to
    99 it is within their P99. Raises NoData for fewer than STEADY_STEPS."""
    longest, steady = _failure(record)
    if len(steady) < STEADY_STEPS:
        raise NoData(f"there are {len(steady)} steady steps; a P99 needs {STEADY_STEPS}")
    return [100 * sum(each < longest for each in steady) / len(steady)]


def _failure(record: RunRecord) -> tuple[int, list[int]]:
    during = steps_in(record, _window("step_time.max during faults"))
    clean = steps_in(record, _window("step_time.max clean"))
    return max(step.duration_ns for step in during), [step.duration_ns for step in clean]


def drift(record: RunRecord) -> list[float]:
    """The mean of the last tenth of the steps over that of the first tenth."""
    steps = [step.duration_ns for step in _steps(record)]
    tenth = max(len(steps) // 10, 1)
    return [fmean(steps[-tenth:]) / fmean(steps[:tenth])]


STEADY_STEPS = 100
FORMULAS: Mapping[str, Callable[[RunRecord], Sequence[float]]] = {
    "step_times": step_times,
    "efficiency": efficiencies,
    "bus_bandwidth": bus_bandwidths,
    "bus_efficiency": bus_efficiencies,
    "latencies": latencies_us,
    "uplink_fairness": uplink_fairness,
    "uplink_imbalance": uplink_imbalance,
    "jct_ratio_raw": jct_over("raw"),
    "jct_ratio_payload": jct_over("payload"),
    "jct_ratio_latency": jct_over("latency"),
    "job_time": job_times,
    "failure_overhead": failure_overhead,
    "failure_rank": failure_rank,
    "drift": drift,
}
"""By the name that a test gives them. Each raises NoData for a run that does not have it."""
