"""Shrinking: the fewest and simplest that still fail, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.app.hunt.shrink import Shrinking
from mrc_testbed.testbed.app.hunt.simpler import simpler
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.testbed.scenario.model.single_faults import SingleFault

MANY = 10_000
SETS = st.sets(st.integers(0, 30), min_size=1, max_size=12)
FAULTS = st.builds(
    SingleFault,
    name=st.just("storm"),
    model=st.sampled_from(list(KINDS.values())),
    targets=st.lists(st.text("ab", min_size=1), min_size=1, max_size=5, unique=True).map(tuple),
    begin_ns=st.integers(0, 10**11),
    length_ns=st.integers(10**6, 10**11),
)


def halved(number: int) -> Iterator[int]:
    yield from (number // 2 for _ in range(number > 0))


def nothing(_: int) -> Iterator[int]:
    yield from ()


@given(st.permutations(range(5)), st.integers(0, 4))
def test_the_single_guilty_one_of_five_is_found(items: list[int], guilty: int) -> None:
    found = Shrinking(items, lambda left: guilty in left, nothing, MANY).run()
    assert (found.items, found.minimal) == ((guilty,), True)
    assert found.runs <= 9


@given(SETS, st.data())
def test_all_that_are_needed_are_left_and_no_other(items: set[int], data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.sampled_from(sorted(items))))
    found = Shrinking(sorted(items), lambda left: needed <= set(left), nothing, MANY).run()
    assert set(found.items) == needed


@given(SETS, st.integers(0, 40))
def test_no_single_one_can_be_left_out_of_what_is_left(items: set[int], bound: int) -> None:
    def fails(left: tuple[int, ...]) -> bool:
        return sum(left) >= min(bound, sum(items))

    left = Shrinking(sorted(items), fails, halved, MANY).run().items
    assert fails(left)
    assert not any(fails(left[:index] + left[index + 1 :]) for index in range(len(left)))
    assert not any(fails((*left[:index], item // 2, *left[index + 1 :])) for index, item in enumerate(left) if item)


@given(SETS, st.integers(0, 20))
def test_it_asks_at_most_so_often_and_never_twice(items: set[int], most: int) -> None:
    asked: list[tuple[int, ...]] = []

    def fails(left: tuple[int, ...]) -> bool:
        asked.append(left)
        return len(left) % 3 == 1

    found = Shrinking(sorted(items), fails, halved, most).run()
    assert found.runs == len(asked) == len(set(asked)) <= most
    assert found.minimal or found.runs == most


@given(FAULTS)
def test_simpler_faults_come_to_an_end(fault: SingleFault) -> None:
    found = Shrinking([fault], bool, simpler, MANY).run()
    (left,) = found.items
    assert (left.begin_ns % 10**9, left.length_ns, len(left.targets), found.minimal) == (0, 10**6, 1, True)


@given(FAULTS)
def test_no_simpler_fault_is_longer_or_on_more_targets(fault: SingleFault) -> None:
    for form in simpler(fault):
        assert form != fault
        assert form.length_ns <= fault.length_ns
        assert set(form.targets) <= set(fault.targets)
        assert abs(form.begin_ns - fault.begin_ns) < 10**9
