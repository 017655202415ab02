"""`h0 trace h3` and `h0 ping p1-t1-1` at a prompt: what is asked, and what is shown of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.oam.commands import carry_out, is_ours, read
from mrc_testbed.testbed.oam.probes import HopAnswer, HopSays, Probe
from mrc_testbed.topos import names
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape

PLAN = build_plan(clos2_shape(2, 2, 2, 2, 10**8, 0)).answering()
TIERS = build_plan(Shape(1, Clos3(2, 2, 2, 2, 1), 10**8, 0)).answering()
Says = Callable[[Probe], HopAnswer | None]


def well(probe: Probe) -> HopAnswer:
    """A network without a fault: 20 ms a hop."""
    rtt_ns = probe.hops * 20_000_000
    if probe.hops > len(probe.way) and probe.target is not None:
        return HopAnswer(HopSays.REPLY, probe.target.name, rtt_ns)
    by = names.switch_name(probe.plane, *probe.way[probe.hops - 1])
    if probe.target is None:
        return HopAnswer(HopSays.REPLY, by, rtt_ns)
    return HopAnswer(HopSays.HOPS_ENDED, by, rtt_ns, tuple(probe.uids[probe.hops :]))


class Scripted:
    def __init__(self, says: Says) -> None:
        self.says = says
        self.asked: list[Probe] = []

    def ask(self, probes: Sequence[Probe]) -> list[HopAnswer | None]:
        self.asked += probes
        return [self.says(probe) for probe in probes]


def ask(line: str, says: Says = well, plan: Plan = PLAN) -> tuple[int, list[str]]:
    lines: list[str] = []
    words = line.split()
    assert is_ours(plan, words)
    status = carry_out(read(plan, words), Scripted(says), plan, lines.append)
    return status, lines


def test_a_whole_path_has_a_line_for_each_node_and_no_more() -> None:
    assert ask("h0 trace h3 p1/u1") == (
        0,
        [
            "h0 to h3 by p1/u1, fcbb:bb00:1100:2101:1101:d101::",
            "1  p1-t0-0  fcbb:bb00:1100::     20 ms  then p1-t1-1",
            "2  p1-t1-1  fcbb:bb00:2101::     40 ms  then p1-t0-1",
            "3  p1-t0-1  fcbb:bb00:1101::     60 ms  then h3",
            "4  h3       fd00::3:1:0:0:1      80 ms",
        ],
    )


def test_three_tiers_are_walked_like_two() -> None:
    status, lines = ask("h0 trace h3", plan=TIERS)
    passed = ["p0-t0-0", "p0-t1-0", "p0-t2-0", "p0-t1-2", "p0-t0-3", "h3"]
    assert (status, [line.split()[1] for line in lines[1:]]) == (0, passed)
    assert ask("h0 ping p0-t2-1", plan=TIERS)[1][0].startswith("p0-t2-1  fcbb:bb00:1000:2001:3001::  3 of 3  60 ms")


def silent_from(hops: int) -> Says:
    return lambda probe: well(probe) if probe.hops < hops else None


@pytest.mark.parametrize(
    ("hops", "text"),
    [
        (1, "ends behind h0: the link h0:p1-t0-0 or p1-t0-0 says nothing"),
        (2, "ends behind p1-t0-0: the link p1-t0-0:p1-t1-1 or p1-t1-1 says nothing"),
        (4, "ends behind p1-t0-1: the link h3:p1-t0-1 or h3 says nothing"),
    ],
)
def test_a_dead_path_ends_behind_the_last_node_that_was_heard(hops: int, text: str) -> None:
    status, lines = ask("h0 trace h3 p1/u1", silent_from(hops))
    assert (status, lines[-1], len(lines)) == (1, text, 6), "a node that is silent may have others behind it"


def test_a_switch_alone_that_says_nothing_is_no_end() -> None:
    status, lines = ask("h0 trace h3 p1/u1", lambda probe: None if probe.hops == 2 else well(probe))
    assert (status, lines[2].split(), lines[-1].split()[1]) == (0, ["2", "p1-t1-1", "fcbb:bb00:2101::", "*"], "h3")


def test_a_missing_entry_is_named() -> None:
    def says(probe: Probe) -> HopAnswer | None:
        if probe.target is None and probe.hops == 1:
            return well(probe)
        return HopAnswer(HopSays.NO_ROUTE, "p1-t0-0", 20_000_000, (0x2101, 0x1101, 0xD101)[: probe.hops])

    status, lines = ask("h0 trace h3 p1/u1", says)
    assert (status, lines[-1], len(lines)) == (1, "ends at p1-t0-0, which has no entry for p1-t1-1", 3)
    status, lines = ask("h0 ping p1-t1-1", says)
    assert (status, lines[-1]) == (1, "ends at p1-t0-0, which has no entry for p1-t1-1")


def test_a_wrong_entry_shows_where_packets_are_led() -> None:
    def says(probe: Probe) -> HopAnswer | None:
        astray = HopAnswer(HopSays.NO_ROUTE, "p1-t1-0", 40_000_000, (0x2101, 0x1101))
        return well(probe) if probe.hops == 1 else astray

    status, lines = ask("h0 trace h3 p1/u1", says)
    assert (status, lines[2:]) == (
        1,
        [
            "2  p1-t1-1  fcbb:bb00:2101::         *",
            "   p1-t1-0  fcbb:bb00:2100::     40 ms",
            "ends at p1-t1-0, which is not on the path: p1-t0-0 sends there what is for p1-t1-1",
        ],
    )


def test_a_grey_path_says_how_much_it_loses_and_from_where() -> None:
    def says(probe: Probe) -> HopAnswer | None:
        return None if probe.hops >= 2 and probe.number % 5 == 0 else well(probe)

    status, lines = ask("h0 trace -c 50 h3 p1/u1", says)
    assert status == 0
    assert lines[2].split()[4:] == ["ms", "40", "of", "50", "then", "p1-t0-1"]
    assert lines[-1] == "loses 10 of 50, there or back, and the first of all at p1-t1-1"


def test_losses_of_other_ways_back_are_no_losses_of_the_path() -> None:
    def says(probe: Probe) -> HopAnswer | None:
        return None if probe.hops == 3 and probe.number % 2 else well(probe)

    status, lines = ask("h0 trace h3 p1/u1", says)
    assert (status, lines[-1].split()[1]) == (0, "h3")


def test_switches_are_asked_few_questions_that_they_answer_seldom() -> None:
    prober = Scripted(well)
    carry_out(read(PLAN, ["h0", "trace", "-c", "100", "h3"]), prober, PLAN, lambda _line: None)
    assert all(
        sum(probe.hops == hops and probe.target is not None for probe in prober.asked) <= 2 for hops in (1, 2, 3)
    )
    assert len({probe.number for probe in prober.asked}) == len(prober.asked)


def test_a_host_without_a_route_back_is_not_asked() -> None:
    plan = replace(PLAN, talking=frozenset({(0, 1), (1, 0)}))
    status, lines = ask("h0 trace h3", plan=plan)
    assert (status, len(lines), lines[-1]) == (0, 5, "h3 is not asked: it has no route to h0 (`fabric.routes: all`)")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("h0 trace", "usage: HOST trace"),
        ("h0 trace h0", "h0 is not another host"),
        ("h0 trace p0-t0-0", "p0-t0-0 is not another host"),
        ("h0 trace h3 p1/u7", "write one such as p0/u0, p0/u1, p1/u0"),
        ("h0 trace h3 p1/u1 more", "usage"),
        ("h0 trace -c 0 h3", "-c: '0' is not a number from 1 to 1000"),
        ("h0 trace h3 -c", "-c: '' is not"),
        ("h0 ping p1-t1-1 u4", "u4 is no way from h0 to p1-t1-1; there are u0"),
        ("h0 ping h1 p1-t1-1", "h1 is no switch"),
    ],
)
def test_a_mistake_is_one_line(line: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(PLAN, line.split())
    assert why in str(refused.value)


def test_switches_that_stay_silent_are_not_asked() -> None:
    with pytest.raises(UsageError, match=r"fabric: \{oam: always\}"):
        read(replace(PLAN, answers=False), ["h0", "trace", "h3"])


def test_other_commands_are_for_the_node() -> None:
    assert not is_ours(PLAN, ["h0", "ping", "-c1", "h3"])
    assert not is_ours(PLAN, ["p0-t0-0", "ping", "h3"])
    assert not is_ours(PLAN, ["h0"])
