"""A kind of fault from outside the project is like any other: read, scheduled, injected, drawn and recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from fakes import FakeFabric
from pydantic import Field

from testbed.errors import ScenarioError
from testbed.fabric.fabric import Fabric
from testbed.fabric.readback_queues import Unplanned
from testbed.faults.actions import ACTIONS
from testbed.faults.inject import Injector
from testbed.faults.plugin import FaultKind, register_fault
from testbed.faults.schedule import fault_schedule
from testbed.faults.target_system import TargetSystem
from testbed.live.fabric import link_state
from testbed.pages.report.faults import state_of
from testbed.scenario import Occurrence, load_scenario_text, scenario_json_schema
from testbed.scenario.faults import (
    KINDS,
    Drawing,
    Effect,
    Lasting,
    State,
    Target,
    Targets,
    read_occurrences,
    requestable,
)
from testbed.scenario.faults.base import Misfit, Surroundings
from testbed.scenario.faults.chaos import parts
from tests.plugins import MTU_FAULT, registered, run
from topos.plan import build_plan

HEAD = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
faults:
"""
LINK, OTHER = "p0-t0-0:p0-t1-1", "p0-t0-0:p0-t1-0"


@pytest.fixture
def plugin() -> Iterator[None]:
    with registered():
        yield


def loaded(*faults: str) -> tuple[Occurrence, ...]:
    return load_scenario_text(HEAD + "".join(f"  - {{{fault}}}\n" for fault in faults)).occurrences


def mistakes(fault: str) -> str:
    with pytest.raises(ScenarioError) as refused:
        loaded(fault)
    return str(refused.value)


@pytest.mark.usefixtures("plugin")
def test_a_scenario_may_use_the_kind() -> None:
    (one,) = loaded(f"at: 1s, link-mtu: ['{LINK}', '{OTHER}'], mtu: 2000, for: 2s")
    assert (one.fault, one.kind, one.links) == ("link-mtu-1", "link-mtu", (LINK, OTHER))
    assert one.title == f"link-mtu {LINK}, {OTHER} at 2000 bytes"
    steps = [(step.at_ns, step.action.value) for step in fault_schedule([one])]
    assert steps == [(10**9, "inject"), (3 * 10**9, "heal")]
    assert (state_of(one.kind), link_state(one)) == ("lossy", State.LOSSY)


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (f"at: 1s, link-mtu: '{LINK}', for: 2s", "the key 'mtu' is missing; write for example `mtu: 2000`"),
        (f"at: 1s, link-mtu: '{LINK}', mtu: 100, for: 2s", "must be at least 1280, such as 2000; got 100"),
        (f"at: 1s, link-mtu: '{LINK}', mtu: 2000, fur: 2s", "unknown key 'fur'; did you mean 'for'?"),
        ("at: 1s, link-mtu: p0-t1-1, mtu: 2000, for: 2s", "link-mtu needs a link by its two ends"),
        (f"at: 1s, link-mtv: '{LINK}', mtu: 2000, for: 2s", "unknown fault kind 'link-mtv'; did you mean 'link-mtu'?"),
        ("at: 1s, for: 2s", "switch-silent, deny, link-mtu, chaos"),
    ],
)
def test_mistakes_in_its_keys_are_told_as_of_all_kinds(fault: str, says: str) -> None:
    assert says in mistakes(fault)


def test_without_the_plugin_there_is_no_such_kind() -> None:
    assert "unknown fault kind 'link-mtu'" in mistakes(f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s")
    assert "link-mtu" not in json.dumps(scenario_json_schema())


@pytest.mark.usefixtures("plugin")
def test_the_schema_knows_its_keys() -> None:
    keys = scenario_json_schema()["$defs"]["LinkMtu"]
    assert keys["properties"]["mtu"]["minimum"] == 1280
    assert "link-mtu" in keys["required"]


@pytest.mark.usefixtures("plugin")
def test_what_was_recorded_is_read_again() -> None:
    made = loaded(f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s")
    records = json.loads(json.dumps([one.as_record() for one in made]))
    assert records[0]["how"]["values"] == {"mtu": 2000}
    assert read_occurrences(records, build_plan(load_scenario_text(HEAD.replace("faults:", "")).shape())) == made


def test_occurrences_of_the_kinds_of_the_project_have_no_values_in_plan_json() -> None:
    (one,) = loaded(f"at: 1s, link-down: '{LINK}', for: 2s")
    assert one.as_record()["how"].keys() == {"share", "rate_bps", "sender", "peer", "words"}


class LinesFabric(FakeFabric):
    """Notes what `ip` was told, and has MTUs by (node, port)."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.mtus: dict[tuple[str, str], int] = {}

    def ip(self, lines: dict[str, list[str]]) -> None:
        for node, texts in lines.items():
            for text in texts:
                device, mtu = re.fullmatch(r"link set dev (\S+) mtu (\d+)", text).groups()  # type: ignore[union-attr]
                self.mtus[node, device] = int(mtu)


@pytest.mark.usefixtures("plugin")
def test_it_is_injected_and_healed_and_the_lowest_of_two_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = loaded(
        f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s", f"at: 2s, link-mtu: '{LINK}', mtu: 3000, for: 2s"
    )
    plan = build_plan(load_scenario_text(HEAD.replace("faults:", "")).shape())
    fabric = LinesFabric(plan)
    monkeypatch.setattr(TargetSystem, "ip", lambda _, lines: fabric.ip(lines))
    injector = Injector(TargetSystem(cast(Fabric, fabric), fabric.tell))
    ends = plan.link_by_name[LINK].ends
    seen = []
    for step in fault_schedule([low, high]):
        injector.do(step)
        seen.append({fabric.mtus[end.node, end.name] for end in ends})
        assert set(fabric.unplanned) == ({Unplanned(end, "mtu") for end in ends} if injector.broken else set())
    assert seen == [{2000}, {2000}, {3000}, {9000}]
    injector.read_back(step)
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-1")


@pytest.mark.usefixtures("plugin")
def test_a_file_that_is_run_again_replaces_its_kind() -> None:
    before = KINDS["link-mtu"]
    run(MTU_FAULT)
    assert KINDS["link-mtu"] is not before
    assert ACTIONS["link-mtu"] is KINDS["link-mtu"]  # type: ignore[comparison-overlap]


class Kind(Lasting):
    """A whole kind; tests take something away."""

    kind: ClassVar[str] = "flicker"
    target: ClassVar[Target] = Target.LINK
    effect: ClassVar[Effect] = Effect.OWN
    drawing: ClassVar[Drawing] = Drawing(State.LOSSY)
    aims: Targets = Field(alias="flicker", description="the link or links", examples=[LINK])

    @staticmethod
    def inject(system: TargetSystem, occurrence: Occurrence) -> None: ...

    @staticmethod
    def heal(system: TargetSystem, occurrence: Occurrence) -> None: ...

    @staticmethod
    def unplanned(occurrence: Occurrence, plan: Any) -> list[Unplanned]:
        return []


def test_chaos_and_requests_are_only_for_kinds_that_say_so() -> None:
    assert isinstance(Kind, FaultKind)
    with registered():
        register_fault(type("Shown", (Kind,), {"chaos": {"of": "T0-T1 links", "for": "1s"}, "__module__": __name__}))
        assert "flicker" in parts()
        assert "link-mtu" not in parts()
        storm = loaded("at: 1s, for: 20s, chaos: {flicker: 2/s}, name: storm")
        assert {(one.fault, one.kind) for one in storm} == {("storm", "flicker")}
        assert list(requestable()) == ["cut", "lossy", "reboot", "silence"]


def test_a_kind_may_have_rules_of_its_own() -> None:
    class Picky(Kind):
        def misfits(self, around: Surroundings) -> Iterator[Misfit]:
            if around.plan and around.plan.shape.planes < 4:
                yield Misfit("for", f"lasts too long for {around.plan.shape.planes} planes")

    with registered():
        register_fault(Picky)
        told = mistakes(f"at: 1s, flicker: '{LINK}', for: 2s")
    assert "faults.0.for: lasts too long for 2 planes" in told


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"kind": "link-down"}, "needs the alias 'link-down'"),
        ({"kind": "Flicker!"}, "'Flicker!' cannot be the key of a fault kind"),
        ({"kind": "chaos"}, "'chaos' cannot be the key of a fault kind"),
        ({"drawing": Drawing(State.SILENT)}, "its drawing must be one of denied, slow, lossy, broken"),
        ({"chaos": {"of": "links", "fur": "1s"}}, "`chaos` has 'fur', which is none of its keys"),
        ({"chaos": {"for": "1s"}}, "`chaos` needs `of`"),
    ],
)
def test_a_kind_that_is_not_whole_is_refused(changed: dict[str, Any], says: str) -> None:
    before = dict(KINDS)
    with pytest.raises(ValueError, match=re.escape(says)):
        register_fault(type("Odd", (Kind,), {**changed, "__module__": __name__}))
    assert before == KINDS


def test_a_class_without_an_action_is_refused() -> None:
    with pytest.raises(ValueError, match="LinkDown is no fault kind; it lacks inject, heal, unplanned"):
        register_fault(KINDS["link-down"])


def test_a_key_that_is_taken_is_refused() -> None:
    class LinkDown(Kind):
        kind: ClassVar[str] = "link-down"
        aims: Targets = Field(alias="link-down", description="the link or links", examples=[LINK])

    with pytest.raises(ValueError, match="there is a fault kind 'link-down' already"):
        register_fault(LinkDown)


def test_the_example_is_short() -> None:
    assert len(Path(MTU_FAULT).read_text(encoding="utf-8").splitlines()) <= 40
