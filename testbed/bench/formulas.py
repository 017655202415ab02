"""The formulas of benchmarks of AI fabrics. Pure.

Sources: the IETF draft on benchmarking AI training fabrics (roofline, JFI, MMR, CV); bus bandwidth as nccl-tests
defines it (doc/PERFORMANCE.md there); JFI is R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from mrc_testbed.testbed.checks.statistics import statistic

_BITS = 8
_TIMES_ROUND: Mapping[str, int] = {"allreduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}
"""How often (N - 1)/N of the data of a rank crosses its port, by collective."""


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index, (sum x)² / (n sum x²): 1 if all are equal, 1/n if one has everything.

    Raises ValueError where it is not defined: without values, with a negative one, or if all are 0.
    """
    _check_shares(values)
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def mmr(values: Sequence[float]) -> float:
    """The max-mean ratio: the largest value over the mean; 1 if all are equal. Raises ValueError as `jain`."""
    _check_shares(values)
    return max(values) / fmean(values)


def bus_factor(collective: str, ranks: int) -> float:
    """Which multiple of the data of a rank crosses its port in a collective of `ranks` ranks.

    Raises ValueError of an unknown collective, or without a rank.
    """
    if collective not in _TIMES_ROUND:
        raise ValueError(f"no bus bandwidth of {collective!r}; known: {', '.join(_TIMES_ROUND)}")
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}, and must be at least 1")
    return _TIMES_ROUND[collective] * (ranks - 1) / ranks


def bus_bandwidth(collective: str, ranks: int, size_bytes: float, seconds: float) -> float:
    """Bytes per second that crossed the port of each rank, whatever their number: size / time x `bus_factor`.

    `size_bytes` is the whole vector: what each rank ends with in an all-gather, and begins with in the others.
    Raises ValueError as `bus_factor`, and if `seconds` is not positive.
    """
    if seconds <= 0:
        raise ValueError(f"seconds is {seconds:g}, and must be more than 0")
    return size_bytes / seconds * bus_factor(collective, ranks)


@dataclass(frozen=True, slots=True)
class Rooflines:
    """The least time of an iteration, in seconds: by three models, each later than the one before it."""

    raw: float
    """As the draft has it: computation, and the data at the rate of the line."""
    payload: float
    """The same with the headers of full packets."""
    latency: float
    """The same with half a base round trip for each phase of the ring."""


def rooflines(
    compute_s: float,
    size_bytes: float,
    ranks: int,
    line_rate_bps: float,
    mtu_bytes: int,
    header_bytes: int,
    base_rtt_s: float,
) -> Rooflines:
    """Of an iteration that computes, and then reduces `size_bytes` in a ring of `ranks`: 2 (N - 1) phases.

    `line_rate_bps` is that of all ports of a host together; `mtu_bytes` the payload of a full packet, `header_bytes`
    what else it has on the wire. Raises ValueError if a rate or a size of a packet is not positive.
    """
    if line_rate_bps <= 0 or mtu_bytes <= 0:
        raise ValueError("line_rate_bps and mtu_bytes must be more than 0")
    sending = size_bytes * bus_factor("allreduce", ranks) * _BITS / line_rate_bps
    with_headers = compute_s + sending * (mtu_bytes + header_bytes) / mtu_bytes
    return Rooflines(compute_s + sending, with_headers, with_headers + (ranks - 1) * base_rtt_s)


@dataclass(frozen=True, slots=True)
class RepeatSpread:
    """How the values of repeats are spread; percentiles are nearest ranks, as those of expectations.

    `cv` is the sample standard deviation over the mean; None of one value, or where the mean is 0.
    """

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    cv: float | None


def spread(values: Sequence[float]) -> RepeatSpread:
    """Of at least one value; raises ValueError of none."""
    if not values:
        raise ValueError("no values")
    mean = fmean(values)
    cv = stdev(values) / mean if len(values) > 1 and mean else None
    p50, p95, p99 = (statistic(values, stat) for stat in ("p50", "p95", "p99"))
    return RepeatSpread(len(values), mean, p50, p95, p99, cv)


def _check_shares(values: Sequence[float]) -> None:
    if not values or min(values) < 0 or not any(values):
        raise ValueError("shares must be at least one value, none below 0, and not all 0")
