"""Windows tied to events, and whose figures count, on hand-made runs computed by hand beside.

Steps end at 1, 2, 3, 4.2, 5.3, 6.3, 7.3, 8.3 s; the workload at 8.3 s. `cut` is injected at 3.5 s and heals at 4.502 s;
its window ends at 4.752 s.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.result import CheckResult, Status
from mrc_testbed.testbed.checks.windows import NoData, outages, window_times
from mrc_testbed.testbed.expect import Length, Moment, Span, Window, parse_expectation, parse_figure
from tests.unit.checks.test_flows import LINE, FlowFolder
from tests.unit.checks.test_folder import HOSTS, LINK, RTT_NS, RunFolder, at, ev, fault, snapshot


@pytest.fixture
def folder() -> RunFolder:
    return RunFolder()


def window(words: str) -> Window:
    return parse_expectation(f"nacks == 0 {words}").window


def bounds(folder: RunFolder, path: Path, words: str) -> tuple[float, float]:
    """In seconds after the start."""
    (found,) = window_times(load_record(folder.write(path)), window(words))
    return (found.begin - at(0)) / 1e9, (found.end - at(0)) / 1e9


def parts(folder: RunFolder, path: Path, words: str) -> list[float]:
    """Begins and ends of all parts, in seconds after the start."""
    found = window_times(load_record(folder.write(path)), window(words))
    return [(edge - at(0)) / 1e9 for part in found for edge in part]


def lacking(folder: RunFolder, path: Path, line: str) -> str:
    """Why an expectation is open; each of them would hold if nothing were as good as zero."""
    folder.expect = [line]
    (check,) = [check for check in folder.judge(path).checks if check.name == line]
    assert check.status is Status.INCONCLUSIVE
    assert check.observed is None
    return check.why


@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        ("from 1s to 2s", 1, 2),
        ("from cut to 5s", 3.501, 5),
        ("from cut - 1s to cut + 1s", 2.501, 4.501),
        ("from cut + 4 rtt to cut heals", 3.601, 4.502),
        ("from cut heals for 500ms", 4.502, 5.002),
        ("from 1s for 10 rtt", 1, 1.25),
        ("before cut", 0, 3.5),
        ("after cut heals", 4.502, 8.3),
        ("after cut heals + 10 rtt", 4.752, 8.3),
        ("after cut heals + 500ms for 2s", 5.002, 7.002),
        ("after cut heals for 20s", 4.502, 8.3),
    ],
)
def test_when_a_window_is(folder: RunFolder, tmp_path: Path, words: str, begin: float, end: float) -> None:
    assert bounds(folder, tmp_path, words) == pytest.approx((begin, end))


def add_fault(folder: RunFolder, name: str, begin: float, end: float, occurrence: int = 0) -> None:
    more: dict[str, Any] = {"fault": name, "cycle": occurrence}
    folder.history += [fault("inject", "invoke", begin, **more), fault("inject", "ok", begin, **more)]
    folder.history.append(fault("heal", "ok", end, **more))


def test_neighbouring_faults_end_what_is_before_and_after(folder: RunFolder, tmp_path: Path) -> None:
    add_fault(folder, "first", 1, 1.5)
    add_fault(folder, "next", 6, 6.5)
    assert bounds(folder, tmp_path, "before cut") == pytest.approx((1.75, 3.5)), (
        "from the end of the first one's window"
    )
    assert bounds(folder, tmp_path, "after cut heals") == pytest.approx((4.502, 6))
    assert bounds(folder, tmp_path, "after cut heals for 1s") == pytest.approx((4.502, 5.502))
    assert lacking(folder, tmp_path, "qp_errors == 0 after cut heals + 2s") == "there was no time after cut heals + 2 s"
    assert parts(folder, tmp_path, "from cut heals for 3s") == pytest.approx([4.502, 6, 6.75, 7.502])
    assert parts(folder, tmp_path, "from 0s to 8s") == pytest.approx([0, 8]), "it names no fault"


def test_a_fault_that_goes_on_is_in_no_window_of_another(folder: RunFolder, tmp_path: Path) -> None:
    add_fault(folder, "slow", 0.5, 5)
    add_fault(folder, "early", 0.1, 0.2)
    line = "there was no time {}"
    assert lacking(folder, tmp_path, "qp_errors == 0 before cut") == line.format("before cut")
    assert bounds(folder, tmp_path, "after cut heals") == pytest.approx((5.25, 8.3))
    assert bounds(folder, tmp_path, "after cut heals for 2s") == pytest.approx((5.25, 6.502))
    why = "there was no time from cut to cut + 1 s outside the windows of other faults"
    assert lacking(folder, tmp_path, "qp_errors == 0 from cut to cut + 1s") == why


def test_a_fault_whose_injection_failed_is_on_until_the_end(folder: RunFolder, tmp_path: Path) -> None:
    folder.history[-2:-2] = [fault("inject", kind, 6, fault="odd", number=0) for kind in ("invoke", "fail")]
    assert bounds(folder, tmp_path, "after cut heals") == pytest.approx((4.502, 6))


def test_of_several_occurrences_the_first_injection_and_the_last_heal_count(folder: RunFolder, tmp_path: Path) -> None:
    add_fault(folder, "cut", 5, 5.5, occurrence=1)
    assert bounds(folder, tmp_path, "from cut to cut heals") == pytest.approx((3.501, 5.5))
    assert bounds(folder, tmp_path, "after cut heals + 1 rtt") == pytest.approx((5.525, 8.3))
    assert bounds(folder, tmp_path, "before cut") == pytest.approx((0, 3.5))


WINDOWS = ("from 1s to 2s", "from cut for 1s", "after cut heals + 10 rtt", "before cut", "during faults", "during cut")
METRICS = ("nacks == 0", "packets_lost == 0", "evs_retired == 0", "qp_errors == 0")


@pytest.mark.parametrize("words", WINDOWS)
@pytest.mark.parametrize("metric", METRICS)
def test_a_workload_that_never_began_has_no_windows(folder: RunFolder, tmp_path: Path, metric: str, words: str) -> None:
    folder.history, folder.completions = [], []
    why = lacking(folder, tmp_path, f"{metric} {words}")
    assert "did not begin" in why or "was injected" in why or "was not injected" in why or "did not count" in why


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("during cut", "fault cut was not injected"),
        ("during faults", "no fault was injected"),
        ("before cut", "fault cut was not injected"),
        ("after cut heals", "fault cut was not injected"),
        ("from cut to cut + 1s", "fault cut was not injected"),
        ("from 1s to cut heals", "fault cut was not injected"),
    ],
)
@pytest.mark.parametrize("metric", ["packets_lost == 0", "evs_retired == 0", "qp_errors == 0", "bytes_wrong == 0"])
def test_a_fault_that_was_not_injected_has_no_windows(
    folder: RunFolder, tmp_path: Path, metric: str, words: str, why: str
) -> None:
    folder.history = [line for line in folder.history if "fault" not in line]
    assert lacking(folder, tmp_path, f"{metric} {words}") == why


@pytest.mark.parametrize("words", ["after cut heals", "from cut heals - 1s to cut heals", "from 1s to cut heals"])
def test_a_fault_that_did_not_heal_is_not_over(folder: RunFolder, tmp_path: Path, words: str) -> None:
    folder.history = [line for line in folder.history if line.get("op") != "heal"]
    assert lacking(folder, tmp_path, f"packets_lost == 0 {words}") == "fault cut was not healed"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("from 9s to 10s", "the workload ended 1.7 s before from 9 s to 10 s"),
        ("from 7s to 9s", "the workload ended 0.7 s before from 7 s to 9 s"),
        ("from cut heals for 5s", "the workload ended 1.2 s before"),
        ("after cut heals + 4s", "there was no time after cut heals + 4 s"),
    ],
)
@pytest.mark.parametrize("metric", ["packets_lost == 0", "evs_retired == 0", "step_time.p100 <= 9 s"])
def test_a_window_beyond_the_workload_holds_nothing(
    folder: RunFolder, tmp_path: Path, metric: str, words: str, why: str
) -> None:
    folder.scenario = folder.scenario.replace("steps: 8", "steps: 80")  # as it was planned
    assert lacking(folder, tmp_path, f"{metric} {words}").startswith(why)


def test_faults_far_from_their_times_may_leave_no_window(folder: RunFolder, tmp_path: Path) -> None:
    folder.history = [line for line in folder.history if "fault" not in line]
    add_fault(folder, "cut", 0.5, 7)
    line = "packets_lost == 0 from cut - 1s to cut"
    assert lacking(folder, tmp_path, line) == "the workload began 0.5 s after from cut - 1 s to cut"
    line = "packets_lost == 0 from cut heals to 6s"
    assert lacking(folder, tmp_path, line) == "there was no time from cut heals to 6 s"


def test_a_run_that_is_all_fault_has_no_clean_part(folder: RunFolder, tmp_path: Path) -> None:
    add_fault(folder, "always", -1, 9)
    for metric in ("packets_lost == 0", "evs_retired == 0", "qp_errors == 0", "bytes_wrong == 0"):
        assert lacking(folder, tmp_path, f"{metric} clean") == "the whole workload lies in the windows of faults"


def test_windows_in_rtt_need_a_measured_rtt(folder: RunFolder, tmp_path: Path) -> None:
    folder.environment = {}
    for words in ("after cut heals + 10 rtt", "from cut + 1 rtt to cut heals", "from 1s for 3 rtt"):
        assert lacking(folder, tmp_path, f"packets_lost == 0 {words}") == "the base RTT was not measured in warm-up"


def test_a_window_that_lacks_an_end_is_a_mistake_of_the_program(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a begin and an end"):
        window_times(load_record(folder.write(tmp_path)), Window(Span.TIMES, begin=Moment(offset=Length(1))))


def figure(folder: RunFolder, path: Path, words: str) -> float:
    """In base units, by its words with a stroke before the window: `packets_lost of h3 | during cut`."""
    return measure(load_record(folder.write(path)), parse_figure(words.replace("|", " ")))


@pytest.mark.parametrize(
    ("words", "value"),
    [
        # Steps that lie wholly in the window: 5 and 6 (5.3 to 7.3 s) and so on.
        ("steps_done | after cut heals", 3),
        ("steps_done | before cut", 2),  # step 0 of the fixture begins a little before the workload
        ("step_time.p100 | from cut - 2s to cut + 2s", 1.2e9),
        # Snapshots at 1, 3, 5, 7 s say 0, 2, 12, 13 of each host; in the end 14.
        # Those of a window of times lie inside it.
        ("packets_lost | from 1s to 3s", 4 * 2),
        ("packets_lost | from 5s to 7s", 4 * (13 - 12)),
        ("packets_lost | from 1s to 7s", 4 * 13),
        ("evs_retired | after cut heals", 0),
        ("evs_restored | after cut heals", 2),
        ("evs_retired | from cut to cut + 4 rtt", 1),
        # Of one host: its own counters, events and steps.
        ("packets_lost of h2", 14),
        ("packets_lost of h2 | during cut", 10),
        ("retransmissions of h0", 15),
        ("data_on_bad_ev of h0", 0),
        ("evs_retired of h0", 1),
        ("evs_retired of h1", 0),
        ("evs_retired of h0->h2", 1),
        ("evs_retired of h0->h1", 0),
        ("unrestored_evs of h0", 0),
        ("recovery.p100 of h3", 149e6),
        ("recovery.p100 of h0->h2 | during cut", 50e6),
        ("steps_done of h1", 8),
        ("qp_errors of h1", 0),
        ("bytes_wrong of h1", 0),
        ("goodput of h3 | clean", 1 << 20),
        ("step_time.p100 of h3", 1.2e9),
    ],
)
def test_figures_of_windows_and_hosts(folder: RunFolder, tmp_path: Path, words: str, value: float) -> None:
    assert figure(folder, tmp_path, words) == pytest.approx(value, rel=1e-6)


def test_a_rank_is_judged_by_its_own_steps(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions[4 * 2 + 3][2] = at(2.5)  # h3 began step 2 half a second late
    assert figure(folder, tmp_path, "step_time.min of h3") == pytest.approx(0.497e9)
    assert figure(folder, tmp_path, "step_time.min of h2") == pytest.approx(1e9)
    assert figure(folder, tmp_path, "step_time.min") == pytest.approx(1e9)


def test_wrong_bytes_and_errors_are_those_of_the_host_that_saw_them(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions[4 * 3 + 1][5] = 9  # h1, step 3
    folder.events.append({"event": "qp_error", "t_ns": at(4), "host": "h1", "qp": "a", "peer": "h2", "reason": "x"})
    for words, value in (("h1", 9), ("h0", 0), ("h1 | during cut", 9), ("h1 | clean", 0)):
        assert figure(folder, tmp_path, f"bytes_wrong of {words}") == value
    for words, value in (("h1", 1), ("h2", 0), ("h1->h2", 1), ("h2->h1", 1), ("h1->h3", 0), ("h1 | during cut", 1)):
        assert figure(folder, tmp_path, f"qp_errors of {words}") == value


@pytest.mark.parametrize("scope", ["h1", "each host", "h1->h2"])
def test_a_host_that_fell_silent_leaves_its_own_counts_open(folder: RunFolder, tmp_path: Path, scope: str) -> None:
    assert folder.counters is not None
    del folder.counters["hosts"]["h1"]
    assert "no final counters of h1" in lacking(folder, tmp_path, f"evs_retired of {scope} >= 0")
    assert figure(folder, tmp_path, "packets_lost of h2") == 14, "others are known"


def judged(folder: RunFolder, path: Path, line: str) -> CheckResult:
    folder.expect = [line]
    (check,) = [check for check in judge(load_record(folder.write(path))).checks if check.name == line]
    return check


@pytest.mark.parametrize(
    ("line", "status", "worst", "observed"),
    [
        ("packets_lost of each host <= 14", Status.PASS, "h0", 14),
        ("packets_lost of each host <= 12 during cut", Status.FAIL, "h2", 13),
        ("packets_lost of each host >= 11 during cut", Status.FAIL, "h0", 10),
        ("recovery.p100 of each host <= 6 rtt", Status.PASS, "h3", 149e6 / RTT_NS),
        ("recovery.p100 of each host <= 5 rtt during cut", Status.FAIL, "h3", 149e6 / RTT_NS),
        ("evs_retired of each host == 0", Status.FAIL, "h0", 1),
        ("evs_retired of each host != 7", Status.PASS, "h0", 1),
        ("step_time.p100 of each host <= 1.3 x clean.median", Status.FAIL, "h3", 1.5),
        ("goodput of each host >= 50% of clean during cut", Status.PASS, "h3", None),
    ],
)
def test_each_is_as_good_as_its_worst(
    folder: RunFolder, tmp_path: Path, line: str, status: Status, worst: str, observed: float | None
) -> None:
    folder.events[-14:] = [  # h2 lost 3 more during the cut
        *(event for event in folder.events[-14:] if event.get("host") != "h2"),
        *(snapshot("h2", t, lost=lost) for t, lost in ((1, 0), (3, 2), (5, 15), (7, 15))),
    ]
    folder.completions[4 * 3 + 3][2] -= 300_000_000  # h3 took 1.5 s for step 3
    check = judged(folder, tmp_path, line)
    assert (check.status, check.worst) == (status, worst)
    assert check.why.startswith(f"worst: {worst}")
    if observed is not None:
        assert check.observed == pytest.approx(observed, rel=1e-6)


def test_each_host_that_had_no_part_in_it_is_left_out_but_not_all_of_them(folder: RunFolder, tmp_path: Path) -> None:
    folder.events = [event for event in folder.events if event["event"] != "ev_state"]
    assert lacking(folder, tmp_path, "recovery.p100 of each host <= 6 rtt") == "no EV of h0 was retired by a fault"
    folder.events.append(ev("h1", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55))
    assert judged(folder, tmp_path, "recovery.p100 of each host <= 6 rtt").worst == "h1"


def test_a_member_without_data_is_open_unless_another_fails(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions = [row for row in folder.completions if row[0] != "h2"]
    line = "step_time.p100 of each host <= 2 s before cut"
    assert lacking(folder, tmp_path, line) == "h2: no step was finished before cut"
    assert judged(folder, tmp_path, line.replace("2 s", "0.5 s")).status is Status.FAIL


@pytest.mark.parametrize(
    ("line", "worst", "observed"),
    [
        ("flow_goodput.min of each flow >= 0.4 line clean", "h0->h2", 0.5),
        ("goodput of each flow >= 0.4 line clean", "h0->h2", 0.5),
        ("goodput of each host >= 0.4 line clean", "h2", 1),
        ("goodput of h2 >= 0.4 line clean", None, 1),
        ("goodput of h0->h2 >= 0.4 line clean", None, 0.5),
        ("goodput of incast >= 0.4 line clean", None, 1),
        ("bytes_wrong of each flow == 0", "h0->h2", 0),
        ("bytes_wrong of each host == 0", "h2", 0),
        ("evs_retired of each flow == 0", "h0->h2", 0),
        ("evs_retired of incast == 0", None, 0),
        ("packets_lost of each host <= 14", "h0", 14),
    ],
)
def test_flows_by_flow_and_by_host(tmp_path: Path, line: str, worst: str | None, observed: float) -> None:
    check = judged(FlowFolder(), tmp_path, line)
    assert (check.status, check.worst) == (Status.PASS, worst)
    assert check.observed == pytest.approx(observed, rel=1e-3)


def test_a_flow_that_delivers_wrong_bytes_is_named(tmp_path: Path) -> None:
    folder = FlowFolder()
    folder.rows[70][7] = 3
    assert folder.rows[70][1] == "h1->h2"
    assert judged(folder, tmp_path, "bytes_wrong of each flow == 0").worst == "h1->h2"
    assert judged(folder, tmp_path, "bytes_wrong of victims == 0").status is Status.PASS


def test_the_rates_of_the_fixture() -> None:
    assert pytest.approx(6_040_000, rel=1e-2) == LINE
    assert len(HOSTS) == 4
    assert issubclass(NoData, Exception)


def test_an_outage_is_what_was_planned_whatever_the_history_repeats_of_it(folder: RunFolder, tmp_path: Path) -> None:
    folder.history = [{**line, "links": [], "target": "?"} if "fault" in line else line for line in folder.history]
    record = load_record(folder.write(tmp_path))
    assert [outage.occurrence for outage in outages(record)] == list(record.occurrences)


def test_an_outage_that_no_plan_has_is_what_the_history_says(folder: RunFolder, tmp_path: Path) -> None:
    record = replace(load_record(folder.write(tmp_path)), occurrences=())
    (found,) = outages(record)
    assert (found.fault, found.number, found.kind, found.target, found.links) == ("cut", 0, "link-down", LINK, (LINK,))
