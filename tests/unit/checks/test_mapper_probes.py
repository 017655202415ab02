"""Runs with agents of the mapper in virtual time: what their probes show is named, and every probe is in the books."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.fabric_map import map_folder
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.fabric_map import fabric_map, map_answers, score_answers
from mrc_testbed.testbed.checks.path_evidence import period_ns
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.probing import ProbeRoute
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.report.map_words import blind_spots, map_lines
from mrc_testbed.testbed.runner.probing import probing_of
from mrc_testbed.testbed.scenario import load_scenario_text
from tests import documented
from tests.generated.oracle import wrong_with

SMALL = "{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 3, port_rate: 5mbit, rtt: 20ms}"
FILE = f"""
name: probed
world: virtual
fabric: {SMALL}
mapper: {{evidence: [probes]}}
workload: [{{permutation: {{for: 21s}}}}]
faults:
  - {{at: 1s, link-loss: "p0-t0-1:p0-t1-1", loss: 100%, for: 2s, name: link}}
  - {{at: 4s, switch-silent: p1-t1-0, for: 2s, name: t1}}
  - {{at: 7s, switch-reboot: p0-t0-0, boot: 2s, name: t0}}
  - {{at: 10s, link-down: "h4:p1-t0-1", for: 2s, name: port}}
  - {{at: 13s, link-loss: "h2:p0-t0-0", loss: 20%, for: 6s, name: lossy}}
"""


def run(out: Path, text: str = FILE, *overrides: str) -> RunRecord:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(text, overrides=overrides), out, True, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    return load_record(outcome.folder)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return run(tmp_path_factory.mktemp("probed"))


def said(record: RunRecord) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (record.folder / "map.jsonl").read_text().splitlines()]


@pytest.mark.nightly
def test_each_fault_in_turn_is_named_and_nothing_else(record: RunRecord) -> None:
    accused = [line["component"] for line in said(record) if line["op"] == "accuse"]
    assert accused == ["p0-t0-1:p0-t1-1", "p1-t1-0", "p0-t0-0", "h4:p1-t0-1", "h2:p0-t0-0"]
    assert {tuple(line["evidence"]) for line in said(record)} == {("probes",)}
    score = score_answers(record, map_answers(record))
    assert (score.precision, score.recall, score.falsely_accused) == (1, 1, 0)


def test_dead_things_are_named_within_four_periods(record: RunRecord) -> None:
    found = score_answers(record, map_answers(record))
    assert period_ns(record) == 200_000_000
    dead = [one for one in found.faults if one.span.fault != "lossy"]
    assert len(dead) == 4
    assert all(one.located_ns is not None and one.located_ns <= 4 * period_ns(record) for one in dead)


def test_links_without_data_are_seen_and_a_run_that_is_over_says_the_same(record: RunRecord) -> None:
    assert not any("cannot be seen" in line for line in blind_spots(record))
    live = [(line["op"], line["component"]) for line in said(record)]
    assert [(one.action.value, one.name) for one in fabric_map(record).changes] == live
    assert "what probes told" in next(iter(map_lines(record, "probed")))


def test_every_probe_is_in_the_books_and_every_key_is_documented(record: RunRecord) -> None:
    verdict = json.loads((record.folder / "verdict.json").read_text())
    (figure,) = [one for one in verdict["fidelity"]["figures"] if one["name"] == "unexplained packets"]
    assert figure["observed"] == 0
    sent, heard, unsent = (
        sum(own[name] for own in record.counters.values()) for name in ("mapper_sent", "mapper_heard", "mapper_unsent")
    )
    told = sum(len(one.order) for one in record.probes)
    lost = sum(len(one.lost) // 2 for one in record.probes)
    assert unsent > 0
    assert lost > 0
    assert 0 <= sent + unsent - told <= len(record.scenario.host_names) * 24, "those of the last round are not told"
    assert abs(sent + unsent - heard - lost) <= 12
    about = ("mapper", "map_window", "events", "environment", "counters")
    assert [wrong for wrong in documented.undocumented(record.folder) if any(word in wrong for word in about)] == []


@pytest.mark.parametrize(
    "fabric",
    [
        "{planes: 2, port_rate: 5mbit, rtt: 20ms, family: {clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}}",
        "{planes: 1, port_rate: 5mbit, rtt: 20ms, family: {rail: {rails: 2, nodes: 3, spine: 2}}}",
    ],
    ids=["clos3", "rail"],
)
@pytest.mark.nightly(keep=1)
def test_agents_probe_any_family_beside_data(fabric: str, tmp_path: Path) -> None:
    text = f"name: any\nworld: virtual\nfabric: {fabric}\nmapper: {{}}\nworkload: [{{permutation: {{for: 2s}}}}]\n"
    assert wrong_with(load_scenario_text(text), tmp_path) == []
    found = load_record(next(tmp_path.glob("2*-any")))
    assert fabric_map(found).changes == ()
    assert not any("cannot be seen" in line for line in blind_spots(found))


def test_where_hosts_choose_no_paths_nobody_probes_and_the_map_says_so(tmp_path: Path) -> None:
    roce = run(tmp_path, FILE.partition("faults:")[0].replace("21s", "2s"), "transport=roce")
    assert roce.probes == ()
    assert "mapper" not in roce.environment
    assert any("Nobody probes" in line for line in blind_spots(roce))
    assert not any("mapper_sent" in own for own in roce.counters.values())


def test_others_can_be_heard_alone(tmp_path: Path) -> None:
    both = run(tmp_path, FILE.replace("{evidence: [probes]}", "{}").replace("21s", "5s").partition("  - {at: 7s")[0])
    assert both.scenario.mapper is not None
    found = {who: map_folder(both.folder, tmp_path, who) for who in (None, *Witness)}
    heard = {
        who: {witness for change in fabric_map(one.record).changes for witness in change.witnesses}
        for who, one in found.items()
    }
    assert heard == dict[Witness | None, set[Witness]]({None: set(Witness)}) | {who: {who} for who in Witness}
    assert all(one.score is not None and one.score.precision == 1 for one in found.values())
    assert [fabric_map(one.record).period_ns for one in found.values()] == [200_000_000] * 3


def test_probes_that_were_not_sent_cannot_be_heard(tmp_path: Path) -> None:
    silent = run(tmp_path, FILE.partition("mapper:")[0] + "workload: [{permutation: {for: 1s}}]\n")
    with pytest.raises(UsageError, match="hosts sent no probes in it; a scenario with `mapper` lets them"):
        map_folder(silent.folder, tmp_path, Witness.PROBES)


def test_a_slow_machine_has_a_longer_period_and_the_run_says_so() -> None:
    scenario = load_scenario_text(FILE)
    asked = probing_of(scenario, scenario.plan(), 17_000.0)
    assert asked is not None
    assert (asked.period_ns, asked.warning) == (200_000_000, "")
    stretched = probing_of(scenario, scenario.plan(), 4_000.0)
    assert stretched is not None
    assert stretched.period_ns == stretched.record()["probes"] * 1_000_000_000 // 80
    assert stretched.warning.startswith("mapper.period: 28 probes each 200ms are more than 2% of the packets")
    assert stretched.warning.endswith("it is 350ms instead")


def test_probes_leave_a_slow_link_to_the_workload() -> None:
    scenario = load_scenario_text(FILE, overrides=["fabric.port_rate=100kbit", "fabric.rtt=500us"])
    probing = probing_of(scenario, scenario.plan(), None)
    assert probing is not None
    crossing = max(sum(link in probe.links for probe in probes) for link, probes in _of_ports(probing.routes))
    assert probing.period_ns == pytest.approx(crossing * 1008 / 100_000 / 0.02 * 1e9, rel=1e-3)
    assert "are more than 2% of what a link carries" in probing.warning


def _of_ports(routes: Mapping[str, tuple[ProbeRoute, ...]]) -> list[tuple[str, tuple[ProbeRoute, ...]]]:
    """The links of hosts, each with the probes of its host, which alone cross it."""
    return [(link, probes) for probes in routes.values() for link in {probe.links[0] for probe in probes}]


def test_a_denial_lasts_while_probes_are_lost_and_ends_when_they_come_back(tmp_path: Path) -> None:
    text = FILE.partition("faults:")[0].replace("for: 21s", "for: 9s")
    text = text.replace("{evidence: [probes]}", "{deny: lossy NIC links, hold: 3s}")
    lossy = run(tmp_path, text + '  \nfaults: [{at: 1s, link-loss: "h2:p0-t0-0", loss: 30%, for: 5s, name: lossy}]\n')
    decided = [line for line in said(lossy) if "loss" not in line]
    assert [(line["op"], line["component"]) for line in decided] == [("deny", "h2:p0-t0-0"), ("allow", "h2:p0-t0-0")]
    assert decided[-1]["why"] == "cleared"
    heal_ns = next(line.t_ns for line in lossy.history if line.op == "heal" and line.type == "ok")
    assert 0 < decided[-1]["t_ns"] - heal_ns < 15 * period_ns(lossy)
