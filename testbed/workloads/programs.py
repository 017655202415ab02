"""Programs of the user as a job: what carries their packets, and nothing that could be planned. Pure.

Each host has a QP to every other one, through which the gateway of its daemon writes IP packets into a ring of bytes
(hosts/gateway/ring.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from mrc_testbed.hosts.gateway.packets import LARGEST_FRAME
from mrc_testbed.testbed.workloads.flows import window_bytes
from mrc_testbed.testbed.workloads.job import JobPlan, QpSpec
from mrc_testbed.testbed.workloads.steps import StepJob
from mrc_testbed.topos.names import host_name
from mrc_testbed.topos.shape import Shape

_RING_WINDOWS = 5
"""Room for packets to one host that are not acknowledged, in what the host can send in T."""
_MARK_WINDOWS = 2.5
"""With more than this under way, TCP inside is told to slow down: CUBIC goes to 0.7 of it, and then still has more than
one window, also where whole segments of 64 KB do not fill it."""


def ring_bytes(shape: Shape) -> int:
    """Of the ring of each QP: two of the largest segments at least, wherever they lie."""
    return 4 * LARGEST_FRAME + round(_RING_WINDOWS * window_bytes(shape))


def mark_bytes(shape: Shape) -> int:
    """From here on packets are marked."""
    return LARGEST_FRAME + round(_MARK_WINDOWS * window_bytes(shape))


def gateway_qp(src: int, dst: int) -> str:
    """Name of the QP by which the packets of one host reach another."""
    return f"ip:{host_name(src)}->{host_name(dst)}"


@dataclass(frozen=True)
class ProgramJob(StepJob):
    """`timeout_ns`: the programs are ended after this; how long they take nobody can know before. `network`: the hosts
    that reach each other, with a program or without. `ring`: bytes of the ring of each QP."""

    timeout_ns: int = 0
    network: tuple[int, ...] = ()
    ring: int = 0

    def qps(self) -> Iterator[QpSpec]:
        """One a direction between any two hosts."""
        return (QpSpec(gateway_qp(src, dst), src, dst, self.ring) for src, dst in permutations(self.network, 2))

    @property
    def memory_bytes(self) -> int:
        """Both ends of each ring."""
        return 2 * self.ring * len(self.network) * (len(self.network) - 1)

    def plan(self) -> JobPlan:
        """The QPs; daemons have no program of their own to run."""
        return JobPlan(tuple(self.qps()), {host: [] for host in self.hosts}, self.hosts)

    def most_busy(self, shape: Shape) -> float:
        """Unknown."""
        return 0.0

    def earliest_step_ns(self, shape: Shape) -> float:
        """A step of theirs may send nothing."""
        return 0.0

    def step_ns(self, shape: Shape) -> int:
        """Unknown."""
        return 0

    def clean_ns(self, shape: Shape) -> int:
        """At the most."""
        return self.timeout_ns
