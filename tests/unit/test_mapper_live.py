"""A mapper beside a run in virtual time: it names the lossy link, denies it, and tries it again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.path_evidence import SETTLE, evidence, period_ns
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.mapper.mapper import PathMapper
from mrc_testbed.testbed.mapper.suspects import SuspectTable
from mrc_testbed.testbed.report.console import PatientConsole
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
