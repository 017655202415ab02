"""Truth, names and the score of answers: by known answers on a small fabric, and by properties on random ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import inf

import pytest

from mrc_testbed.testbed.checks.answers import Answer, AnswerState, Incident
from mrc_testbed.testbed.checks.broken import BrokenSpan
from mrc_testbed.testbed.checks.fabric_map import packets_to_show
from mrc_testbed.testbed.checks.fabric_places import FabricPlaces
from mrc_testbed.testbed.checks.intervals import Interval
from mrc_testbed.testbed.checks.locating import LocatingScore, score
from mrc_testbed.testbed.checks.route_times import RouteTimes
from mrc_testbed.testbed.checks.spans_met import SpansMet
from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import Direction, Elements, SuspectTable
from tests.mapping.simulation import Probed, plan_of

S = 10**9
PLAN = plan_of(2, 2, 2, 2)
TABLE = SuspectTable(PLAN)
PROBES = [route for _, route in Probed(PLAN).routes]
LINK, OTHER, T1 = "p0-t0-0:p0-t1-1", "p1-t0-1:p1-t1-0", "p0-t1-1"
DURING = Interval(0, 100 * S)
GRACE_NS = 2 * S


def route_times(routes: Iterable[Elements], begin_s: float = 0, end_s: float = 100) -> RouteTimes:
    found = RouteTimes(10 * S)
    found.add(Observation(route, round(begin_s * S), round(end_s * S), 1, 0, "h0") for route in routes)
    return found


PLACES = FabricPlaces(PLAN, TABLE, route_times(PROBES))


def span(
    begin_s: float, end_s: float, *links: str, number: int = 0, asked: bool = True, direction: Direction | None = None
) -> BrokenSpan:
    begin_ns = round(begin_s * S)
    end_ns = end_s if end_s == inf else round(end_s * S)
    return BrokenSpan("f", number, "link-loss", begin_ns, begin_ns, end_ns, frozenset(links), direction, asked=asked)


def says(t_s: float, *names: str, p: float = 1.0, since_s: float | None = None) -> Answer:
    incidents = tuple(Incident(where=(name,), p=p, since_s=since_s) for name in names)
    return Answer(t_s=t_s, state=AnswerState.INCIDENT if names else AnswerState.HEALTHY, incidents=incidents)


def scored(spans: Sequence[BrokenSpan], *answers: Answer, places: FabricPlaces = PLACES) -> LocatingScore:
    return score(spans, answers, places, DURING, GRACE_NS)


# --- names ---


def test_a_switch_is_all_its_links_and_right_if_one_side_of_them_is_broken() -> None:
    assert PLACES.links(LINK) == {LINK}
    assert PLACES.links(T1) == {"p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"}
    assert PLACES.is_right(T1, PLACES.links(T1))
    assert not PLACES.is_right(T1, frozenset([LINK]))
    assert PLACES.is_right("p0-t0-0", frozenset(["h0:p0-t0-0", "h1:p0-t0-0"])), "all ports below it"
    assert PLACES.is_right("p0-t0-0", frozenset(["p0-t0-0:p0-t1-0", "p0-t0-0:p0-t1-1"])), "or above"
    assert not PLACES.is_right("p0-t0-0", frozenset(["h0:p0-t0-0", "p0-t0-0:p0-t1-0"])), "not one of each"


def test_what_the_same_packets_cross_is_the_same() -> None:
    way = TABLE.crossed("h0", ["h0:p0-t0-0", "p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1", "h2:p0-t0-1"])
    places = FabricPlaces(PLAN, TABLE, route_times([way]))
    assert places.seen == {"h0:p0-t0-0", "p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1", "h2:p0-t0-1"}
    nodes = {"h0", "p0-t0-0", "p0-t1-1", "p0-t0-1", "h2"}
    assert places.same(LINK, 50 * S) == places.seen | nodes
    assert places.same(OTHER, 50 * S) == {OTHER}, "none crossed it"
    assert all(PLACES.same(name, 50 * S) == {name} for name in (LINK, OTHER, T1)), "probes tell them apart"


def test_names_are_the_same_only_while_nothing_else_is_remembered() -> None:
    """A way that is taken later tells two links apart only from then on, and until it is forgotten."""
    both = TABLE.crossed("h0", ["h0:p0-t0-0", "p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1", "h2:p0-t0-1"])
    one = TABLE.crossed("h0", ["h0:p0-t0-0", "h0:p0-t0-0"])
    times = route_times([both])
    times.add([Observation(one, 50 * S, 51 * S, 1, 0, "h0")])
    places = FabricPlaces(PLAN, TABLE, times)
    port = "h0:p0-t0-0"
    assert LINK in places.same(port, 49 * S)
    assert LINK not in places.same(port, 50 * S)
    assert LINK not in places.same(port, 61 * S), "remembered for 10 s"
    assert LINK in places.same(port, 62 * S)


# --- the score ---


def test_a_fault_that_is_named_in_its_time_is_located() -> None:
    found = scored([span(10, 20, LINK)], says(0), says(13, LINK, since_s=10.5), says(21.5))
    (fault,) = found.faults
    assert (fault.located_ns, fault.cleared_ns, fault.since_ns) == (3 * S, 1.5 * S, 0.5 * S)
    assert (found.precision, found.recall, found.f1, found.falsely_accused) == (1, 1, 1, 0)
    assert (found.broken_ns, found.told_ns) == (10 * S, 7 * S)
    assert found.clean_ns == found.quiet_ns == (100 - 12) * S
    assert found.alarms == 0


def test_to_name_a_moment_after_the_heal_is_right_and_later_is_not() -> None:
    in_time = scored([span(10, 20, LINK)], says(21.9, LINK))
    assert (in_time.recall, in_time.precision) == (1, 1)
    late = scored([span(10, 20, LINK)], says(22.1, LINK))
    assert (late.recall, late.precision, late.falsely_accused, late.alarms) == (0, 0, 1, 1)


def test_another_link_is_a_false_accusation_each_time_that_it_is_named() -> None:
    found = scored([span(10, 20, LINK)], says(5, OTHER), says(6), says(12, LINK, OTHER), says(13, LINK, OTHER))
    assert [(one.t_ns, one.name, one.right) for one in found.accusations] == [
        (5 * S, OTHER, False),
        (12 * S, LINK, True),
        (12 * S, OTHER, False),
    ]
    assert found.precision == pytest.approx(1 / 3)


def test_a_whole_switch_needs_all_its_links_or_its_name() -> None:
    broken = [span(10, 20, *PLACES.links(T1))]
    assert scored(broken, says(11, T1)).recall == 1
    assert scored(broken, says(11, *PLACES.links(T1))).recall == 1
    assert scored(broken, says(11, LINK)).recall == 0
    assert scored([span(10, 20, LINK)], says(11, T1)).recall == 0, "the other link of it is whole"


def test_links_that_no_packet_met_need_not_be_named() -> None:
    way = TABLE.crossed("h0", ["h0:p0-t0-0", "p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1", "h2:p0-t0-1"])
    places = FabricPlaces(PLAN, TABLE, route_times([way, TABLE.crossed("h0", ["h0:p0-t0-0"] * 2)]))
    both = [span(10, 20, LINK, OTHER)]
    assert scored(both, says(11, LINK), places=places).recall == 1


@pytest.mark.parametrize(
    ("way", "named", "right"), [("up", 1, True), ("up", 2, False), ("down", 1, False), (None, 1, False)]
)
def test_one_way_of_a_link_is_like_the_other_way_of_the_next(way: Direction | None, named: int, right: bool) -> None:
    """In a ring over three T0s what goes up from one is all that comes down to the next."""
    plan = plan_of(1, 3, 1, 1)
    table = SuspectTable(plan)
    uplinks = [f"p0-t0-{number}:p0-t1-0" for number in range(3)]
    ports = [f"h{number}:p0-t0-{number}" for number in range(3)]
    ring = [(one, (one + 1) % 3) for one in range(3)]
    ways = [table.crossed(f"h{a}", [ports[a], uplinks[a], uplinks[b], ports[b]]) for a, b in ring]
    probes = [table.crossed(f"h{number}", [port, port]) for number, port in enumerate(ports)]
    places = FabricPlaces(plan, table, route_times([*ways, *probes]))
    found = scored(
        [span(10, 20, uplinks[0], direction=way)], says(0), says(11, uplinks[named]), says(21), places=places
    )
    assert found.recall == right
    assert found.falsely_accused == (not right)
    assert [one.cleared_ns for one in found.faults] == [S if right else None]


def test_one_way_of_a_port_is_like_the_switch_that_all_of_it_crosses() -> None:
    """Of what h0 sends all crosses the T0 of h2, and nothing else does; what h0 gets tells the port from it."""
    there = TABLE.crossed("h0", ["h0:p0-t0-0", "p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1", "h2:p0-t0-1"])
    back = TABLE.crossed("h1", ["h1:p0-t0-0", "h0:p0-t0-0"])
    places = FabricPlaces(PLAN, TABLE, route_times([there, back]))
    broken = [span(10, 20, *places.links("p0-t0-1"))]
    ways: tuple[tuple[Direction | None, bool], ...] = (("up", True), (None, True), ("down", False))
    for way, right in ways:
        incident = Incident(where=("h0:p0-t0-0",), direction=way)
        answer = Answer(t_s=11, state=AnswerState.INCIDENT, incidents=(incident,))
        assert scored(broken, answer, places=places).recall == right, way


def test_a_link_that_was_broken_twice_is_located_twice() -> None:
    spans = [span(10, 20, LINK), span(40, 50, LINK, number=1)]
    found = scored(spans, says(12, LINK), says(21), says(43, LINK), says(50))
    assert [fault.located_ns for fault in found.faults] == [2 * S, 3 * S]
    assert [fault.cleared_ns for fault in found.faults] == [1 * S, 0]
    standing = scored(spans, says(12, LINK), says(60))
    assert [fault.located_ns for fault in standing.faults] == [2 * S, 0]
    assert [fault.cleared_ns for fault in standing.faults] == [None, 10 * S], "it broke again before"


def test_what_may_be_named_is_neither_missed_nor_false() -> None:
    spans = [span(10, 20, LINK, asked=False)]
    assert scored(spans).recall is None
    named = scored(spans, says(12, LINK))
    assert (named.recall, named.precision, len(named.beside)) == (None, 1, 1)


def test_without_truth_everything_is_false_and_silence_is_right() -> None:
    quiet = scored([], says(0))
    assert (quiet.precision, quiet.recall, quiet.alarms, quiet.balanced_accuracy) == (None, None, 0, 1)
    loud = scored([], says(50, LINK))
    assert (loud.precision, loud.alarms, loud.balanced_accuracy) == (0, 1, 0.5)
    assert loud.alarms_an_hour == pytest.approx(36)


def test_how_sure_is_the_mean_square_of_what_was_off() -> None:
    found = scored([span(10, 20, LINK)], says(11, LINK, p=0.8), says(12, OTHER, p=0.4))
    assert found.brier == pytest.approx((0.2**2 + 0.4**2) / 2)


def test_a_fault_without_end_is_asked_for_until_the_end() -> None:
    found = scored([span(90, inf, LINK)], says(95, LINK))
    assert (found.recall, found.faults[0].cleared_ns, found.broken_ns) == (1, None, 10 * S)


def random_case(rng: random.Random) -> tuple[list[BrokenSpan], list[Answer]]:
    links = [*PLAN.link_by_name]
    spans, t_s = [], 1.0
    for number in range(rng.randrange(4)):
        begin_s = t_s + rng.uniform(3, 10)
        t_s = begin_s + rng.uniform(1, 10)
        spans.append(span(begin_s, t_s, *rng.sample(links, rng.randint(1, 3)), number=number))
    times = sorted(rng.uniform(0, 99) for _ in range(rng.randrange(8)))
    return spans, [says(t_s, *rng.sample([*PLACES.names], rng.randrange(3))) for t_s in times]


@pytest.mark.parametrize("seed", range(100))
def test_scores_are_shares_and_the_truth_itself_scores_full(seed: int) -> None:
    rng = random.Random(seed)
    spans, answers = random_case(rng)
    found = scored(spans, *answers)
    for share in (found.precision, found.recall, found.f1, found.balanced_accuracy, found.brier):
        assert share is None or 0 <= share <= 1
    assert 0 <= found.told_ns <= found.broken_ns
    assert 0 <= found.quiet_ns <= found.clean_ns
    assert all(one.located_ns is None or one.located_ns >= 0 for one in found.faults)
    truth = [each for one in spans for each in (says(one.begin_ns / S, *one.links), says(one.end_ns / S))]
    full = scored(spans, *truth)
    assert full.located_ns == [0] * len(spans)
    assert full.cleared_ns == [0] * len(spans)
    assert (full.falsely_accused, full.alarms) == (0, 0)


@pytest.mark.parametrize("seed", range(30))
def test_to_say_the_same_again_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    spans, answers = random_case(rng)
    again = [each for one in answers for each in (one, one.model_copy(update={"t_s": one.t_s + 1e-6}))]
    first, second = scored(spans, *answers), scored(spans, *again)
    assert (second.precision, second.recall) == (first.precision, first.recall)
    assert second.located_ns == first.located_ns


# --- what is asked for ---


def test_packets_to_show_a_loss_by_hand() -> None:
    """The gate over 1 x ln(1 / 0.001), about; of 1 % over 0.01 ln 10 + 0.99 ln(0.99 / 0.999) = 0.014066."""
    assert packets_to_show(1.0, 17.2) == 3
    assert packets_to_show(0.01, 17.2) == 1223
    assert packets_to_show(0.2, 17.2) == 20
    assert packets_to_show(0.0, 17.2) == packets_to_show(0.002, 17.2), "less is never asked for sooner"


WAY = TABLE.crossed("h0", ["h0:p0-t0-0", LINK, "p0-t0-1:p0-t1-1", "h2:p0-t0-1"])


def met(one: BrokenSpan, *rows: Observation, least_s: float = 0.4, needed: int = 3) -> BrokenSpan:
    spans = SpansMet([one], TABLE)
    spans.add(rows)
    (found,) = spans.expected(round(least_s * S), lambda share: needed)
    return found


def seen(begin_s: float, end_s: float, sent: int, lost: int = 0) -> Observation:
    return Observation(WAY, round(begin_s * S), round(end_s * S), sent, lost, "h0")


def test_a_fault_that_enough_packets_met_is_asked_for() -> None:
    found = met(span(10, 20, LINK), seen(11, 12, 3))
    assert (found.asked, found.shown) == (True, {LINK})
    assert not met(span(10, 20, LINK), seen(11, 12, 2)).asked
    assert not met(span(10, 20, LINK)).asked, "nothing was there"
    assert not met(span(10, 20, OTHER), seen(11, 12, 99)).asked, "all were elsewhere"


def test_a_fault_that_was_over_too_soon_is_not_asked_for() -> None:
    assert not met(span(10, 10.3, LINK), seen(10, 10.3, 99)).asked
    assert met(span(10, 10.4, LINK), seen(10, 10.4, 99)).asked
    assert met(span(10, inf, LINK), seen(10, 11, 99)).asked


def test_of_a_row_that_lies_in_the_time_in_part_that_part_counts() -> None:
    assert met(span(10, 20, LINK), seen(9, 11, 6)).asked
    assert not met(span(10, 20, LINK), seen(9, 11, 5)).asked
    assert met(span(10, 20, LINK), seen(9, 11, 5, lost=3)).asked, "what was lost met it"
    assert not met(span(10, 20, LINK), seen(8, 10, 99)).asked, "before it"
    assert not met(span(10, 20, LINK), seen(20, 22, 99)).asked, "after it"


def test_of_a_one_way_fault_packets_that_way_count() -> None:
    assert met(span(10, 20, LINK, direction="up"), seen(11, 12, 3)).asked
    assert not met(span(10, 20, LINK, direction="down"), seen(11, 12, 3)).asked


def test_only_links_that_packets_showed_must_be_named() -> None:
    found = met(span(10, 20, *PLACES.links(T1), OTHER), seen(11, 12, 3))
    assert found.shown == PLACES.links(T1)
    assert scored([found], says(11, T1)).recall == 1


def test_what_is_not_to_be_named_stays_so() -> None:
    assert not met(span(10, 20, LINK, asked=False), seen(11, 12, 99)).asked
