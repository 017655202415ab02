"""Is the budget of this machine right at every size? Eleven fabrics at 90 % of what it promises, and 110 % of what it
refuses.

    sudo .venv/bin/mrc-testbed calibrate
    sudo .venv/bin/python -m benchmarks.budget [FABRIC...]

A line a run: what `validate` reckons for it, as a share of what this machine carries at any time, and whether the run
was believed. At 90 % of what fits it has to be, at 110 % of what does not fit it must not; where the budget is wrong, a
step of a fifth further on is tried, too. Between the two bounds the budget says "may fit", and nothing is run.
FABRIC: as 64x4, hosts by planes. Exit status: 0 no fabric was on the wrong side, 1 some were. Run nothing else
meanwhile: all of them take some ten minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.believed import Result, run
from mrc_testbed.testbed.calibration import machine_capacity
from mrc_testbed.testbed.errors import TestbedError, UsageError
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.topos.budget import STANDARD_RATE_BPS, Capacity, carried_text, suited_rtt_ns
from mrc_testbed.topos.cost import cpus
from mrc_testbed.topos.units import rate_text, time_text

FITS, TOO_MUCH, FURTHER = 0.9, 1.1, 1.2
"""Share of what fits at which a run has to be believed, share of what does not at which it must not; from one to the
next where that is wrong."""
_SETTLE_T = 40
"""Twice what a permutation leaves out at its begin, in T."""
_LEAST_S = 5
_TRAINING_KIB = 4096
"""Of a step at the standard rate; in proportion at others, so that a step takes as long."""


@dataclass(frozen=True)
class Fabric:
    """A plane has as many T1s as a T0 has hosts, so nobody waits inside the network. `trains`: else it permutes."""

    hosts: int
    planes: int
    t0: int
    trains: bool = False

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"{self.hosts}x{self.planes}"

    def scenario(self, rate_bps: int) -> Scenario:
        """At this port rate, with the standard number of packets in flight."""
        rtt_us, below = suited_rtt_ns(rate_bps) // 1000, self.hosts // self.t0
        size = f"planes: {self.planes}, t0_groups: {self.t0}, t1: {below}, hosts_per_t0: {below}"
        kib = round(_TRAINING_KIB * rate_bps / STANDARD_RATE_BPS * self.planes / 4)
        train = f"train: {{hosts: all, steps: 5, compute: 100ms, allreduce: {kib}KiB}}"
        permute = f"permutation: {{for: {max(_SETTLE_T * rtt_us, _LEAST_S * 1_000_000)}us}}"
        return load_scenario_text(
            f"name: budget-{self.name}\n"
            f"fabric: {{{size}, port_rate: {rate_bps}bit, rtt: {rtt_us}us}}\n"
            f"workload: [{{{train if self.trains else permute}}}]\n"
            "expect: [qp_errors == 0, bytes_wrong == 0]\n"
        )


FABRICS = (
    Fabric(8, 4, 2, trains=True),
    Fabric(16, 4, 2, trains=True),
    Fabric(32, 2, 4, trains=True),
    *(Fabric(8, planes, 2) for planes in (1, 8)),
    *(Fabric(16, planes, 4) for planes in (2, 8)),
    *(Fabric(32, planes, 4) for planes in (1, 4)),
    *(Fabric(64, planes, 8) for planes in (2, 4)),
)


def share_of(scenario: Scenario, capacity: Capacity) -> float:
    """Of what the machine carries."""
    return cpus(scenario.shape(), offered_load(scenario), capacity.cost) / capacity.cpus


def at_share(fabric: Fabric, share: float, capacity: Capacity) -> Scenario:
    """The fabric at the rate at which it takes this share of what the machine carries."""
    rate = float(STANDARD_RATE_BPS)
    for _ in range(12):  # what it takes is nearly in proportion, but for trainings
        rate *= share / share_of(fabric.scenario(round(rate)), capacity)
    return fabric.scenario(round(rate))


def try_fabric(fabric: Fabric, capacity: Capacity, measure: Callable[[Scenario], Result]) -> str:
    """Print its runs; how the budget is wrong, empty if it is right."""

    def believed(share: float) -> bool:
        scenario = at_share(fabric, share, capacity)
        result = measure(scenario)
        print(_line(fabric, scenario, capacity, result), flush=True)
        return not result.why

    if not believed(FITS):
        less = FITS / FURTHER
        return f"promises too much: {FITS:.0%} were not carried, {less:.0%} {'were' if believed(less) else 'neither'}"
    too_much = TOO_MUCH * capacity.spread
    if believed(too_much):
        more = too_much * FURTHER
        return f"allows too little: {too_much:.0%} were carried, {more:.0%} {'too' if believed(more) else 'were not'}"
    return ""


def _line(fabric: Fabric, scenario: Scenario, capacity: Capacity, result: Result) -> str:
    shape, figures = scenario.shape(), result.figures
    rate = f"{rate_text(shape.port_rate_bps):>11} {time_text(shape.rtt_ns):>9}"
    costs = (figures.get(name) for name in ("packets/s", "machine us", "budget us"))
    cells = "".join(f"{'-' if value is None else format(value, '.0f'):>9}" for value in costs)
    kind = "training" if fabric.trains else "permutation"
    share = share_of(scenario, capacity)
    return f"{fabric.name:>5} {kind:12}{rate} {share:>5.0%}{cells}  {result.why or 'believed'}"


def chosen(names: list[str]) -> list[Fabric]:
    """All for none. Raises UsageError."""
    known = {fabric.name for fabric in FABRICS}
    if unknown := set(names) - known:
        raise UsageError(f"{', '.join(sorted(unknown))}: no such fabric; there are {', '.join(sorted(known))}")
    return [fabric for fabric in FABRICS if not names or fabric.name in names]


def main() -> int:
    """Read the arguments, run, print."""
    capacity = machine_capacity(Fabric(8, 4, 2).scenario(STANDARD_RATE_BPS).transport.cost)
    try:
        fabrics = chosen(sys.argv[1:])
        print(f"This machine carries {carried_text(capacity)}, crowd {capacity.cost.crowd:.2f} ({capacity.known_by})")
        heads = "".join(f"{head:>9}" for head in ("packets/s", "us", "budget"))
        print(f"{'':18}{'port rate':>11} {'rtt':>9} {'said':>5}{heads}")
        wrong = {fabric.name: try_fabric(fabric, capacity, run) for fabric in fabrics}
    except TestbedError as error:
        print(error)
        return error.exit_code
    for name, why in wrong.items():
        print(f"{name}: {why or 'right'}")
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
