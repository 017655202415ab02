"""The faults by which the mapper is compared with other methods, on the fabric of the quickstart."""

from __future__ import annotations

from typing import NamedTuple

from tests.mapping.simulation import Broken, Probed, plan_of

STANDARD = Probed(plan_of(4, 2, 4, 4))
_NAMED = STANDARD.table.named


class FaultRow(NamedTuple):
    """What is broken, and how many periods are watched."""

    broken: Broken
    periods: int


LINK, PORT, OTHER = "p0-t0-0:p0-t1-2", "h3:p1-t0-0", "p2-t0-1:p2-t1-3"
ROWS = {
    "NIC port dead": FaultRow({_NAMED(PORT): 1.0}, 20),
    "T1 silent": FaultRow({_NAMED("p1-t1-2"): 1.0}, 20),
    "T0 silent": FaultRow({_NAMED("p1-t0-1"): 1.0}, 20),
    "host dead": FaultRow({_NAMED("h2"): 1.0}, 20),
    "link dead": FaultRow({_NAMED(LINK): 1.0}, 20),
    "link dead one way": FaultRow({_NAMED(LINK, "up"): 1.0}, 20),
    "two links and a port": FaultRow({_NAMED(LINK): 1.0, _NAMED(OTHER): 1.0, _NAMED(PORT): 1.0}, 20),
    "link 20 %": FaultRow({_NAMED(LINK): 0.2}, 60),
    "link 5 %": FaultRow({_NAMED(LINK): 0.05}, 200),
    "NIC port 5 %": FaultRow({_NAMED(PORT): 0.05}, 200),
    "T1 5 %": FaultRow({_NAMED("p1-t1-2"): 0.05}, 200),
    "link 1 %": FaultRow({_NAMED(LINK): 0.01}, 500),
    "clean": FaultRow({}, 300),
}
