"""A central controller beside a run in virtual time: it acts as long after a carrier as it is told to, or never."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.hosts.keeper import GROUP, NAMESPACE, SUBREAPER
from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario, load_scenario_text
from tests import documented

CUT = "p0-t0-1:p0-t1-1"
FILE = f"""
name: central
world: virtual
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 5mbit, rtt: 20ms}}
endpoint: {{ev_selection: oblivious}}
controller: {{after: 100ms}}
workload: [{{all-to-all: {{hosts: all, size: 64KiB, iterations: 80}}}}]
faults: [{{at: 500ms, link-down: "{CUT}", for: 1s, name: cut}}]
"""
MS = 1_000_000
WAYS = (NAMESPACE, SUBREAPER, GROUP)


def run(out: Path, *overrides: str) -> RunRecord:
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        scenario = load_scenario_text(FILE, overrides=overrides)
        outcome = run_scenario(scenario, out, True, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    return load_record(outcome.folder)


def acts(record: RunRecord) -> list[tuple[str, str, int]]:
    """What it did: word, link, ms after the start."""
    found = [line for line in record.history if line.op.startswith("controller-") and line.type == "invoke"]
    return [(line.op, line.target, (line.t_ns - (record.start_ns or 0)) // MS) for line in found]


def test_it_denies_what_crosses_a_dead_link_and_allows_it_again(tmp_path: Path) -> None:
    record = run(tmp_path)
    assert acts(record) == [("controller-deny", CUT, 600), ("controller-allow", CUT, 1600)]
    assert [wrong for wrong in documented.undocumented(record.folder) if "history" in wrong] == []


@pytest.mark.nightly
def test_a_later_one_costs_more_packets_and_a_dead_one_most(tmp_path: Path) -> None:
    lost = [
        sum(host["lost_overtaken"] + host["lost_timeout"] for host in run(tmp_path, over).counters.values())
        for over in ("controller.after=20ms", "controller.after=400ms", "controller.after=never")
    ]
    assert lost[0] * 3 < lost[1] < lost[2] * 0.7


def test_a_dead_one_does_nothing(tmp_path: Path) -> None:
    assert acts(run(tmp_path, "controller.after=never")) == []


def test_it_hears_nothing_of_what_is_silent(tmp_path: Path) -> None:
    silent = f"faults=[{{at: 500ms, link-loss: '{CUT}', loss: 100%, for: 1s}}]"
    assert acts(run(tmp_path, silent)) == []


def test_links_that_share_paths_stay_denied_until_both_are_up(tmp_path: Path) -> None:
    both = (
        f"faults=[{{at: 500ms, link-down: '{CUT}', for: 1s, name: a}}, {{at: 700ms, switch-reboot: p0-t1-1, boot: 1s}}]"
    )
    done = acts(run(tmp_path, both))
    assert done[0] == ("controller-deny", CUT, 600)
    assert {t_ms for op, _, t_ms in done if op == "controller-allow"} == {1800}


def test_no_sender_is_left_without_a_path(tmp_path: Path) -> None:
    ports = "faults=[{at: 500ms, link-down: ['h0:p0-t0-0', 'h0:p1-t0-0'], for: 200ms}]"
    done = acts(run(tmp_path, ports))
    assert len([link for op, link, _ in done if op == "controller-deny"]) == 1


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("controller={after: soon}", "controller.after: 'soon' is not a duration"),
        ("controller={}", "the key 'after' is missing; write for example `after: 50ms`"),
        ("transport=roce", "so there is nothing to deny"),
        ("endpoint.denylist=[p0-t1-1]", "endpoint.denylist denies paths too, which the controller might allow again"),
        ("mapper={deny: all}", "the controller denies paths too, which the mapper might allow again"),
    ],
)
def test_bad_input(override: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(FILE, overrides=[override])
    assert any(said in str(problem) for problem in caught.value.problems), caught.value.problems


EXAMPLE = Path(__file__).parents[3] / "docs/examples/controller.py"
FLAPS = f"""
name: called
world: virtual
fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 5mbit, rtt: 20ms}}
endpoint: {{ev_selection: oblivious}}
controller: {{after: 100ms, command: python3 own.py}}
workload: [{{all-to-all: {{hosts: all, size: 64KiB, iterations: 80}}}}]
faults: [{{at: 500ms, link-flap: "{CUT}", period: 600ms, count: 2, duty: 0.3, name: flap}}]
"""


def called(folder: Path, program: str) -> RunRecord:
    (folder / "own.py").write_text(program, encoding="utf-8")
    (folder / "s.yaml").write_text(FLAPS, encoding="utf-8")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario(folder / "s.yaml"), folder / "out", True, PatientConsole(file=nowhere))
    assert outcome.folder is not None
    return load_record(outcome.folder)


def test_a_program_decides(tmp_path: Path) -> None:
    """It leaves a link that has been down twice, and knows so at the second time."""
    record = called(tmp_path, EXAMPLE.read_text(encoding="utf-8"))
    assert acts(record) == [
        ("controller-deny", CUT, 600),
        ("controller-allow", CUT, 780),
        ("controller-deny", CUT, 1200),
    ]
    assert (record.folder / "programs/own.py").read_bytes() == EXAMPLE.read_bytes()
    assert "own.py" in record.environment["program_files"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(3)", "python3 has ended with status 3"),
        ("print('what?', flush=True); input()", "answered 'what?', which is not JSON"),
        ("print('[' * 200_000, flush=True); input()", "which is JSON of more than 64 brackets within brackets"),
        ("import os, time; os.close(0); os.close(1); time.sleep(60)", "python3 has ended with status none: it goes on"),
        ("""print('{"deny": ["p0-t9-0"]}', flush=True); input()""", "'p0-t9-0' is no list of links"),
        ("""print('{"deny": "p0-t1-0"}', flush=True); input()""", "'p0-t1-0' is no list of links"),
    ],
)
def test_a_program_that_answers_something_else_ends_the_run_with_a_line(
    tmp_path: Path, program: str, said: str
) -> None:
    record = called(tmp_path, program)
    assert [line.error for line in record.history if line.error and said in line.error]


def test_a_command_needs_no_file_beside_the_scenario(tmp_path: Path) -> None:
    command = "controller.command=/bin/sh -c 'while read line; do echo {}; done'"
    record = run(tmp_path, command)
    assert not [line.error for line in record.history if line.error]
    assert record.environment["programs_kept_by"] in WAYS
    assert [wrong for wrong in documented.undocumented(record.folder) if "environment" in wrong] == []
