"""`fair_after`: from a change until all flows have their fair shares, of stretches written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.figure import ask
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import Status
from tests.unit.checks.test_flows import GRAIN, LINE, FlowFolder
from tests.unit.checks.test_folder import at

SECOND = 1e9


def changed(share: Callable[[str, float], float]) -> FlowFolder:
    """`share`: what a flow gets of its fair share in the stretch that begins then."""
    folder = FlowFolder()
    for row in folder.rows:
        if not row[-1]:
            name, begin = row[1], round((row[3] - at(0)) / SECOND, 3)
            row[5] = round(folder.rates[name] * LINE * GRAIN * share(name, begin))
    return folder


def after(folder: FlowFolder, place: Path, words: str) -> float | None:
    """In seconds."""
    return ask(load_record(folder.write(place)), words).value


@pytest.mark.parametrize("least", [0.91, 1.09])
def test_it_ends_where_three_stretches_in_a_row_are_within_a_tenth(tmp_path: Path, least: float) -> None:
    folder = changed(lambda _, begin: 0.5 if begin < 0.75 or begin == 0.9 else least)
    assert after(folder, tmp_path, "fair_after.p100") == pytest.approx(1.0)


@pytest.mark.parametrize("off", [0.89, 1.11])
def test_one_flow_that_is_further_off_keeps_it_from_ending(tmp_path: Path, off: float) -> None:
    folder = changed(lambda name, begin: off if name == "h0->h2" and begin < 1.55 else 1)
    assert after(folder, tmp_path, "fair_after.p100") == pytest.approx(1.6)
    assert after(folder, tmp_path, "fair_after.p100 of victims") == 0


def test_a_fault_counts_from_its_injection_and_a_heal_from_the_heal(tmp_path: Path) -> None:
    folder = changed(lambda _, begin: 0.5 if 2.95 < begin < 4.15 else 1)
    assert after(folder, tmp_path, "fair_after.p100") == 0
    assert after(folder, tmp_path, "fair_after.p100 during cut") == pytest.approx(1.2)
    assert after(folder, tmp_path, "fair_after.p100 after cut heals") == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("bound", "status"), [("5s", Status.FAIL), ("7s", Status.INCONCLUSIVE)], ids=["too long", "perhaps"]
)
def test_flows_that_never_get_there_fail_what_is_sooner_than_they_were_seen(
    tmp_path: Path, bound: str, status: Status
) -> None:
    folder = changed(lambda name, _: 0.5 if name == "h1->h2" else 1)
    folder.expect = [f"fair_after.p100 <= {bound}"]
    assert folder.judge(tmp_path).checks[0].status is status
    found = ask(load_record(tmp_path), "fair_after.p100")
    assert (found.value, found.why) == (None, "the flows were not within 10 % of their fair shares in 6 s")


def test_each_begin_of_flows_is_a_change(tmp_path: Path) -> None:
    """h0 begins alone, with a line for itself; h1 comes at 2 s."""
    folder = FlowFolder(rates={"h0->h2": 0.5, "h1->h2": 0.5})
    flows = "write: {from: h0, to: h2, for: 6s}}\n  - {write: {from: h1, to: h2, start: 2s, for: 4s}"
    folder.scenario = folder.scenario.replace("incast: {to: h2, from: [h0, h1], victims: [h3->h1], for: 6s}", "{X}")
    folder.scenario = folder.scenario.replace("- {X}", "- {" + flows + "}")
    for row in folder.rows:
        begin = (row[3] - at(0)) / SECOND
        alone = begin < 1.95
        share = {"h0->h2": 1 if alone else 0.7 if begin < 2.45 else 0.5, "h1->h2": 0 if alone else 0.5}[row[1]]
        row[5] = 0 if row[-1] else round(LINE * GRAIN * share)
    record = load_record(folder.write(tmp_path))
    assert ask(record, "fair_after.p100").value == pytest.approx(0.5)
    assert ask(record, "fair_after.p50").value == pytest.approx(0.25), "of 0 and 0.5 s"


def test_stretches_of_few_packets_are_taken_together(tmp_path: Path) -> None:
    """At a fifth of the rate a stretch has 15 packets of each of two flows: two are needed to tell 10 %."""
    folder = changed(lambda _, begin: 0.2 * (0 if begin < 0.95 else 0.8 if round(10 * begin) % 2 else 1.2))
    folder.scenario = folder.scenario.replace("port_rate: 25mbit", "port_rate: 5mbit").replace("20ms", "100ms")
    assert after(folder, tmp_path, "fair_after.p100") == pytest.approx(1.0)


def test_without_a_stretch_of_a_flow_it_is_unknown(tmp_path: Path) -> None:
    folder = changed(lambda *_: 1)
    folder.rows = [row for row in folder.rows if row[1] != "h3->h1" or row[3] > at(0.25)]
    found = ask(load_record(folder.write(tmp_path)), "fair_after.p100")
    assert (found.value, found.why) == (None, "nothing is known of h3->h1 in a part of that time")


def test_where_too_little_time_is_left_it_is_unknown(tmp_path: Path) -> None:
    folder = changed(lambda *_: 1)
    folder.history = [line | {"t_ns": at(5.85)} if line["op"] == "heal" else line for line in folder.history]
    found = ask(load_record(folder.write(tmp_path)), "fair_after.p100 after cut heals")
    assert found.value is None
    assert "1 stretches tell of the 0.15 s until the next change, and 3 are needed" in found.why


def test_the_last_three_stretches_are_looked_at(tmp_path: Path) -> None:
    assert after(changed(lambda _, begin: 0.5 if begin < 5.65 else 1), tmp_path, "fair_after.p100") == pytest.approx(
        5.7
    )
    late = ask(load_record(changed(lambda _, begin: 0.5 if begin < 5.75 else 1).write(tmp_path)), "fair_after.p100")
    assert late.value is None
