"""Faults that hold the same things at once: whatever the order, the fabric is the plan minus the faults that are on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.schedule import heal, inject
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.scenario import Effect, Occurrence, Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.faults.kinds.tables import misled_by
from mrc_testbed.testbed.switching.thresholds import LevelFlaws
from mrc_testbed.topos.nodes import Interface
from mrc_testbed.topos.plan import Plan, build_plan
from tests.unit.fakes import FakeFabric

HEAD = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
endpoint: {icrc: true}
faults:
"""
LINK = "p0-t0-0:p0-t1-1"
LINES = (
    f"link-down: '{LINK}', for: 1s",
    f"link-flap: ['{LINK}', 'p0-t0-1:p0-t1-1'], period: 100ms, count: 3",
    "port-flap: 'h0:*', period: 100ms, count: 2",
    "transceiver-flap: p0-t0-0, period: 100ms, count: 2",
    "switch-reboot: p0-t1-1, boot: 1s",
    "switch-reboot: [p0-t1-1, p0-t0-0], boot: 1s",
    "switch-reboot: p0-t0-0, boot: 1s",
    f"link-rate: '{LINK}', rate: 5mbit, for: 1s",
    f"link-rate: ['{LINK}', 'h0:p0-t0-0'], rate: 2mbit, for: 1s",
    "link-rate: 'h0:p0-t0-0', rate: 9mbit, for: 1s",
    f"link-loss: '{LINK}', loss: 20%, for: 1s",
    "switch-silent: p0-t1-1, for: 1s",
    f"corrupt: '{LINK}', share: 1%, for: 1s",
    f"entry-missing: ['{LINK}', 'p0-t0-1:p0-t1-1'], direction: up, for: 1s",
    f"entry-wrong: '{LINK}', direction: up, for: 1s",
    f"cables-swapped: '{LINK}', with: 'p0-t0-0:p0-t1-0', for: 1s",
    "ecn-stuck: [p0-t1-1, p0-t0-0], marks: always, for: 1s",
    "trim-off: p0-t1-1, for: 1s",
    "shallow-buffer: p0-t1-1, drop: 0.3, for: 1s",
    "host-slow: [h0, h1], per_packet: 1ms, for: 1s",
    "host-slow: h0, per_packet: 2ms, for: 1s",
    "host-pause: h0, for: 100ms",
)
SCENARIO = load_scenario_text(HEAD + "".join(f"  - {{at: 1s, {line}, name: f{n}}}\n" for n, line in enumerate(LINES)))
PLAN = build_plan(SCENARIO.shape())
OCCURRENCES = SCENARIO.occurrences
ON_ONE_PLANE = load_scenario_text(
    HEAD
    + "".join(f"  - {{at: 1s, {line}, name: f{number}}}\n" for number, line in enumerate(LINES))
    + "  - {at: 1s, port-flap: 'h0:*', period: 100ms, count: 3, jitter: 40%, name: ports}\n"
    + "  - {at: 1s, link-down: 'p1-t0-0:p1-t1-1', for: 1s, name: other-plane}\n"
    + "  - {at: 1s, link-rate: 'p1-t0-0:p1-t1-1', rate: 2mbit, for: 1s, name: slow-there}\n",
    overrides=["fabric.layout=folded"],
)
"""Faults of two planes meet on one."""


class Bench:
    """A fabric that refuses what a kernel would, and its injector."""

    def __init__(self, plan: Plan = PLAN) -> None:
        self.plan = plan
        self.fabric = FakeFabric(plan)
        fabric = self.fabric
        self.injector = Injector(TargetSystem(cast(Fabric, fabric), fabric.update_denylists, fabric.hinder))

    def assert_is_plan_minus(self, on: list[Occurrence]) -> None:
        down: set[Interface] = set()
        off: set[str] = set()
        rates: dict[str, int] = {}
        misled: dict[Interface, Interface | None] = {}
        flawed: dict[str, frozenset[str]] = {}
        burdens: dict[str, tuple[bool, int]] = {}
        for occurrence in on:
            if occurrence.kind == "switch-reboot":
                off |= set(occurrence.targets)
                down |= {own for name in occurrence.targets for own, _ in self.plan.ports[name]}
            elif occurrence.kind == "link-rate":
                rates |= {
                    link: min(occurrence.parameters.rate_bps, rates.get(link, 10**9)) for link in occurrence.targets
                }
            elif occurrence.kind.endswith(("-down", "-flap")):
                down |= {self.plan.link_by_name[name].far for name in occurrence.links}
            elif occurrence.model.effect is Effect.TABLE:
                misled |= misled_by(occurrence, self.plan)
            elif occurrence.model.effect is Effect.LEVELS:
                flawed |= {name: flawed.get(name, frozenset()) | {occurrence.kind} for name in occurrence.targets}
            elif occurrence.model.effect is Effect.HOSTS:
                for name in occurrence.targets:
                    held, slow = burdens.get(name, (False, 0))
                    own = occurrence.parameters.values
                    burdens[name] = held or bool(own.get("held")), max(slow, int(own.get("per_packet_ns", 0)))
        places = sum(len(occurrence.places) for occurrence in on)
        assert (self.fabric.down, self.fabric.off, self.fabric.rates) == (down, off, rates)
        assert len(self.fabric.rules) == places
        assert self.fabric.misled == misled
        assert {name: kinds_of(flaws) for name, flaws in self.fabric.flaws.items()} == flawed
        assert self.fabric.burdens == burdens
        assert list(self.injector.broken.values()) == on


def kinds_of(flaws: LevelFlaws) -> frozenset[str]:
    """The kinds of faults that make such flaws."""
    found = {"ecn-stuck": flaws.marks == "always", "trim-off": not flaws.trims, "shallow-buffer": flaws.drop == 0.3}
    return frozenset(kind for kind, there in found.items() if there)


@pytest.mark.parametrize("scenario", [SCENARIO, ON_ONE_PLANE], ids=["as written", "folded"])
@settings(deadline=None)
@given(toggles=st.lists(st.integers(0, 99), max_size=60))
def test_the_fabric_is_always_the_plan_minus_the_faults_that_are_on(scenario: Scenario, toggles: list[int]) -> None:
    site = Bench(scenario.plan())
    on: list[Occurrence] = []
    for number in toggles:
        occurrence = scenario.occurrences[number % len(scenario.occurrences)]
        if occurrence in on:
            site.injector.do(heal(occurrence))
            on.remove(occurrence)
            site.injector.read_back(heal(occurrence))
        else:
            site.injector.do(inject(occurrence))
            on.append(occurrence)
        site.assert_is_plan_minus(on)
    for occurrence in reversed(on):
        site.injector.do(heal(occurrence))
    site.assert_is_plan_minus([])
    site.injector.verify_healed()


def test_occurrences_of_one_fault_may_overlap() -> None:
    site = Bench()
    first = OCCURRENCES[0]
    second = replace(first, number=1)
    for step in (inject(first), inject(second), heal(first)):
        site.injector.do(step)
    site.assert_is_plan_minus([second])
    site.injector.do(heal(second))
    site.assert_is_plan_minus([])


def test_a_port_that_outlives_its_fault_is_found() -> None:
    site = Bench()
    site.fabric.down = {PLAN.link_by_name[LINK].far}
    with pytest.raises(FabricError, match="p0-t1-1: read-back: down0 is still held down by a fault"):
        site.injector.verify_healed()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_a_link_comes_back_with_the_last_fault_that_holds_it(order: tuple[int, ...]) -> None:
    site = Bench()
    occurrences: tuple[Any, ...] = tuple(
        next(occurrence for occurrence in OCCURRENCES if occurrence.fault == name and not occurrence.number)
        for name in ("f0", "f1", "f4")
    )
    end = PLAN.link_by_name[LINK].far
    for occurrence in occurrences:
        site.injector.do(inject(occurrence))
    for number in order:
        assert end in site.fabric.down
        site.injector.do(heal(occurrences[number]))
    assert not site.fabric.down
    assert not site.fabric.off
