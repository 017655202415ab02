"""All sets of up to two suspects, each as likely as it can be: what the greedy search is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.locate import LEAST_LOSS, MOST_LOSS, WHOLE
from mrc_testbed.testbed.mapper.suspects import Suspect, SuspectKind, SuspectTable

ROUNDS = 60


class Likelihoods:
    """How likely rows are, if given suspects lose packets. `gate`: what each of a set must explain."""

    def __init__(self, table: SuspectTable, rows: Sequence[Observation], noise: float, gate: float) -> None:
        self._noise = noise
        self._lost = np.array([row.lost for row in rows], float)
        self._kept = np.array([row.sent - row.lost for row in rows], float)
        blamed = {element for row in rows if row.lost for element in row.route}
        self.suspects = [one for one in table.all if not one.elements.isdisjoint(blamed)]
        self._price = np.array([gate + (0 if one.kind is SuspectKind.LINK else WHOLE) for one in self.suspects])
        self._number = {one: number for number, one in enumerate(self.suspects)}
        self._times = np.array(
            [[sum(element in one.elements for element in row.route) for row in rows] for one in self.suspects], float
        )

    def best(self) -> float:
        """The worth of the best set: how much likelier it makes the rows than noise alone, less the price of each."""
        count = len(self.suspects)
        if not count:
            return 0.0
        alone = self._worths([(number,) for number in range(count)])
        pairs = [(a, b) for a in range(count) for b in range(a) if alone[a] + alone[b] > alone.max() - 20]
        return float(max(0.0, alone.max(), self._worths(pairs).max(initial=0.0) if pairs else 0.0))

    def worth(self, chosen: Sequence[Suspect]) -> float:
        """That of one set, which may have any size."""
        return float(self._worths([tuple(self._number[one] for one in chosen)])[0]) if chosen else 0.0

    def _worths(self, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
        return self._gains(sets) - self._price[np.array(sets)].sum(axis=1)

    def _gains(self, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
        """By expectation and maximisation, for all sets at once."""
        times = self._times[np.array(sets)]
        loss = np.full(times.shape[:2], 0.3)
        arrived = times @ self._kept
        for _ in range(ROUNDS):
            lost = 1 - (1 - self._noise) * np.exp((times * np.log1p(-loss)[..., None]).sum(axis=1))
            own = ((times > 0) * self._lost / lost[:, None]).sum(axis=2) * loss
            loss = np.clip(own / np.maximum(own + arrived, 1e-12), LEAST_LOSS, MOST_LOSS)
        passes = (1 - self._noise) * np.exp((times * np.log1p(-loss)[..., None]).sum(axis=1))
        found = np.log(passes) @ self._kept + np.log(1 - passes) @ self._lost
        return found - np.log(1 - self._noise) * self._kept.sum() - np.log(self._noise) * self._lost.sum()
