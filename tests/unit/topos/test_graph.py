"""A family is checked before anything is built: each mistake is named, and what does not end is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

import pytest

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.graph import Cable, Family, ShapeError, SwitchPlace, Way, check

T0, OTHER, T1 = SwitchPlace(0, 0), SwitchPlace(0, 1), SwitchPlace(1, 0)


@dataclass(frozen=True)
class Told(Family):
    """Two T0s with a host each below one T1, or whatever a test says."""

    word: ClassVar[str] = "told"

    places: tuple[SwitchPlace, ...] = (T0, OTHER, T1)
    links: Iterable[Cable] = (Cable(T0, T1), Cable(OTHER, T1))
    there: Iterable[Way] = ((T0, T1, OTHER),)
    homes: tuple[int, ...] = field(default=(0, 1))

    @property
    def hosts(self) -> int:
        return len(self.homes)

    def t0_of(self, host: int) -> int:
        return self.homes[host]

    def switches(self) -> Iterable[SwitchPlace]:
        return self.places

    def cables(self) -> Iterable[Cable]:
        return self.links

    def ways(self, source: int, target: int) -> Iterator[Way]:
        for way in self.there:
            yield way if source == 0 else way[::-1]


def test_a_plane_that_can_be_built_passes() -> None:
    check(Told())
    check(Clos2(3, 2, 2))


@pytest.mark.parametrize(
    ("family", "said"),
    [
        (Told(places=(T0, T0, T1)), "two switches have the name t0-0"),
        (Told(places=(T0, SwitchPlace(0, 2), T1)), "tier 0 are not numbered from 0 on"),
        (Told(places=(T0, OTHER, SwitchPlace(4, 0))), "switch t4-0 is outside"),
        (Told(homes=(0, 2)), "h1 is on t0-2, and there is no such switch"),
        (Told(homes=(0,)), "at least 2 hosts"),
        (Told(links=(Cable(T0, SwitchPlace(1, 1)),)), "an end on t1-1, and there is no such switch"),
        (Told(links=(Cable(T0, T1), Cable(T0, T1))), "t0-0:t1-0 is there twice"),
        (Told(links=(Cable(T0, T0),)), "joins a switch to itself"),
        (Told(links=(Cable(T0, T1, 1.5), Cable(OTHER, T1))), "1.5 of the port rate"),
        (Told(there=()), "there is no way from t0-0 to t0-1"),
        (Told(there=((T0, OTHER),)), "crosses from t0-0 to t0-1, and no link joins them"),
        (Told(there=((T0, T1),)), "does not lead from t0-0 to t0-1"),
        (Told(there=((T0, T1, T0, T1, OTHER),)), "crosses a switch twice"),
        (Told(there=((T0, T1, OTHER), (T0, T1, OTHER))), "are the same"),
        (Told(there=((T0, *(SwitchPlace(1, n) for n in range(4)), OTHER),)), "6 switches"),
        (Told(links=(Cable(T0, T1) for _ in count())), "twice"),
        (Told(links=(Cable(SwitchPlace(0, 0), SwitchPlace(1, n)) for n in count())), "no such switch"),
        (Told(there=((T0, T1, OTHER) for _ in count())), "more than 256 ways"),
    ],
)
def test_a_mistake_is_named(family: Family, said: str) -> None:
    with pytest.raises(ShapeError, match="family: told: ") as caught:
        check(family)
    assert said in str(caught.value)


def test_a_slow_link_is_as_long_as_the_links_that_take_its_time() -> None:
    slow = Told(
        places=(T0, OTHER, T1, SwitchPlace(1, 1)),
        links=(
            Cable(T0, T1, 0.5),
            Cable(OTHER, T1),
            Cable(T0, SwitchPlace(1, 1), 0.25),
            Cable(OTHER, SwitchPlace(1, 1)),
        ),
        there=((T0, SwitchPlace(1, 1), OTHER), (T0, T1, OTHER)),
    )
    assert [slow.span(way) for way in slow.ways_of(0, 1)] == [7, 5]
    assert slow.nearest(0, 1) == (T0, T1, OTHER)
    assert slow.span(slow.nearest(0, 0)) == 2
    assert slow.span(slow.farthest) == 7
