"""NetBouncer as its paper has it (NSDI '19, sections 4 and 5), written for these tests alone.

A device that a path crosses without any loss is good. One whose paths all lose is taken for bad, and its paths are put
aside. Of the rest each link has a chance to pass, and a path that of the product: least squares with a penalty of
lambda x (1 - x), by coordinate descent. Links below a threshold are bad.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import Elements, Suspect, SuspectKind, SuspectTable

PENALTY = 1.0
THRESHOLD = 0.99
ROUNDS = 60


def shares(rows: Sequence[Observation]) -> dict[Elements, float]:
    """Of each way the share of packets that arrived."""
    sent: dict[Elements, int] = {}
    lost: dict[Elements, int] = {}
    for row in rows:
        sent[row.route] = sent.get(row.route, 0) + row.sent
        lost[row.route] = lost.get(row.route, 0) + row.lost
    return {route: 1 - lost[route] / sent[route] for route in sent if sent[route]}


def netbouncer(table: SuspectTable, rows: Sequence[Observation]) -> set[str]:
    """The names of what is bad."""
    paths = shares(rows)
    bad: set[str] = set()
    for suspect in table.all:
        if suspect.kind is SuspectKind.SWITCH:
            through = [route for route in paths if not suspect.elements.isdisjoint(route)]
            if through and all(paths[route] < 1 for route in through) and all(paths[r] < THRESHOLD for r in through):
                bad.add(suspect.name)
                for route in through:
                    del paths[route]
    links = [one for one in table.all if one.kind is SuspectKind.LINK and one.direction is None]
    return bad | _bad_links(links, paths)


def _bad_links(links: Sequence[Suspect], paths: dict[Elements, float]) -> set[str]:
    if not paths or min(paths.values()) == 1:
        return set()
    seen = np.array(list(paths.values()))
    crosses = np.array([[not link.elements.isdisjoint(route) for link in links] for route in paths])
    used = np.asarray(crosses.any(axis=0))
    means = np.array([seen[crosses[:, n]].mean() if used[n] else 1.0 for n in range(len(links))])
    for _ in range(ROUNDS):
        before = means.copy()
        for number in np.flatnonzero(used):
            mine = crosses[:, number]
            others = crosses[mine].copy()
            others[:, number] = False
            rest = np.where(others, means, 1.0).prod(axis=1)
            means[number] = _lowest(rest, seen[mine])
        if np.abs(means - before).max() < 1e-6:
            break
    return {link.name for link, mean in zip(links, means, strict=True) if mean < THRESHOLD}


def _lowest(rest: np.ndarray, seen: np.ndarray) -> float:
    """Where sum (seen - rest x)^2 + lambda x (1 - x) is least between 0 and 1."""

    def cost(x: float) -> float:
        return float(((seen - rest * x) ** 2).sum() + PENALTY * x * (1 - x))

    curve = 2 * float((rest**2).sum()) - 2 * PENALTY
    ends = [0.0, 1.0]
    if curve > 0:
        ends.append(min(max((2 * float((rest * seen).sum()) - PENALTY) / curve, 0.0), 1.0))
    return min(ends, key=cost)
