"""Ping and trace in virtual time: whole paths of every family, and where broken ones end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mrc_testbed.testbed.oam.commands import carry_out, read
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.testbed.virtual.fabric import VirtualFabric
from mrc_testbed.testbed.virtual.prober import VirtualProber
from mrc_testbed.testbed.virtual.scheduler import Scheduler
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.shape import Shape

FAMILIES = {
    "clos2": clos2_shape(2, 2, 3, 2, 25_000_000, 20_000_000),
    "clos3": Shape(2, Clos3(2, 2, 2, 4, 1), 25_000_000, 20_000_000),
    "rail": Shape(2, Rail(4, 2, 2), 25_000_000, 20_000_000),
}
OPTIONS = FabricOptions("dummy", "endpoint", "port program")
PATH = "h0 trace h3 p1/u1"


class Prompted:
    """A fabric in virtual time, and what is said at its prompt."""

    def __init__(self, plan: Plan) -> None:
        scheduler = Scheduler()
        self.plan = plan
        self.fabric = VirtualFabric(plan, OPTIONS, scheduler, 1)
        self.prober = VirtualProber(self.fabric, scheduler)

    def ask(self, line: str) -> tuple[int, list[str]]:
        lines: list[str] = []
        return carry_out(read(self.plan, line.split()), self.prober, self.plan, lines.append), lines


@pytest.fixture
def prompted() -> Prompted:
    return Prompted(build_plan(FAMILIES["clos2"]).answering())


@pytest.mark.parametrize("word", FAMILIES)
def test_every_path_is_traced_through_its_switches_and_every_switch_answers(word: str) -> None:
    prompted = Prompted(build_plan(FAMILIES[word]).answering())
    plan = prompted.plan
    first, last = plan.hosts[0], plan.hosts[-1]
    for path in plan.paths(first, last):
        status, lines = prompted.ask(f"h0 trace {last.name} p{path.id.plane}/u{path.id.uplink}")
        passed = [*plan.switches_on_path(first, last, path.id), last.name]
        assert (status, [line.split()[1] for line in lines[1:]]) == (0, passed), lines
        assert [line.rpartition(" ")[2] for line in lines[1:-1]] == passed[1:], "what comes next"
    for switch in plan.switches:
        status, lines = prompted.ask(f"h0 ping {switch.name}")
        assert (status, len(lines), "  3 of 3  " in lines[0]) == (0, 1, True), lines


def test_a_switch_is_half_of_t_away_and_a_host_t(prompted: Prompted) -> None:
    _, lines = prompted.ask(PATH)
    times_ms = [float(line.split()[3]) for line in lines[1:]]
    assert times_ms == sorted(times_ms)
    assert 10 < times_ms[0] < times_ms[2] < 11
    assert 20 < times_ms[3] < 21


def test_entries_that_are_missing_or_wrong_are_named(prompted: Prompted) -> None:
    plan, fabric = prompted.plan, prompted.fabric
    entry, other = plan.port_toward("p1-t0-0", "p1-t1-1"), plan.port_toward("p1-t0-0", "p1-t1-2")
    fabric.mislead("p1-t0-0", {entry: None})
    assert prompted.ask(PATH)[1][-1] == "ends at p1-t0-0, which has no entry for p1-t1-1"
    assert prompted.ask("h0 ping p1-t1-1")[1][-1] == "ends at p1-t0-0, which has no entry for p1-t1-1"
    fabric.mislead("p1-t0-0", {entry: other, other: entry})
    wrong = "ends at p1-t1-2, which is not on the path: p1-t0-0 sends there what is for p1-t1-1"
    assert prompted.ask(PATH) == (1, [*prompted.ask(PATH)[1][:-1], wrong])
    assert prompted.ask("h0 trace h3 p1/u0")[0] == 0
    fabric.mislead("p1-t0-0", {})
    assert prompted.ask(PATH)[0] == 0


@pytest.mark.parametrize("how", ["cut", "silent", "off"])
def test_a_dead_path_ends_behind_the_last_switch_that_is_heard(how: str, prompted: Prompted) -> None:
    plan, fabric = prompted.plan, prompted.fabric
    if how == "cut":
        fabric.ports_down([plan.link_by_name["p1-t0-0:p1-t1-1"].far])
    elif how == "silent":
        fabric.silence("p1-t1-1")
    else:
        fabric.switch_off("p1-t1-1")
    status, lines = prompted.ask(PATH)
    assert (status, lines[-1]) == (1, "ends behind p1-t0-0: the link p1-t0-0:p1-t1-1 or p1-t1-1 says nothing")
    assert prompted.ask("h0 trace h3 p1/u2")[0] == 0
    assert prompted.ask("h0 trace h3 p0/u1")[0] == 0


def test_a_port_that_is_down_is_a_missing_entry(prompted: Prompted) -> None:
    prompted.fabric.ports_down([prompted.plan.link_by_name["p1-t0-1:p1-t1-1"].far])
    assert prompted.ask(PATH)[1][-1] == "ends at p1-t1-1, which has no entry for p1-t0-1"


def test_a_lossy_link_shows_by_many_questions(prompted: Prompted) -> None:
    prompted.fabric.add_rule("p1-t0-0:p1-t1-1", "far", PortRule("drop", 0.3))
    status, lines = prompted.ask(f"{PATH} -c 100")
    assert status == 0
    assert lines[-1].startswith("loses ")
    assert lines[-1].endswith("the first of all at p1-t1-1")
    assert 10 <= int(lines[-1].split()[1]) <= 50
    assert prompted.ask("h0 trace h3 p1/u0 -c 100")[1][-1].split()[1] == "h3", "another path loses nothing"


def test_a_rule_about_one_path_leaves_packets_for_switches_alone(prompted: Prompted) -> None:
    prompted.fabric.add_rule("p1-t0-0:p1-t1-1", "far", PortRule("drop", uplink=1, source=0))
    assert prompted.ask("h0 ping p1-t1-1")[0] == 0
    assert prompted.ask(PATH)[0] == 1
    assert prompted.ask("h1 trace h3 p1/u1")[0] == 0


def test_a_host_without_a_route_back_is_not_asked() -> None:
    prompted = Prompted(replace(build_plan(FAMILIES["clos2"]).answering(), talking=frozenset()))
    status, lines = prompted.ask(PATH)
    assert (status, lines[-1]) == (0, "h3 is not asked: it has no route to h0 (`fabric.routes: all`)")


def test_questions_are_in_the_counts_of_ports_as_neither_data_nor_control(prompted: Prompted) -> None:
    prompted.ask("h0 ping -c 7 p1-t1-1")
    counts = prompted.fabric.port_counts()
    assert counts["p1-t0-0", "down0"].in_other == 7 == counts["p1-t0-0", "down0"].out_other
    assert {one.in_data + one.in_control + one.in_trimmed for one in counts.values()} == {0}
    assert not prompted.fabric.no_routes()
