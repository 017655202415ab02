"""007 as its paper has it (NSDI '18, section 5), written for these tests alone.

Each flow that lost a packet votes for each link on its way, with 1 / number of links. The link with the most votes is
bad; the votes of the flows that cross it are taken back; again, until no link has one in a hundred of all votes.
"""

from __future__ import annotations

from collections.abc import Sequence

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import SuspectKind, SuspectTable

LEAST_SHARE = 0.01


def seven(table: SuspectTable, rows: Sequence[Observation]) -> set[str]:
    """The names of what is bad: links, for it knows nothing else."""
    links = [one for one in table.all if one.kind is SuspectKind.LINK and one.direction is None]
    bad_flows = {(row.by, row.route) for row in rows if row.lost}
    flows = [[link.name for link in links if not link.elements.isdisjoint(route)] for _, route in bad_flows]
    total = float(len(flows))
    found: set[str] = set()
    while flows:
        votes: dict[str, float] = {}
        for flow in flows:
            for name in flow:
                votes[name] = votes.get(name, 0.0) + 1 / len(flow)
        worst = max(sorted(votes), key=lambda name: votes[name])
        if votes[worst] < LEAST_SHARE * total:
            break
        found.add(worst)
        flows = [flow for flow in flows if worst not in flow]
    return found
