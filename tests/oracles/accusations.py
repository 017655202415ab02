"""One accusation again, from all rows one by one: its share of losses, how much it explains, what it could as well be,
and how sure that is. Suspects, rows and the lengths of their ways are those of the mapper; nothing else is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import exp, log
from typing import NamedTuple

from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import Suspect, SuspectKind, SuspectTable

LEAST, MOST, WHOLE_THING = 0.01, 0.999, 20
NEEDLESS = 2
"""Losses of a row count from that many times those that are explained."""


class Said(NamedTuple):
    """The oracle's words on one suspect."""

    loss: float
    gain: float
    onset_ns: int
    last_ns: int
    lost: int
    arrived: float


class Scene(NamedTuple):
    """All that was seen. `grain_ns`: rows without a loss count from the next multiple of it; `known`: the share that
    each broken thing loses, and until when."""

    table: SuspectTable
    rows: Sequence[Observation]
    noise: float
    grain_ns: int
    known: Mapping[Suspect, tuple[float, int | None]]

    @property
    def standing(self) -> set[Suspect]:
        """Suspects that are still broken."""
        return {suspect for suspect, (_, until_ns) in self.known.items() if until_ns is None}


def times(suspect: Suspect, row: Observation) -> int:
    """How often a packet of the row meets the suspect."""
    return sum(element in suspect.elements for element in row.route)


def explained(scene: Scene, row: Observation) -> float:
    """The chance of its packets to be lost by what is known."""
    passes = (1 - scene.noise) * (1 - row.congested)
    for suspect, (loss, until_ns) in scene.known.items():
        if until_ns is None or row.begin_ns <= until_ns:
            passes *= (1 - loss) ** times(suspect, row)
    return 1 - passes


def open_rows(scene: Scene, suspect: Suspect) -> list[Observation]:
    """Rows that cross it and lost more than is explained."""
    crossing = (row for row in scene.rows if times(suspect, row))
    return [row for row in crossing if row.lost > NEEDLESS * explained(scene, row) * row.sent]


def said(scene: Scene, suspect: Suspect) -> Said | None:
    """None where nothing that crosses it lost more than is explained."""
    crossing = [row for row in scene.rows if times(suspect, row)]
    more = open_rows(scene, suspect)
    if not more:
        return None
    onset_ns = min(row.first_lost_ns or row.end_ns for row in more)
    mine = [row for row in crossing if row.lost and row.end_ns >= onset_ns]
    arrived = sum(times(suspect, row) * _arrived(row, onset_ns) for row in mine)
    first_ns = -(-onset_ns // scene.grain_ns) * scene.grain_ns
    arrived += sum(times(suspect, row) * row.sent for row in crossing if not row.lost and row.begin_ns >= first_ns)
    loss = _share(scene, suspect, mine, arrived)
    gain = arrived * log(1 - loss) - (0 if suspect.kind is SuspectKind.LINK else log(WHOLE_THING))
    for row in mine:
        base = explained(scene, row)
        gain += row.lost * log((1 - (1 - base) * (1 - loss) ** times(suspect, row)) / base)
    return Said(loss, gain, onset_ns, max(row.end_ns for row in more), sum(row.lost for row in more), arrived)


def _arrived(row: Observation, onset_ns: int) -> float:
    """Packets that left later and arrived, if the row's were sent evenly."""
    if row.begin_ns >= onset_ns:
        return row.sent - row.lost
    return (row.sent - row.lost) * (row.end_ns - onset_ns) / (row.end_ns - row.begin_ns)


def _share(scene: Scene, suspect: Suspect, mine: Collection[Observation], arrived: float) -> float:
    """Beside other causes the share that makes the losses likeliest, in eight rounds."""
    lost = sum(row.lost for row in mine)
    share = min(max(lost / (lost + arrived), LEAST), MOST)
    if any(explained(scene, row) > 2 * scene.noise for row in mine):
        for _ in range(8):
            own = sum(
                row.lost * share / (1 - (1 - explained(scene, row)) * (1 - share) ** times(suspect, row))
                for row in mine
            )
            share = min(max(own / (own + arrived), LEAST), MOST)
    return share


def alike(scene: Scene, suspect: Suspect, onset_ns: int) -> set[Suspect]:
    """Other suspects that explain something and that the same ways cross, of rows that count since the onset."""
    rows = [row for row in scene.rows if row.begin_ns >= onset_ns or (row.lost and row.end_ns > onset_ns)]
    ways = {row.route: row for row in [*rows, *open_rows(scene, suspect)]}
    mine = {way for way, row in ways.items() if times(suspect, row)}
    return {
        one
        for one in scene.table.all
        if one is not suspect and one not in scene.standing and said(scene, one) is not None
        if {way for way, row in ways.items() if times(one, row)} == mine
    }


def sure(scene: Scene, suspect: Suspect, names: Collection[str]) -> float:
    """The chance that it is one of these, of all that could be it, none likelier than the suspect."""
    mine = said(scene, suspect)
    assert mine is not None
    found = {one: said(scene, one) for one in scene.table.all if one not in scene.standing}
    weights = {one: exp(min(each.gain - mine.gain, 0.0)) for one, each in found.items() if each}
    return sum(weight for one, weight in weights.items() if one.name in names) / sum(weights.values())


def contradicted(scene: Scene, suspect: Suspect) -> bool:
    """Whether some ways cross it better than its share of losses allows: by the likelihood ratio of those ways, more
    than chance gives."""
    mine = said(scene, suspect)
    assert mine is not None
    counts: dict[tuple[int, ...], tuple[float, float]] = {}
    for row in scene.rows:
        late = row.begin_ns >= mine.onset_ns or (row.lost and row.end_ns > mine.onset_ns)
        if late and times(suspect, row):
            sent, lost = counts.get(row.route, (0.0, 0.0))
            counts[row.route] = sent + row.lost + _arrived(row, mine.onset_ns), lost + row.lost
    ratios = []
    for way, (sent, lost) in counts.items():
        share = 1 - (1 - mine.loss) ** sum(element in suspect.elements for element in way)
        if lost < sent * share:
            ratios.append(_likelihood(lost, sent, lost / sent) - _likelihood(lost, sent, share))
    return sum(ratios) > log(100) + len(ratios) / 3 + 2 * len(ratios) ** 0.5


def _likelihood(lost: float, sent: float, share: float) -> float:
    return (lost * log(share) if lost else 0.0) + (sent - lost) * log(1 - share)
