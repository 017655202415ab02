"""Faults by hand: what goes becomes a cycle of the run's schedule, what does not is refused with its reason."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.rundir.planned import plan_document, recorded_scenario
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.interactive import FaultRequest, InteractiveFaults, Refused, offers, read_request
from mrc_testbed.testbed.scenario import Occurrence, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS, requestable, requested
from mrc_testbed.topos.plan import build_plan
from tests.unit.runner.measuring import SCENARIO, Bench, S

LINK, SWITCH = "p0-t0-0:p0-t1-0", "p1-t1-1"
PLAN = build_plan(load_scenario_text(SCENARIO).shape())
FAULTS = f"""\
faults:
  - {{at: 1s, link-down: {LINK}, for: 2s, name: cut}}
  - {{at: 1s, switch-reboot: {SWITCH}, boot: 2s, name: hand-1}}
"""


class Hands:
    """Requests at their times on a bench, and the answers to them."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str = "", program: bool = True) -> None:
        self.bench = bench = Bench(tmp_path, monkeypatch, extra)
        self.scenario = load_scenario_text(SCENARIO + extra)
        plan = bench.fabric.plan
        recorder = Recorder(bench.folder)

        def publish(occurrences: Iterable[Occurrence]) -> None:
            recorder.document("plan.json", plan_document(plan, occurrences))

        (bench.folder / "scenario.yaml").write_text(SCENARIO + extra)
        publish(self.scenario.occurrences)
        self.made = InteractiveFaults(self.scenario, plan, program, bench.measurement, bench.injector, publish)
        self.answers: list[str] = []

    def request(self, at_s: float, do: str, target: str, for_s: float | None = None, share: float = 1) -> None:
        request = {"do": do, "target": target, "for_s": for_s, "share": share}
        self.bench.loop.at(self.bench.start_ns + round(at_s * S), lambda: self._ask(request))

    def _ask(self, request: Any) -> None:
        try:
            self.answers.append(self.made.do(read_request(request, KINDS)))
        except Refused as error:
            self.answers.append(f"refused: {error}")

    def run(self, end_s: float = 10) -> None:
        self.bench.finish(end_s)
        self.bench.run()

    def planned(self) -> list[tuple[str, str, float, float]]:
        """The schedule that a replay of this run would have."""
        occurrences = recorded_scenario(self.bench.folder).occurrences
        return [(one.fault, one.title, one.begin_ns / S, one.end_ns / S) for one in occurrences]

    def done(self) -> list[tuple[str, str, str, float]]:
        """What history says was done, by whom, and when."""
        lines = [json.loads(line) for line in (self.bench.folder / "history.jsonl").read_text().splitlines()]
        kept = [line for line in lines if line["op"] in ("inject", "heal") and line["type"] == "ok"]
        return [
            (line["op"], line["fault"], line.get("by", ""), (line["t_ns"] - self.bench.start_ns) / S) for line in kept
        ]


@pytest.fixture
def hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Hands:
    return Hands(tmp_path, monkeypatch, getattr(request, "param", ""))


with_faults = pytest.mark.parametrize("hands", [FAULTS], indirect=True, ids=["beside a schedule"])


def test_a_cut_comes_at_once_and_heals_by_itself(hands: Hands) -> None:
    hands.request(2, "cut", LINK, 3)
    hands.run()
    assert hands.answers == [f"hand-1: link-down {LINK} for 3s"]
    assert hands.done() == [("inject", "hand-1", "hand", 2), ("heal", "hand-1", "hand", 5)]
    assert hands.planned() == [("hand-1", f"link-down {LINK}", 2, 5)]
    assert [call[0] for call in hands.bench.fabric.calls] == ["port_down", "port_up", "verify"], "and is read back"


def test_what_is_mended_before_its_end_ended_then(hands: Hands) -> None:
    hands.request(2, "reboot", SWITCH, 5)
    hands.request(3.5, "mend", SWITCH)
    hands.run()
    assert hands.answers[1] == f"mended hand-1: switch-reboot {SWITCH}"
    assert hands.done() == [("inject", "hand-1", "hand", 2), ("heal", "hand-1", "hand", 3.5)]
    assert hands.planned() == [("hand-1", f"switch-reboot {SWITCH}", 2, 3.5)]


def test_without_an_end_it_is_on_until_it_is_mended(hands: Hands) -> None:
    hands.request(1, "cut", LINK)
    hands.request(4, "mend", "hand-1")
    hands.request(5, "cut", LINK, 1)
    hands.run()
    assert hands.answers[0] == f"hand-1: link-down {LINK} until it is mended"
    assert hands.planned() == [("hand-1", f"link-down {LINK}", 1, 4), ("hand-2", f"link-down {LINK}", 5, 6)]


def test_what_nobody_mends_is_healed_after_the_workload_and_planned_until_then(hands: Hands) -> None:
    hands.request(1, "cut", LINK)
    hands.run(3)
    assert hands.planned() == [("hand-1", f"link-down {LINK}", 1, 20)], "20 s is the time limit of the workload"
    hands.bench.measurement.heal_all()
    assert hands.done() == [("inject", "hand-1", "hand", 1), ("heal", "hand-1", "hand", 3)]
    assert not hands.bench.fabric.down


def test_a_link_can_be_lossy_and_a_switch_silent(hands: Hands) -> None:
    hands.request(1, "lossy", LINK, 2, 0.2)
    hands.request(1.5, "silence", SWITCH, 2)
    hands.run()
    assert [row[1] for row in hands.planned()] == [f"link-loss {LINK} 20%", f"switch-silent {SWITCH}"]
    assert not hands.bench.fabric.rules


@with_faults
def test_the_schedule_goes_on_beside_it_and_keeps_its_names(hands: Hands) -> None:
    hands.request(0.5, "cut", "p1-t0-0:p1-t1-0", 2)
    hands.request(2, "cut", LINK, 1)
    hands.request(2, "reboot", SWITCH, 1)
    hands.request(2, "cut", f"p1-t0-0:{SWITCH}", 1)
    hands.request(2, "silence", SWITCH, 1)
    hands.request(2, "mend", LINK)
    hands.request(2, "mend", f"p1-t0-0:{SWITCH}")
    hands.request(4, "cut", LINK, 1)
    hands.run()
    assert hands.answers == [
        "hand-2: link-down p1-t0-0:p1-t1-0 for 2s",
        f"refused: {LINK}: already affected by cut (link-down {LINK})",
        f"refused: {SWITCH}: already affected by hand-1 (switch-reboot {SWITCH})",
        f"refused: p1-t0-0:{SWITCH}: already affected by hand-1 (switch-reboot {SWITCH})",
        f"refused: {SWITCH}: already affected by hand-1 (switch-reboot {SWITCH})",
        f"refused: {LINK}: cut is a fault of the scenario, which mends it at 3s",
        f"refused: p1-t0-0:{SWITCH} is down by hand-1 (switch-reboot {SWITCH}); mend that",
        f"hand-3: link-down {LINK} for 1s",
    ]
    assert [row[0] for row in hands.planned()] == ["cut", "hand-1", "hand-2", "hand-3"]
    assert {row[1] for row in hands.done() if row[2] == "hand"} == {"hand-2", "hand-3"}


@pytest.mark.parametrize(
    ("do", "target", "says"),
    [
        ("cut", "p0-t0-0:p0-t1-9", "there is no link 'p0-t0-0:p0-t1-9'"),
        ("cut", "p0-t1-0:p0-t0-0", f"the end nearer to the hosts comes first: '{LINK}'"),
        ("cut", SWITCH, f"{SWITCH} is one node; link-down needs a link by its two ends"),
        ("cut", "any 2 of T0-T1 links", "there is no link 'any 2 of T0-T1 links'"),
        ("reboot", "p9-t1-1", "there is no switch 'p9-t1-1'"),
        ("reboot", "h0", "h0 is a host; switch-reboot needs a switch"),
        ("mend", LINK, f"nothing is broken at {LINK}"),
    ],
)
def test_what_does_not_go_is_refused_and_changes_nothing(hands: Hands, do: str, target: str, says: str) -> None:
    hands.request(1, do, target, 1)
    hands.run(2)
    assert hands.answers[0].startswith("refused: ")
    assert says in hands.answers[0]
    assert hands.planned() == []
    assert hands.bench.fabric.calls == []


def test_nothing_goes_before_the_workload_or_after_it(hands: Hands) -> None:
    hands.request(-0.1, "cut", LINK, 1)
    hands.run(1)
    hands.bench.loop.at(hands.bench.clock.now_ns, lambda: hands._ask({"do": "cut", "target": LINK}))
    hands.bench.measurement.wait_for_paths(S)
    hands.bench.loop.run_until(lambda: False, hands.bench.clock.now_ns + S)
    assert hands.answers == ["refused: the workload is not running"] * 2


def test_without_the_port_program_nothing_is_offered_that_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hands = Hands(tmp_path, monkeypatch, program=False)
    for at_s, do, target in ((1, "lossy", LINK), (1, "silence", SWITCH), (1, "cut", LINK)):
        hands.request(at_s, do, target, 1)
    hands.run(3)
    assert [answer.split(" for ")[0] for answer in hands.answers] == [
        "refused: lossy needs the port program, and this fabric runs plain shapers",
        "refused: silence needs the port program, and this fabric runs plain shapers",
        f"hand-1: link-down {LINK}",
    ]
    lacking = {action: reason for side in offers(KINDS, False).values() for action, reason in side.items() if reason}
    assert set(lacking) == {"lossy", "silence"}
    assert not any(reason for side in offers(KINDS, True).values() for reason in side.values())


RULES = "faults:\n" + "".join(
    f"  - {{at: 3s, link-loss: {LINK}, loss: {number}%, for: 1s, name: loss-{number}}}\n" for number in range(1, 9)
)


@pytest.mark.parametrize("hands", [RULES], indirect=True, ids=["eight rules"])
def test_the_schedule_finds_room_for_its_rules(hands: Hands) -> None:
    """A ninth rule would not go, and it must not be one of the schedule that fails."""
    hands.request(1, "lossy", LINK, 1)
    hands.request(2.5, "lossy", LINK, 1)
    hands.request(2.6, "silence", "p0-t0-0", 0.3)
    hands.run(6)
    assert hands.answers[0] == f"hand-1: link-loss {LINK} 100% for 1s"
    assert hands.answers[1] == f"refused: one port of {LINK} has or will have 8 rules, which is the limit"
    assert hands.answers[2] == "hand-2: switch-silent p0-t0-0 for 300ms"


def test_a_kernel_that_refuses_ends_the_run_as_it_does_for_any_fault(hands: Hands) -> None:
    hands.bench.fabric.refuses.add(("port_down", "p0-t1-0", "down0"))
    hands.request(1, "cut", LINK, 1)
    with pytest.raises(FabricError):
        hands.run()
    assert hands.planned()[0][0] == "hand-1", "its plan has what its history has"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (["cut"], "a request must be a JSON object"),
        ({"do": "explode", "target": LINK}, "unknown action 'explode'"),
        ({"do": ["cut"], "target": LINK}, "unknown action"),
        ({"do": "cut"}, "cut needs the name of a target"),
        ({"do": "cut", "target": 7}, "cut needs the name of a target"),
        ({"do": "cut", "target": LINK, "for_s": 0}, "for_s must be a number from 0.001 to 86400"),
        ({"do": "cut", "target": LINK, "for_s": "3"}, "for_s must be a number"),
        ({"do": "cut", "target": LINK, "for_s": float("nan")}, "for_s must be a number"),
        ({"do": "cut", "target": LINK, "for_s": True}, "for_s must be a number"),
        ({"do": "cut", "target": LINK, "for_s": 1e9}, "for_s must be a number"),
        ({"do": "cut", "target": LINK, "for_s": 10**400}, "for_s must be a number"),
        ({"do": "lossy", "target": LINK, "share": 2}, "share must be a number from 1e-06 to 1"),
        ({"do": "lossy", "target": LINK, "share": None}, "share must be a number"),
    ],
)
def test_what_is_no_request(request_: Any, says: str) -> None:
    with pytest.raises(Refused, match=says):
        read_request(request_, KINDS)


def test_a_request_without_time_and_share() -> None:
    assert read_request({"do": "cut", "target": LINK}, KINDS) == FaultRequest("cut", LINK, None, 1_000_000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
REQUEST = st.fixed_dictionaries(
    {"do": st.sampled_from(["cut", "lossy", "mend"]) | JSON, "target": st.sampled_from([LINK, SWITCH]) | JSON},
    optional={"for_s": JSON, "share": JSON},
)


@given(REQUEST | JSON)
def test_whatever_is_asked_becomes_a_request_or_is_refused(request_: Any) -> None:
    """Anything else that came out of here would end the run."""
    try:
        request = read_request(request_, KINDS)
    except Refused:
        return
    assert request.for_ns is None or 10**6 <= request.for_ns <= 86_400 * 10**9
    assert 1 <= request.share <= 1_000_000
    for action in {request.do, "cut"} - {"mend"}:
        model, end_ns = requestable(KINDS)[action], 5 + (request.for_ns or 1)
        with contextlib.suppress(ValueError):
            assert requested(model, request.target, "hand-1", 5, end_ns, PLAN, request.share).end_ns > 5
