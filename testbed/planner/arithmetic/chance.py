"""What failures take from a job, by chance: many campaigns, each with failures of its own.

Failures of one effect are one stream, exponential from one to the next, whichever part they are of. Restarts: arrays of
times between them, and what a job keeps of each. Ports: arrays of failures and repairs, merged to the time in which any
port is down. Stalls: millions of flaps in a campaign, so only their number is drawn, and how many at most come in one
go: flaps that come during a stall make it longer (a queue with a fixed time of service, whose busy
periods have Borel's distribution).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, log

from mrc_testbed.testbed.arrays import np, npt
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.recovery import PathRecovery
from mrc_testbed.testbed.planner.arithmetic.reliability import DAY_S, FailureCase

Floats = npt.NDArray[np.float64]
MOST_EVENTS = 100_000_000
"""Restarts and lost ports in all campaigns at most, so that a simulation takes seconds."""
_MOST_AT_ONCE = 5_000_000
"""The same of one campaign."""
_CELLS = 2_000_000
"""Times in an array."""
_MOST_IN_ONE_GO = 1_000_000
_MOST_STALLS = 1e15
"""In a campaign: what is counted exactly."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of all campaigns: the mean, and the 5th and 95th percentile."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """`effective` and `port_down` in percent; `longest_stall` in s, without restarts. One a recovery. `restarts`:
    without those of stalls that outlast the retries of NICs."""

    campaigns: int
    days: float
    seed: int
    restarts: Spread
    port_down: Spread
    effective: tuple[Spread, ...]
    longest_stall: tuple[Spread, ...]


def simulate(case: FailureCase, recoveries: Sequence[PathRecovery], campaigns: int, days: float, seed: int) -> Outlook:
    """Campaigns of `days` days. The same seed gives the same. Raises UsageError for more events than MOST_EVENTS."""
    span = days * DAY_S
    _refuse_too_many(case, campaigns, span)
    chance = np.random.default_rng(seed)
    restarts, kept = _restarts(case, campaigns, span, chance)
    down = _port_down(case, campaigns, span, chance)
    stalls = chance.poisson(case.stalls * span, campaigns)
    luck = chance.random(campaigns)
    kept_by = [
        _deadly(case, recovery, campaigns, span, chance) if recovery.ends_job and case.stalls else kept
        for recovery in recoveries
    ]
    stood = [0.0 if recovery.ends_job else recovery.stall.value for recovery in recoveries]
    paces = [np.maximum(0.0, 1 - stalls * wait / span - down * case.slowdown) for wait in stood]
    return Outlook(
        campaigns=campaigns,
        days=days,
        seed=seed,
        restarts=_spread(restarts),
        port_down=_spread(100 * down),
        effective=tuple(_spread(100 * kept * pace) for kept, pace in zip(kept_by, paces, strict=True)),
        longest_stall=tuple(_spread(_longest_of(recovery, stalls, span, luck)) for recovery in recoveries),
    )


def _refuse_too_many(case: FailureCase, campaigns: int, span: float) -> None:
    if case.stalls * span > _MOST_STALLS:
        raise UsageError(
            f"--days {span / DAY_S:g}: {case.stalls * span:.3g} stalls in a campaign, {_MOST_STALLS:.0e} at most"
        )
    each = case.restarts * span + case.ports * (span + _repairs_before(case))
    most = int(MOST_EVENTS / each) if each else campaigns
    if each > _MOST_AT_ONCE:
        raise UsageError(f"--days {span / DAY_S:g}: {each:,.0f} failures in a campaign, {_MOST_AT_ONCE:,} at most")
    if campaigns > most:
        raise UsageError(f"--monte-carlo {campaigns}: {each:,.0f} failures in each; {most:,} campaigns at most")


def _spread(found: Floats) -> Spread:
    low, high = np.percentile(found, [5, 95])
    return Spread(float(found.mean()), float(low), float(high))


def _restarts(case: FailureCase, campaigns: int, span: float, chance: np.random.Generator) -> tuple[Floats, Floats]:
    """How often the job of each campaign ended, and the share of the campaign that became work which was kept. A
    campaign begins with a start like any other, and what is not saved at its end is kept."""
    if case.mtti == inf:
        return np.zeros(campaigns), np.ones(campaigns)
    work, period = case.interval, case.interval + case.inputs.checkpoint
    ended, kept = [], []
    for rows in _rows(case.restarts * span, campaigns):
        ends = _arrivals(case.restarts, 0.0, span, rows, chance)
        begins = np.concatenate([np.zeros((rows, 1)), ends[:, :-1]], axis=1)
        running = np.maximum(np.minimum(ends, span) - np.minimum(begins, span) - case.inputs.restart, 0)
        whole = np.floor(running / period)
        unsaved = np.minimum(running - whole * period, work)
        last = (begins < span) & (ends >= span)
        ended.append((ends < span).sum(axis=1).astype(float))
        kept.append((whole.sum(axis=1) * work + np.where(last, unsaved, 0).sum(axis=1)) / span)
    return np.concatenate(ended), np.concatenate(kept)


def _deadly(
    case: FailureCase, recovery: PathRecovery, campaigns: int, span: float, chance: np.random.Generator
) -> Floats:
    """Share of each campaign that became work which was kept, where stalls end the job: millions of ends, so only how
    many of the times between them are long enough for a checkpoint is drawn, and how many more each holds."""
    job = case.ended(case.stalls, case.restarts, recovery.patience[1])
    period = job.interval + job.inputs.checkpoint
    times = chance.poisson(job.rate * span, campaigns) + 1
    long = chance.binomial(times, exp(-job.rate * (job.inputs.restart + period)))
    more = chance.negative_binomial(np.maximum(long, 1), -expm1(-job.rate * period))
    return np.minimum(np.where(long > 0, long + more, 0) * job.interval / span, 1.0)


def _port_down(case: FailureCase, campaigns: int, span: float, chance: np.random.Generator) -> Floats:
    """Share of each campaign in which any port is down. Failures begin 20 repairs before it, so that it begins as it
    goes on."""
    before = _repairs_before(case)
    if not case.ports:
        return np.zeros(campaigns)
    shares = []
    for rows in _rows(case.ports * (span + before), campaigns):
        down = _arrivals(case.ports, -before, span, rows, chance)
        up = down + chance.exponential(case.inputs.repair, down.shape)
        so_far = np.maximum.accumulate(np.concatenate([np.zeros((rows, 1)), up], axis=1), axis=1)[:, :-1]
        added = np.minimum(up, span) - np.maximum(down, so_far)
        shares.append(np.maximum(added, 0).sum(axis=1) / span)
    return np.concatenate(shares)


def _repairs_before(case: FailureCase) -> float:
    return 20 * case.inputs.repair


def _rows(events: float, campaigns: int) -> Iterator[int]:
    """Campaigns at a time."""
    at_once = max(1, int(_CELLS / _columns(events)))
    for done in range(0, campaigns, at_once):
        yield min(at_once, campaigns - done)


def _columns(expected: float) -> int:
    """Enough for nearly all campaigns with `expected` events on average."""
    return int(expected + 8 * expected**0.5 + 20)


def _arrivals(rate: float, start: float, end: float, rows: int, chance: np.random.Generator) -> Floats:
    """Times from `start` on, rising, a campaign a row; the last of every row lies behind `end`."""
    columns = _columns(rate * (end - start))
    times = start + np.cumsum(chance.exponential(1 / rate, (rows, columns)), axis=1)
    while times[:, -1].min() < end:
        more = times[:, -1:] + np.cumsum(chance.exponential(1 / rate, (rows, columns)), axis=1)
        times = np.concatenate([times, more], axis=1)
    return times


def _longest_of(recovery: PathRecovery, stalls: npt.NDArray[np.int64], span: float, luck: Floats) -> Floats:
    """The same where stalls may end the job: it waits until the NICs give up."""
    if recovery.ends_job:
        return np.where(stalls > 0, recovery.patience[1], 0.0)
    return _longest(stalls, recovery.stall.value, span, luck)


def _longest(stalls: npt.NDArray[np.int64], stall: float, span: float, luck: Floats) -> Floats:
    """The longest stall of each job, in s. `luck`: in [0, 1), how long it is among what it could be."""
    load = float(stalls.mean()) * stall / span
    if load >= 1:
        return np.full(len(stalls), span)
    if not load:
        return np.zeros(len(stalls))
    periods = np.maximum(stalls * (1 - load), 1)
    longer = -np.expm1(np.log(np.maximum(luck, 1e-300)) / periods)
    tail = _in_one_go(load)
    most = 1 + np.searchsorted(-tail, -longer, side="left")
    return np.minimum(np.where(stalls > 0, most, 0) * stall, span)


def _in_one_go(load: float) -> Floats:
    """Chances that a busy period has more than 1, 2, ... stalls (Borel), falling. `load`: stalls x time of one, under
    1."""
    fall = load - 1 - log(load)
    counts = np.arange(1, min(_MOST_IN_ONE_GO, int(50 / fall) + 10) + 1, dtype=float)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(counts))])[1:]
    chances = np.exp(-load * counts + (counts - 1) * np.log(load * counts) - factorials)
    return np.append(np.cumsum(chances[::-1])[::-1][1:], 0.0)
