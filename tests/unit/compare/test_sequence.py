"""Two runs of one scenario and one seed: what must be the same is told from what may differ by chance."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.compare.runs import load_run
from mrc_testbed.testbed.compare.sequence import Apart, SequenceDiff, _moved, _without, repeats, sequence_diff
from mrc_testbed.testbed.compare.sequence_words import apart_words, bound_words, sequence_lines
from mrc_testbed.testbed.compare.story import chapters
from tests.unit.checks.test_folder import SCENARIO, RunFolder, at, ev, fault
from tests.unit.recorded import record_run

Doctor = Callable[[RunFolder], None]


def diff(tmp_path: Path, doctor: Doctor, after: Callable[[Path], None] = lambda _: None) -> SequenceDiff:
    """A run against the same one, doctored before it is written and after."""
    record_run(tmp_path / "first", RunFolder(expect=["qp_errors == 0"]))
    second = RunFolder(expect=["qp_errors == 0"])
    doctor(second)
    after(record_run(tmp_path / "second", second))
    runs = [load_run(tmp_path / name) for name in ("first", "second")]
    assert repeats(runs)
    return sequence_diff(*runs)


def words(found: SequenceDiff) -> str:
    return "\n".join(sequence_lines(found))


def test_a_run_is_like_itself(tmp_path: Path) -> None:
    found = diff(tmp_path, lambda run: None)
    assert not found.broken
    (cut,) = found.chapters
    assert (cut.name, cut.title, cut.both, cut.same) == ("cut, occurrence 0", "link-down p0-t0-0:p0-t1-1", 4, True)
    said = words(found)
    assert "the same 1 occurrences, with the same targets and times" in said
    assert "the same 4 steps in the same order" in said
    assert "8 steps with the same bytes" in said
    assert "1 of 1 occurrences the same; 4 events in both runs" in said


def test_a_path_that_only_one_run_left_comes_first_and_is_no_mistake(tmp_path: Path) -> None:
    def spared(run: RunFolder) -> None:
        run.events = [event for event in run.events if event.get("peer") != "h1"]

    found = diff(tmp_path, spared)
    assert not found.broken
    assert found.chapters[0].only_first == ("h3->h1 p0/1 retired", "h3->h1 p0/1 back")
    assert words(found).splitlines()[0] == (
        "cut, occurrence 0 (link-down p0-t0-0:p0-t1-1): only in the first run: h3->h1 p0/1 retired, h3->h1 p0/1 back"
    )


def test_a_time_beyond_the_bound_is_told_and_one_within_is_not(tmp_path: Path) -> None:
    def later(run: RunFolder) -> None:
        run.events[0]["t_ns"] = at(3.64)  # 40 ms later: less than two base RTTs of 25 ms
        run.events[2]["t_ns"] = at(5.4)  # 0.7 s later

    found = diff(tmp_path, later)
    (cut,) = found.chapters
    assert [(one.what, one.first_ns, one.second_ns, one.after_heal) for one in cut.apart] == [
        ("h0->h2 p0/1 back", 198_000_000, 898_000_000, True)
    ]
    assert found.bound_ns == 50_000_000
    assert "at another time: h0->h2 p0/1 back 198 ms and 898 ms after the heal" in words(found)


def test_order_within_a_burst_says_nothing_and_beyond_it_is_told(tmp_path: Path) -> None:
    def swapped(by: float) -> Doctor:
        def doctor(run: RunFolder) -> None:
            run.events[0]["t_ns"], run.events[1]["t_ns"] = at(3.62 + by), at(3.62)

        return doctor

    (near,) = diff(tmp_path, swapped(0.03)).chapters
    assert (near.moved, len(near.shuffled), near.same) == ((), 1, True)

    def far(run: RunFolder) -> None:
        run.events[2]["t_ns"], run.events[3]["t_ns"] = at(4.9), at(4.7)

    record_run(tmp_path / "third", _with(lambda run: _set(run, {2: 4.7, 3: 4.9})))
    record_run(tmp_path / "fourth", _with(far))
    (told,) = sequence_diff(load_run(tmp_path / "third"), load_run(tmp_path / "fourth")).chapters
    assert len(told.moved) == 1
    assert "back" in told.moved[0]
    assert not told.same


def _with(doctor: Doctor) -> RunFolder:
    run = RunFolder(expect=["qp_errors == 0"])
    doctor(run)
    return run


def _set(run: RunFolder, seconds: dict[int, float]) -> None:
    for index, second in seconds.items():
        run.events[index]["t_ns"] = at(second)


def test_what_only_one_run_saw_comes_before_other_times(tmp_path: Path) -> None:
    def both(run: RunFolder) -> None:
        run.events[3]["t_ns"] = at(5.4)
        run.events.append(ev("h0", "h2", 1, 0, 7.0, "GOOD", "ASSUMED_BAD", lost=6.9))

    lines = words(diff(tmp_path, both)).splitlines()
    assert lines[0].startswith("not due to a fault: only in the second run")
    assert "at another time" in lines[1]


def test_what_no_fault_has_caused_is_a_chapter_of_its_own(tmp_path: Path) -> None:
    found = diff(tmp_path, lambda run: run.events.append(ev("h0", "h2", 1, 0, 7.0, "GOOD", "ASSUMED_BAD", lost=6.9)))
    assert [(one.name, one.only_second) for one in found.chapters[1:]] == [
        ("not due to a fault", ("h0->h2 p1/0 retired",))
    ]


def test_ports_controllers_and_failed_qps_are_in_the_story(tmp_path: Path) -> None:
    def more(run: RunFolder) -> None:
        run.events += [
            {"event": "port_state", "t_ns": at(3.7), "host": "h0", "peer": None, "plane": 1, "state": "DOWN"},
            {"event": "port_state", "t_ns": at(3.8), "host": "h2", "peer": "h0", "plane": 1, "state": "DOWN"},
            {"event": "qp_error", "t_ns": at(3.9), "host": "h1", "qp": "x", "peer": "h2", "reason": "timeout"},
            ev("h1", "h3", 1, 1, 4.0, "GOOD", "DENIED"),
        ]

    record = load_run(record_run(tmp_path / "run", _with(more))).record
    (cut,) = chapters(record)
    assert [one.what for one in cut.events if "p0/1" not in one.what] == [
        "h0 port p1 is DOWN",
        "h2 learns that port p1 of h0 is DOWN",
        "h1 QP to h2 failed: timeout",
        "h1->h3 p1/1 denied",
    ]


def not_healed(run: RunFolder) -> None:
    run.history = [line for line in run.history if line["op"] != "heal"]


def healed_late(run: RunFolder) -> None:
    run.history = [line for line in run.history if line["op"] != "heal"]
    run.history[4:4] = [fault("heal", "invoke", 4.7), fault("heal", "ok", 4.71)]


def fewer_bytes(run: RunFolder) -> None:
    run.completions[0][4] -= 1


def fewer_steps(run: RunFolder) -> None:
    del run.completions[-4:]


@pytest.mark.parametrize(
    ("doctor", "says"),
    [
        (
            not_healed,
            "heals: first run: heal cut, occurrence 0: invoke, heal cut, occurrence 0: ok; second run: nothing",
        ),
        (healed_late, "times of injections and heals: at most 208 ms apart (heal cut, occurrence 0)"),
        (fewer_bytes, "work: different bytes in steps 0"),
        (fewer_steps, "work: 8 and 7 steps were finished"),
    ],
)
def test_what_the_seed_decides_may_not_differ(tmp_path: Path, doctor: Doctor, says: str) -> None:
    found = diff(tmp_path, doctor)
    first = words(found).splitlines()[0]
    assert first.startswith("NOT the same, although the seed decides it: ")
    assert says in first


def test_at_a_scale_a_heal_may_be_late_by_less(tmp_path: Path) -> None:
    """At 100 times the speed by 1 ms, and not by 100."""
    fast = SCENARIO.replace("name: small", "name: small\nworld: virtual\nscale: 100")
    runs = []
    for name, late_ns in (("first", 0), ("second", 1_100_000), ("third", 900_000)):
        run = RunFolder(expect=["qp_errors == 0"], scenario=fast)
        for line in run.history:
            line["t_ns"] += late_ns * (line["op"] == "heal")
        runs.append(load_run(record_run(tmp_path / name, run)))
    in_time = [
        next(one for one in sequence_diff(runs[0], other).certain if one.what == "times of injections and heals")
        for other in runs[1:]
    ]
    assert [one.same for one in in_time] == [False, True]
    assert in_time[0].said == "at most 1.1 ms apart (heal cut, occurrence 0)"
    assert in_time[1].said == "at most 900 us apart"


def test_times_of_microseconds_are_told_as_such() -> None:
    assert bound_words(SequenceDiff((), (), 26_000)) == "26 us"
    assert apart_words(Apart("h0->h2 p0/1 back", 41_300, 90_000, False)).endswith("41.3 us and 90 us after the fault")


def test_another_schedule_is_the_first_thing_to_be_told(tmp_path: Path) -> None:
    def moved(folder: Path) -> None:
        plan = json.loads((folder / "plan.json").read_text())
        plan["faults"][0]["end_ns"] += 1
        (folder / "plan.json").write_text(json.dumps(plan))

    found = diff(tmp_path, lambda run: None, moved)
    assert [one.what for one in found.broken] == ["schedule of faults"]
    assert "different in cut, occurrence 0" in words(found).splitlines()[0]


def test_paths_in_use_are_decided_where_there_are_no_spare_ones(tmp_path: Path) -> None:
    def unused(folder: Path) -> None:
        counters: dict[str, Any] = json.loads((folder / "counters.json").read_text())
        counters["hosts"]["h1"]["paths"]["h2"]["0/1"] = 0
        (folder / "counters.json").write_text(json.dumps(counters))

    found = diff(tmp_path, lambda run: None, unused)
    (one,) = found.broken
    assert (one.what, one.said) == ("paths that carried data", "1 in one run only: h1->h2 p0/1")


def test_only_two_runs_of_one_seed_are_compared_so(tmp_path: Path) -> None:
    usual = load_run(record_run(tmp_path / "a", RunFolder(expect=["qp_errors == 0"])))
    seeded = SCENARIO.replace("name: small", "name: small\nseed: 2")
    other = load_run(record_run(tmp_path / "b", RunFolder(expect=["qp_errors == 0"], scenario=seeded)))
    assert not repeats([usual, other])
    assert not repeats([usual, usual, usual])


WHATS = st.lists(st.sampled_from("abcd"), max_size=8)


@given(WHATS, WHATS)
def test_what_is_in_one_only_and_what_is_in_both_make_the_whole(first: list[str], second: list[str]) -> None:
    only, other = _without(first, second), _without(second, first)
    assert sorted(_without(first, only)) == sorted(_without(second, other))
    assert not set(only) & set(other)
    assert _moved(first, first) == []
