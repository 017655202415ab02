"""A kind of fault from outside the project is like any other, in a scenario that names its file: read, scheduled,
injected, drawn and recorded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from pydantic import Field

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.schedule import fault_schedule
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.live.fabric import link_state
from mrc_testbed.testbed.scenario import Occurrence, load_scenario_text, scenario_json_schema
from mrc_testbed.testbed.scenario.faults import (
    KINDS,
    Drawing,
    Effect,
    Lasting,
    State,
    Target,
    Targets,
    read_occurrences,
    requestable,
    with_kinds,
)
from mrc_testbed.testbed.scenario.faults.chaos import Chaos, parts
from mrc_testbed.testbed.scenario.faults.registry import wrong_kind
from mrc_testbed.testbed.scenario.plugins.kinds import KINDS as PLUGIN_KINDS
from mrc_testbed.testbed.switching.expected import Unplanned
from mrc_testbed.topos.plan import build_plan
from tests.plugins import MTU_FAULT, mtu_kind
from tests.unit.fakes import FakeFabric

HEAD = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
workload: [{train: {hosts: all, steps: 90, compute: 100ms, allreduce: 1MiB}}]
faults:
"""
WITH_PLUGIN = f"plugins: [{MTU_FAULT}]\n{HEAD}"
LINK, OTHER = "p0-t0-0:p0-t1-1", "p0-t0-0:p0-t1-0"


def loaded(*faults: str, head: str = WITH_PLUGIN) -> tuple[Occurrence, ...]:
    return load_scenario_text(head + "".join(f"  - {{{fault}}}\n" for fault in faults)).occurrences


def mistakes(fault: str, head: str = WITH_PLUGIN) -> str:
    with pytest.raises(ScenarioError) as refused:
        loaded(fault, head=head)
    return str(refused.value)


def test_a_scenario_may_use_the_kind() -> None:
    (one,) = loaded(f"at: 1s, link-mtu: ['{LINK}', '{OTHER}'], mtu: 2000, for: 2s")
    assert (one.fault, one.kind, one.links) == ("link-mtu-1", "link-mtu", (LINK, OTHER))
    assert one.title == f"link-mtu {LINK}, {OTHER} at 2000 bytes"
    steps = [(step.at_ns, step.action.value) for step in fault_schedule([one])]
    assert steps == [(10**9, "inject"), (3 * 10**9, "heal")]
    assert link_state(one) is State.LOSSY


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (f"at: 1s, link-mtu: '{LINK}', for: 2s", "the key 'mtu' is missing; write for example `mtu: 2000`"),
        (f"at: 1s, link-mtu: '{LINK}', mtu: 100, for: 2s", "must be at least 1280, such as 2000; got 100"),
        (f"at: 1s, link-mtu: '{LINK}', mtu: 2000, fur: 2s", "unknown key 'fur'; did you mean 'for'?"),
        ("at: 1s, link-mtu: p0-t1-1, mtu: 2000, for: 2s", "link-mtu needs a link by its two ends"),
        (f"at: 1s, link-mtv: '{LINK}', mtu: 2000, for: 2s", "unknown fault kind 'link-mtv'; did you mean 'link-mtu'?"),
        ("at: 1s, for: 2s", "cables-swapped, deny, link-mtu, chaos"),
    ],
)
def test_mistakes_in_its_keys_are_told_as_of_all_kinds(fault: str, says: str) -> None:
    assert says in mistakes(fault)


def test_without_the_plugin_there_is_no_such_kind() -> None:
    assert "unknown fault kind 'link-mtu'" in mistakes(f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s", HEAD)
    assert "link-mtu" not in json.dumps(scenario_json_schema())


def test_the_schema_knows_its_keys() -> None:
    keys = scenario_json_schema(load_scenario_text(WITH_PLUGIN.replace("faults:", "")).offered)["$defs"]["LinkMtu"]
    assert keys["properties"]["mtu"]["minimum"] == 1280
    assert "link-mtu" in keys["required"]


def test_what_was_recorded_is_read_again() -> None:
    made = loaded(f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s")
    records = json.loads(json.dumps([one.as_record() for one in made]))
    assert records[0]["how"]["values"] == {"mtu": 2000}
    scenario = load_scenario_text(WITH_PLUGIN.replace("faults:", ""))
    assert read_occurrences(records, build_plan(scenario.shape()), scenario.fault_kinds) == made
    with pytest.raises(ValueError, match="cycle 0: there is no kind link-mtu"):
        read_occurrences(records, build_plan(scenario.shape()), KINDS)


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


def test_it_is_injected_and_healed_and_the_lowest_of_two_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = loaded(
        f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s", f"at: 2s, link-mtu: '{LINK}', mtu: 3000, for: 2s"
    )
    plan = build_plan(load_scenario_text(HEAD.replace("faults:", "")).shape())
    fabric = LinesFabric(plan)
    monkeypatch.setattr(TargetSystem, "ip", lambda _, lines: fabric.ip(lines))
    injector = Injector(TargetSystem(cast(Fabric, fabric), fabric.update_denylists))
    ends = plan.link_by_name[LINK].ends
    seen = []
    for step in fault_schedule([low, high]):
        injector.do(step)
        seen.append({fabric.mtus[end.node, end.name] for end in ends})
        assert set(fabric.unplanned) == ({Unplanned(end, "mtu") for end in ends} if injector.broken else set())
    assert seen == [{2000}, {2000}, {3000}, {9000}]
    injector.read_back(step)
    assert fabric.calls[-1] == ("verify", "p0-t0-0", "p0-t1-1")


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


@pytest.mark.parametrize(
    ("target", "name", "links"),
    [
        (Target.SWITCH, "p0-t1-1", {"p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"}),
        (Target.UPLINK, "p0-t1-1", {"p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"}),
        (Target.T0, "p1-t0-0", {"h0:p1-t0-0", "h1:p1-t0-0", "p1-t0-0:p1-t1-0", "p1-t0-0:p1-t1-1"}),
        (Target.NIC_LINK, "h0:p1-t0-0", {"h0:p1-t0-0"}),
    ],
)
def test_links_of_a_kind_follow_from_its_target(target: Target, name: str, links: set[str]) -> None:
    """Unless the kind says it; a run with such a kind had ended with KeyError."""
    kind: Any = type("Aimed", (Kind,), {"target": target, "__module__": __name__})
    plan = build_plan(load_scenario_text(HEAD.replace("faults:", "")).shape())
    fault = kind.model_validate({"at": "1s", "for": "1s", "name": "cut", "flicker": name})
    (one,) = fault.occurrences(plan, 1)
    assert (one.targets, set(one.links)) == ((name,), links)


def test_links_of_planes_are_all_of_theirs() -> None:
    kind: Any = type("Aimed", (Kind,), {"target": Target.PLANE, "__module__": __name__})
    plan = build_plan(load_scenario_text(HEAD.replace("faults:", "")).shape())
    fault = kind.model_validate({"at": "1s", "for": "1s", "name": "cut", "flicker": "p1"})
    assert set(fault.occurrences(plan, 1)[0].links) == {link.name for link in plan.links if link.plane == 1}


def test_a_kind_of_rules_says_where_they_go() -> None:
    kind: Any = type("Ruled", (Kind,), {"effect": Effect.RULES, "__module__": __name__})
    assert wrong_kind(kind) == "has the effect RULES, and needs `places` for the rules"


def test_chaos_and_requests_are_only_for_kinds_that_say_so() -> None:
    shown = type("Shown", (Kind,), {"chaos": {"of": "T0-T1 links", "for": "1s"}, "__module__": __name__})
    with with_kinds({"flicker": shown, "link-mtu": mtu_kind()}):
        assert "flicker" in parts()
        assert "link-mtu" not in parts()
        entry = Chaos.model_validate({"at": "1s", "for": "20s", "chaos": {"flicker": "2/s"}, "name": "storm"})
    plan = build_plan(load_scenario_text(HEAD.replace("faults:", "")).shape())
    storm = entry.occurrences(plan, 1)
    assert {(one.fault, one.kind) for one in storm} == {("storm", "flicker")}
    assert list(requestable({**KINDS, "flicker": shown})) == ["cut", "lossy", "reboot", "silence"]


def test_a_kind_may_have_rules_of_its_own(tmp_path: Path) -> None:
    picky = MTU_FAULT.read_text(encoding="utf-8").replace(
        "    @property\n",
        "    def misfits(self, around):\n"
        "        if around.plan and around.plan.shape.planes < 4:\n"
        "            yield Misfit('for', f'lasts too long for {around.plan.shape.planes} planes')\n\n"
        "    @property\n",
    )
    (tmp_path / "picky.py").write_text(f"from mrc_testbed.testbed.scenario.faults.base import Misfit\n{picky}")
    told = mistakes(f"at: 1s, link-mtu: '{LINK}', mtu: 2000, for: 2s", f"plugins: [{tmp_path}/picky.py]\n{HEAD}")
    assert "faults.0.for: lasts too long for 2 planes" in told


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"kind": "link-up"}, "has an `aims` that needs the alias 'link-up'"),
        ({"kind": "Flicker!"}, "has the kind 'Flicker!', which cannot be a key"),
        ({"kind": "chaos"}, "has the kind 'chaos', which cannot be a key"),
        ({"drawing": Drawing(State.SILENT)}, "has a drawing that must be one of denied, slow, lossy, broken"),
        ({"chaos": {"of": "links", "fur": "1s"}}, "has 'fur' in `chaos`, which is none of its keys"),
        ({"chaos": {"for": "1s"}}, "has a `chaos` that needs `of`"),
    ],
)
def test_a_kind_that_is_not_whole_is_refused(changed: dict[str, Any], says: str) -> None:
    odd: Any = type("Odd", (Kind,), {**changed, "__module__": __name__})
    assert says in wrong_kind(odd)
    assert says in PLUGIN_KINDS["fault"].wrong_object(odd.kind, odd)


def test_a_class_without_an_action_is_refused() -> None:
    assert PLUGIN_KINDS["fault"].wrong_object("link-down", KINDS["link-down"]) == "lacks inject()"
    of_objects = type("Mine", (Kind,), {"heal": lambda self, system, occurrence: None, "__module__": __name__})
    said = PLUGIN_KINDS["fault"].wrong_object("flicker", of_objects)
    assert said == "has a heal() that cannot be called with system, occurrence; make it a static method"


@pytest.mark.parametrize("taken", ["link-down", "chaos"])
def test_a_key_that_is_taken_is_refused(taken: str) -> None:
    assert "the name of a built-in one" in PLUGIN_KINDS["fault"].wrong_name(taken)


def test_the_example_is_short() -> None:
    assert len(Path(MTU_FAULT).read_text(encoding="utf-8").splitlines()) <= 40
