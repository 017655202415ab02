"""A mapper beside a run in virtual time: it names the lossy link, denies it, and tries it again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.map_lines import MapRecord
from mrc_testbed.testbed.checks.mapping import cleared, located
from mrc_testbed.testbed.checks.path_evidence import evidence, period_ns
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.windows import KnownBetween, NotApplicable
from mrc_testbed.testbed.evidence.endpoints import SETTLE
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange, PathMapper
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.mapper import LiveMapper
from mrc_testbed.testbed.scenario import load_scenario_text
from tests import documented

LOSSY = "h1:p1-t0-0"
FILE = f"""
name: mapped
world: virtual
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 5mbit, rtt: 20ms}}
mapper: {{evidence: [endpoints], deny: lossy NIC links, hold: 3s}}
workload: [{{all-to-all: {{hosts: all, size: 64KiB, iterations: 200}}}}]
faults: [{{at: 1s, link-loss: "{LOSSY}", loss: 10%, for: 4s, name: lossy}}]
"""


def run(out: Path, text: str = FILE) -> RunRecord:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(text), out, True, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    return load_record(outcome.folder)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return run(tmp_path_factory.mktemp("mapped"))


def said(record: RunRecord) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (record.folder / "map.jsonl").read_text().splitlines()]


def test_it_names_the_link_and_nothing_else(record: RunRecord) -> None:
    assert {line["component"] for line in said(record)} == {LOSSY}
    assert said(record)[0]["op"] == "accuse"
    assert said(record)[0]["evidence"] == ["endpoints"]


def test_it_denies_the_link_tries_it_again_and_clears_it_once_it_is_whole(record: RunRecord) -> None:
    ops = [line["op"] for line in said(record)]
    assert ops[:3] == ["accuse", "deny", "allow"]
    assert ops[-1] == "clear"
    denied, allowed = (next(line for line in said(record) if line["op"] == op) for op in ("deny", "allow"))
    assert allowed["t_ns"] - denied["t_ns"] == 3_000_000_000
    assert allowed["why"] == "held"
    assert denied["hosts"] == ["h0", "h1", "h2", "h3"]


def test_the_history_has_what_was_done(record: RunRecord) -> None:
    done = [(line.op, line.type, line.target) for line in record.history if line.op.startswith("map-")]
    assert done[:4] == [
        ("map-deny", "invoke", LOSSY),
        ("map-deny", "ok", LOSSY),
        ("map-allow", "invoke", LOSSY),
        ("map-allow", "ok", LOSSY),
    ]


def test_paths_are_denied_at_both_ends(record: RunRecord) -> None:
    denied = {(one.host, one.peer) for one in record.ev_changes if one.new == "DENIED"}
    assert denied == {(host, peer) for host in ["h0", "h1", "h2", "h3"] for peer in ("h1",) if host != peer} | {
        ("h1", peer) for peer in ("h0", "h2", "h3")
    }
    assert {one.plane for one in record.ev_changes if one.new == "DENIED"} == {1}


def test_a_run_that_is_over_says_the_same(record: RunRecord) -> None:
    table = SuspectTable(record.plan)
    mapper = PathMapper(table, period_ns(record), settle=SETTLE)
    again = [change for end_ns, rows in evidence(record, table) for change in mapper.turn(end_ns, rows)]
    live = [(line["op"], line["component"]) for line in said(record) if "loss" in line]
    assert [(change.action.value, change.name) for change in again] == live


def test_every_key_of_the_map_is_documented(record: RunRecord) -> None:
    assert [wrong for wrong in documented.undocumented(record.folder) if "map" in wrong or "history" in wrong] == []


def test_without_the_section_nothing_is_written(tmp_path: Path) -> None:
    text = FILE.replace("mapper: {evidence: [endpoints], deny: lossy NIC links, hold: 3s}\n", "")
    assert not (run(tmp_path, text).folder / "map.jsonl").exists()


# --- the metrics ---


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("located.p100", 0.2, 1.5),
        ("located.p100 during lossy", 0.2, 1.5),
        ("cleared.p50", 0.2, 4.5),
        ("map_precision", 1, 1),
        ("map_recall", 1, 1),
        ("map_recall during lossy", 1, 1),
        ("falsely_accused", 0, 0),
        ("falsely_accused clean", 0, 0),
    ],
)
def test_what_it_said_is_held_against_the_truth(record: RunRecord, text: str, least: float, most: float) -> None:
    value = ask(record, text).value
    assert value is not None
    assert least <= value <= most


def with_map(record: RunRecord, *changes: MapChange) -> RunRecord:
    return replace(record, mapped=MapRecord(changes))


def test_accusing_what_is_whole_is_counted(record: RunRecord) -> None:
    right, *_ = record.mapped.changes
    wrong = replace(right, name="h0:p0-t0-0")
    changed = with_map(record, wrong, right)
    assert ask(changed, "falsely_accused").value == 1
    assert ask(changed, "map_precision").value == 0.5
    assert ask(changed, "falsely_accused before lossy").value == 0


def test_a_fault_that_was_never_located_took_at_least_as_long_as_it_lasted(record: RunRecord) -> None:
    nothing = with_map(record)
    assert ask(nothing, "map_recall").value == 0
    with pytest.raises(KnownBetween, match="not seen of lossy") as caught:
        located(nothing, Window())
    assert caught.value.most == [inf]
    (least,) = caught.value.least
    assert least == pytest.approx(4e9, rel=0.01)
    assert ask(nothing, "map_precision").why == "the mapper accused nothing"


def test_what_stays_accused_was_not_cleared(record: RunRecord) -> None:
    accused, *_ = record.mapped.changes
    with pytest.raises(KnownBetween, match="not seen of lossy"):
        cleared(with_map(record, accused), Window())


def test_without_a_mapper_there_is_no_such_figure(record: RunRecord) -> None:
    without = replace(record, scenario=record.scenario.model_copy(update={"mapper": None}))
    with pytest.raises(NotApplicable):
        located(without, Window())


# --- decisions, of a mapper that is told what to say ---

STEP_NS = 200_000_000
"""A period of endpoints."""


class Clock:
    """A loop whose turns are called by hand."""

    def __init__(self) -> None:
        self.ns = 0
        self.turn: Callable[[], None] = lambda: None

    def now_ns(self) -> int:
        return self.ns

    def every(self, period_ns: int, action: Callable[[], None], start_ns: int) -> None:
        self.turn = action


class Scripted:
    """Says what is next; what it accuses stays accused until it clears it."""

    def __init__(self, *said: list[MapChange]) -> None:
        self._said = [*said]
        self._standing: dict[str, MapChange] = {}

    @property
    def accused(self) -> list[MapChange]:
        return [*self._standing.values()]

    def turn(self, now_ns: int, _rows: object) -> list[MapChange]:
        changes = self._said.pop(0) if self._said else []
        for change in changes:
            if change.action is MapAction.ACCUSE:
                self._standing[change.name] = change
            else:
                self._standing.pop(change.name, None)
        return changes


def decided(tmp_path: Path, evidence: str, said: list[list[MapChange]], periods: int) -> list[tuple[int, str, str]]:
    """What is done in which period."""
    text = FILE.replace("evidence: [endpoints]", f"evidence: {evidence}").replace("hold: 3s", "hold: 2s")
    scenario = load_scenario_text(text)
    assert scenario.mapper is not None
    plan, clock, told = scenario.plan(), Clock(), []
    recorder = Recorder(tmp_path, clock.now_ns)
    pairs = permutations(plan.host_by_name, 2)
    mapper = LiveMapper(
        *(scenario, scenario.mapper, plan, pairs, None, cast(Any, clock), recorder, lambda _: None),
        lambda command, rows: told.append((clock.ns // STEP_NS, command, ",".join(sorted(rows)))),
    )
    mapper._mapper = cast(Any, Scripted(*said))
    mapper.start(0)
    for _ in range(periods):
        clock.ns += STEP_NS
        clock.turn()
    recorder.close()
    return told


def accusing(name: str = LOSSY, last_ns: int = 1, loss: float = 0.1) -> MapChange:
    return MapChange(
        *(1, MapAction.ACCUSE, name, None, loss, 20.0, 1, last_ns, (), 1.0, (Witness.ENDPOINTS,), ("h0",)),
    )


def clearing(name: str = LOSSY) -> MapChange:
    return replace(accusing(name), action=MapAction.CLEAR)


ALL = "h0,h1,h2,h3"


def test_what_endpoints_clear_stays_denied_until_it_was_held(tmp_path: Path) -> None:
    done = decided(tmp_path, "[endpoints]", [[accusing()], [clearing()]], 20)
    assert done == [(1, "deny", ALL), (11, "allow", ALL)]


def test_what_probes_clear_is_allowed_at_once(tmp_path: Path) -> None:
    done = decided(tmp_path, "[probes]", [[accusing()], [], [clearing()]], 20)
    assert done == [(1, "deny", ALL), (3, "allow", ALL)]


def test_what_still_stands_accused_is_denied_again_only_by_new_losses(tmp_path: Path) -> None:
    done = decided(tmp_path, "[endpoints]", [[accusing()]], 30)
    assert done == [(1, "deny", ALL), (11, "allow", ALL)]
    (tmp_path / "again").mkdir()
    later = [[accusing()], *[[] for _ in range(12)], [accusing(last_ns=13 * STEP_NS)]]
    done = decided(tmp_path / "again", "[endpoints]", later, 20)
    assert done == [(1, "deny", ALL), (11, "allow", ALL), (14, "deny", ALL)]


def test_a_denial_that_takes_the_last_path_is_not_made_and_said_once(tmp_path: Path) -> None:
    both = [accusing(), accusing("h1:p0-t0-0")]
    done = decided(tmp_path, "[endpoints]", [both], 5)
    assert done == [(1, "deny", ALL)]
    kept = [json.loads(line) for line in (tmp_path / "map.jsonl").read_text().splitlines() if '"keep"' in line]
    assert [(line["component"], line["why"]) for line in kept] == [
        ("h1:p0-t0-0", "it would leave h0 no path to h1"),
    ]
