"""What failures take from a job, by formulas.

A path that fails under a job stops it for a stall (the recovery's), one after another, as a synchronous step waits for
its slowest transfer. A NIC's port or T0 that is down slows the job while it is down, if the NIC has other planes; else
it ends the job, as a NIC's transceiver does in every design and everything that is not the network. A stall that
outlasts the retries of NICs ends the job too. A job that ended
runs on from its last checkpoint after a restart (Young's interval between checkpoints, Daly's time to the end).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, exp, expm1, inf, sqrt

from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.quantities import duration_words

DAY_S = 86_400.0
MONTH_S = 30 * DAY_S
_NOTHING = 1e-9
LEAST_GPUS = 4096
"""Below, rates say too little: Meta RSC measured 7.9 h between failures at 1,024 GPUs where its own rate says 28.8."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What fails how often and what it costs, in the units of the parts list; every number is worse when it grows.
    `checkpoint` is above 0."""

    nic_link: float
    nic_transceiver: float
    t0: float
    t1: float
    alone: float
    flaps: float
    other: float
    exposed: float
    checkpoint: float
    restart: float
    repair: float


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that ends `rate` times a second."""

    rate: float
    inputs: Inputs

    @property
    def interval(self) -> float:
        """Work between two checkpoints, in s."""
        return _interval(_time_between(self.rate), self.inputs)

    @property
    def kept(self) -> float:
        """Share of time that is work kept; what is less than a second in the life of a machine is nothing."""
        kept = _kept(_time_between(self.rate), self.interval, self.inputs)
        return kept if kept > _NOTHING else 0.0


@dataclass(frozen=True, slots=True)
class FailureCase:
    """A job on the first `gpus` NICs of a fabric, all planes of each. `flaps_gpus`: GPUs that flaps were counted in;
    they grow with the job. Rates are a second."""

    clos: Clos
    gpus: int
    inputs: Inputs
    flaps_gpus: int

    @property
    def switches(self) -> tuple[int, int]:
        """T0s that the job is on, and switches above them that it may use."""
        below = self.clos.planes * ceil(self.gpus / self.clos.nics_below_t0)
        return below, 0 if below == self.clos.planes else sum(self.clos.tier_switches[1:])

    @property
    def flaps(self) -> float:
        """T0-T1 flaps under the job; none where it has no T1."""
        return self.inputs.flaps / 60 * self.gpus / self.flaps_gpus if self.switches[1] else 0.0

    @property
    def link_failures(self) -> float:
        """NIC-T0 links that fail."""
        return _monthly(self.inputs.nic_link) * self.gpus * self.clos.planes

    @property
    def edge_failures(self) -> float:
        """Times at which NIC-T0 links fail, some together, or a T0 with all of its own."""
        return self.link_failures * self.inputs.alone + _monthly(self.inputs.t0) * self.switches[0]

    @property
    def ports(self) -> float:
        """Of these, those that only slow the job."""
        return self.edge_failures if self.clos.planes > 1 else 0.0

    @property
    def stalls(self) -> float:
        """Failures that the job survives after a stall."""
        return self.flaps + _monthly(self.inputs.t1) * self.switches[1] + self.ports

    @property
    def network_restarts(self) -> float:
        """Failures of the network that end the job. With one plane a transceiver is one of the links."""
        if self.clos.planes == 1:
            return self.edge_failures
        return _monthly(self.inputs.nic_transceiver) * self.gpus

    @property
    def restarts(self) -> float:
        """Failures of all kinds that end the job."""
        return self.network_restarts + self.other_restarts

    @property
    def other_restarts(self) -> float:
        """Those that are not the network's."""
        return self.inputs.other / 1000 / DAY_S * self.gpus

    @property
    def mtti(self) -> float:
        """Mean time to interruption, in s."""
        return _time_between(self.restarts)

    @property
    def interval(self) -> float:
        """Work between two checkpoints by Young, in s; the MTTI at most, as by Daly."""
        return _interval(self.mtti, self.inputs)

    @property
    def port_down(self) -> float:
        """Share of time with some port of the job down: M/G/inf, so only the mean time to repair counts."""
        return -expm1(-self.ports * self.inputs.repair)

    @property
    def slowdown(self) -> float:
        """Share of its pace that the job loses while a port is down: what waits for the network then takes planes /
        (planes - 1) times as long, for all wait for the slowest node."""
        longer = self.inputs.exposed / (self.clos.planes - 1) if self.clos.planes > 1 else 0.0
        return longer / (1 + longer)

    @property
    def port_loss(self) -> float:
        """Share of its pace that lost ports take."""
        return self.port_down * self.slowdown

    @property
    def running(self) -> float:
        """Share of time that is work kept, with restarts and checkpoints alone (Daly 2006, the full formula)."""
        return _kept(self.mtti, self.interval, self.inputs)

    @property
    def spared(self) -> float:
        """The same if the network never failed: what the best of networks leaves."""
        mtti = _time_between(self.other_restarts)
        return _kept(mtti, _interval(mtti, self.inputs), self.inputs)

    def flap_loss(self, stall: float, retries: float = inf) -> float:
        """Share of time that flaps alone stop the job, a stall each; 1 or more: no progress. Stalls longer than
        `retries`, in s, end it."""
        return self.flaps * stall if stall <= retries else 1 - self.ended(self.flaps, 0.0, retries).kept

    def pace(self, stall: float) -> float:
        """Pace of a running job, as a share of that without stalls and lost ports; 0: no progress."""
        return max(0.0, 1 - self.stalls * stall - self.port_loss)

    def effective(self, stall: float, retries: float = inf) -> float:
        """Share of time that becomes training. `stall`: of a failed path, in s; longer than `retries` it ends the
        job."""
        if stall <= retries:
            return self.running * self.pace(stall)
        return self.ended(self.stalls, self.restarts, retries).kept * self.pace(0.0)

    def ended(self, stalls: float, others: float, retries: float) -> EndedJob:
        """A job that `stalls` end, each after a stall of `retries` s, and `others`; both a second."""
        rate = stalls + others
        stood = retries * stalls / rate if rate else 0.0
        return EndedJob(rate, replace(self.inputs, restart=self.inputs.restart + stood))

    def doubts(self) -> Iterator[str]:
        """Where the model leaves what it is for, in words."""
        if self.gpus < LEAST_GPUS:
            yield f"{self.gpus:,} GPUs: rates are of large jobs; below {LEAST_GPUS:,} failures are more than they say"
        between = f"the {duration_words(self.mtti)} between failures"
        if self.inputs.checkpoint > self.mtti / 2:
            yield f"{self.gpus:,} GPUs: a checkpoint takes more than half of {between}"
        if self.inputs.restart > self.mtti:
            yield f"{self.gpus:,} GPUs: a restart takes longer than {between}"


def _time_between(rate: float) -> float:
    return 1 / rate if rate else inf


def _interval(mtti: float, inputs: Inputs) -> float:
    return min(sqrt(2 * inputs.checkpoint * mtti), mtti)


def _kept(mtti: float, interval: float, inputs: Inputs) -> float:
    """Work kept of a second that passes: failures may also come during restarts and checkpoints."""
    if mtti == inf:
        return 1.0
    span = (interval + inputs.checkpoint) / mtti
    return interval / mtti * exp(-inputs.restart / mtti - span) / -expm1(-span)


def _monthly(percent: float) -> float:
    return percent / 100 / MONTH_S
