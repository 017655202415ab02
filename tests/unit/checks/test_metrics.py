"""Figures of hand-made runs, computed by hand beside."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.checks.intervals import between
from mrc_testbed.testbed.checks.metrics import measure
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.checks.recovery import recoveries
from mrc_testbed.testbed.checks.statistics import nearest_rank, statistic
from mrc_testbed.testbed.checks.steps import job_steps
from mrc_testbed.testbed.checks.windows import NoData, outages, window_times
from mrc_testbed.testbed.expect import Span, Window, parse_figure
from tests.unit.checks.test_folder import HOSTS, LINK, RTT_NS, RunFolder, at, ev, fault, snapshot

MS = 1e6
SECOND = 1e9
DURING_FAULTS = Window(Span.FAULTS)


@pytest.fixture
def folder() -> RunFolder:
    return RunFolder()


def figure(record: RunRecord, words: str) -> float:
    """In base units."""
    return measure(record, parse_figure(words))


def test_a_job_step_runs_from_slowest_end_to_slowest_end(folder: RunFolder, tmp_path: Path) -> None:
    steps = job_steps(load_record(folder.write(tmp_path)))
    assert [step.duration_ns / SECOND for step in steps[1:]] == pytest.approx([1.0, 1.0, 1.2, 1.1, 1.0, 1.0, 1.0])
    # The first step has no step before it: it counts from the earliest beginning, 3 ms before rank 0.
    assert steps[0].duration_ns == pytest.approx(1.003 * SECOND)
    assert steps[0].bytes == len(HOSTS) << 20


def test_steps_end_at_the_first_gap(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions = [row for row in folder.completions if (row[0], row[1]) != ("h2", 4)]
    assert len(job_steps(load_record(folder.write(tmp_path)))) == 4


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("step_time.p100", 1.2 * SECOND),
        ("step_time.max", 1.2 * SECOND),
        ("step_time.min", 1.0 * SECOND),
        # The fault is on from 3.5 s to 4.502 s and its aftermath ends at 4.752 s: steps 3 (3.0-4.2) and 4 (4.2-5.3).
        ("step_time.min during cut", 1.1 * SECOND),
        ("step_time.mean during faults", 1.15 * SECOND),
        ("step_time.median during faults", 1.15 * SECOND),
        # Clean are 1, 2, 5, 6, 7: without the warm-up step 0.
        ("step_time.p99 clean", 1.0 * SECOND),
        ("steps_done", 8),
        ("steps_done during cut", 2),
        ("steps_done clean", 5),
        ("goodput clean", 4 << 20),
        ("goodput during cut", 2 * (4 << 20) / 2.3),
        ("bytes_wrong", 0),
        ("qp_errors", 0),
        ("data_on_bad_ev", 0),
        ("queue_drops", 4),
        ("evs_retired", 2),
        ("evs_restored", 2),
        ("evs_retired during cut", 2),
        ("evs_restored during cut", 1),
        ("evs_retired clean", 0),
        ("evs_restored clean", 0),  # while one is out, and 10 RTTs longer, nothing is clean: until 5.05 s
        ("evs_retired from 0s to 8s", 2),
        ("unrestored_evs", 0),
        ("packets_lost", 4 * 14),
        ("retransmissions", 4 * 15),
        # Snapshots around 3.5 s .. 4.752 s: 2 lost at 3 s, 12 lost at 5 s.
        ("packets_lost during cut", 4 * 10),
        ("retransmissions during faults", 4 * 10),
        ("packets_lost clean", 4 * 3),
        # Steps 1 and 2 lie wholly inside; of counters the snapshots inside it, of events those inside.
        ("steps_done from 900ms to 4100ms", 2),
        ("step_time.max from 900ms to 4300ms", 1.2 * SECOND),
        ("packets_lost from 2900ms to 5300ms", 4 * 10),
        ("evs_retired from 3s to 5s", 2),
        ("evs_retired from 0s to 3s", 0),
        # h0: 3.6 s after the first lost packet at 3.55 s. h3: first loss before the fault was in place at 3.501 s.
        ("recovery.p50", (50 + 149) / 2 * MS),
        ("recovery.p99", 149 * MS),
        ("recovery.p100 during cut", 149 * MS),
    ],
)
def test_figures_of_a_usual_run(folder: RunFolder, tmp_path: Path, words: str, value: float) -> None:
    assert figure(load_record(folder.write(tmp_path)), words) == pytest.approx(value)


def no_data(folder: RunFolder, tmp_path: Path, words: str) -> str:
    with pytest.raises(NoData) as caught:
        figure(load_record(folder.write(tmp_path)), words)
    return str(caught.value)


def test_marks_are_those_of_all_ports_and_classes(folder: RunFolder, tmp_path: Path) -> None:
    assert folder.counters is not None
    folder.counters["ports"]["p0-t0-0"]["up0"]["out_marked"] = 5
    folder.counters["ports"]["p0-t0-1"]["down0"]["out_other_marked"] = 2
    assert figure(load_record(folder.write(tmp_path)), "marks") == 5 + 2


def test_nothing_to_measure_is_said_not_guessed(folder: RunFolder, tmp_path: Path) -> None:
    folder.history = [line for line in folder.history if line.get("op") != "inject"]
    assert no_data(folder, tmp_path, "step_time.p100 during cut") == "fault cut was not injected"
    assert no_data(folder, tmp_path, "step_time.p100 during faults") == "no fault was injected"
    assert no_data(folder, tmp_path, "packets_lost during faults") == "no fault was injected"
    assert no_data(folder, tmp_path, "recovery.p100") == "no EV was retired by a fault"
    assert no_data(folder, tmp_path, "exposure.p100") == "no EV was retired by a fault"
    assert no_data(folder, tmp_path, "recovery.p100 during cut") == "no EV was retired by cut"
    assert no_data(folder, tmp_path, "evs_retired during cut") == "fault cut was not injected"


def test_no_steps_at_all(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions = []
    for metric in ("step_time.p100", "goodput"):
        assert no_data(folder, tmp_path, metric) == "no step was finished"
    assert no_data(folder, tmp_path, "step_time.p100 clean") == "no step was finished outside all faults"
    assert no_data(folder, tmp_path, "bytes_wrong") == "no rank finished a step"
    assert figure(load_record(tmp_path), "steps_done") == 0


def test_a_workload_that_never_began(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions = []
    folder.history = folder.history[:1]
    assert no_data(folder, tmp_path, "steps_done") == "the workload did not begin"


def test_steps_without_duration_have_no_goodput(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions = [[host, 0, at(1), at(1), 100, 0] for host in HOSTS]
    assert no_data(folder, tmp_path, "goodput") == "the steps took no time"


@pytest.mark.parametrize("metric", ["qp_errors", "data_on_bad_ev", "evs_retired", "unrestored_evs", "packets_lost"])
def test_a_silent_host_leaves_counts_open(folder: RunFolder, tmp_path: Path, metric: str) -> None:
    assert folder.counters is not None
    del folder.counters["hosts"]["h1"]
    assert no_data(folder, tmp_path, metric) == "no final counters of h1"


def test_a_qp_error_is_a_fact_even_when_a_host_fell_silent(folder: RunFolder, tmp_path: Path) -> None:
    folder.counters = None
    folder.events.append({"event": "qp_error", "t_ns": at(4), "host": "h0", "qp": "a", "peer": "h1", "reason": "x"})
    record = load_record(folder.write(tmp_path))
    assert figure(record, "qp_errors") == 1
    assert figure(record, "qp_errors during cut") == 1
    assert no_data(folder, tmp_path, "qp_errors clean").startswith("no final counters of h0, h1, h2, h3")
    assert no_data(folder, tmp_path, "queue_drops") == "no queue counters were recorded"
    assert no_data(folder, tmp_path, "marks") == "no switch port counted what it marked"


@pytest.mark.parametrize(
    ("metric", "says"),
    [
        ("data_on_bad_ev", "h0 did not count data_on_bad_ev"),
        ("packets_lost", "h0 did not count lost packets"),
        ("retransmissions", "h0 did not count retransmitted"),
    ],
)
def test_a_counter_that_is_not_kept_is_not_zero(folder: RunFolder, tmp_path: Path, metric: str, says: str) -> None:
    assert folder.counters is not None
    folder.counters["hosts"]["h0"]["counters"] = {"sent": 3}
    assert no_data(folder, tmp_path, metric) == says


def test_bytes_wrong_are_found_in_unfinished_steps_too(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions = folder.completions[:5]
    folder.completions[4][5] = 9
    assert figure(load_record(folder.write(tmp_path)), "bytes_wrong") == 9
    assert figure(load_record(tmp_path), "steps_done") == 1


def test_bytes_wrong_of_a_window(folder: RunFolder, tmp_path: Path) -> None:
    folder.completions[4 * 3][5] = 9
    record = load_record(folder.write(tmp_path))
    assert figure(record, "bytes_wrong during cut") == 9
    assert figure(record, "bytes_wrong clean") == 0


def test_an_ev_left_bad_is_unrestored(folder: RunFolder, tmp_path: Path) -> None:
    folder.events.append(ev("h0", "h2", 1, 0, 7.0, "GOOD", "ASSUMED_BAD"))
    assert figure(load_record(folder.write(tmp_path)), "unrestored_evs") == 1


def test_hosts_may_be_named_by_number_in_events(folder: RunFolder, tmp_path: Path) -> None:
    for event in folder.events:
        if event["event"] == "ev_state":
            event["peer"] = int(event["peer"][1:])
    assert len(recoveries(load_record(folder.write(tmp_path)))) == 2


def test_a_fault_that_never_healed_has_no_end(folder: RunFolder, tmp_path: Path) -> None:
    folder.history = [line for line in folder.history if line.get("op") != "heal"]
    record = load_record(folder.write(tmp_path))
    assert window_times(record, DURING_FAULTS) == between(at(3.5), float("inf"))
    assert figure(record, "steps_done during cut") == 5
    assert figure(record, "packets_lost during cut") == 4 * 12
    assert len(recoveries(record)) == 2


def test_without_a_measured_rtt_t_stands_in(folder: RunFolder, tmp_path: Path) -> None:
    folder.environment = {}
    record = load_record(folder.write(tmp_path))
    assert record.base_rtt_ns is None
    assert window_times(record, DURING_FAULTS) == between(at(3.5), at(4.502) + 10 * record.scenario.shape().rtt_ns)


def retired(folder: RunFolder, tmp_path: Path, *events: dict[str, object]) -> list[tuple[str, int, float]]:
    folder.events = [event for event in folder.events if event["event"] != "ev_state"] + list(events)
    found = recoveries(load_record(folder.write(tmp_path)))
    return [(one.fault, one.number, one.duration_ns / MS) for one in found]


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (ev("h0", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55), [("cut", 0, 50)]),
        (ev("h0", "h2", 0, 1, 3.6, "GOOD", "ASSUMED_BAD"), [("cut", 0, 99)]),
        (ev("h0", "h2", 0, 1, 3.5005, "GOOD", "ASSUMED_BAD"), [("cut", 0, 0)]),  # between invoke and ok
        (ev("h0", "h2", 0, 1, 3.4, "GOOD", "ASSUMED_BAD"), []),  # before the fault
        (ev("h0", "h2", 0, 0, 3.6, "GOOD", "ASSUMED_BAD"), []),  # another uplink
        (ev("h0", "h2", 1, 1, 3.6, "GOOD", "ASSUMED_BAD"), []),  # another plane
        (ev("h0", "h1", 0, 1, 3.6, "GOOD", "ASSUMED_BAD"), []),  # inside one T0 group
        (ev("h0", "h2", 0, 1, 3.6, "ASSUMED_BAD", "GOOD"), []),
        (ev("h0", "h2", 0, 1, 3.6, "GOOD", "SKIP"), []),
        (ev("h0", "h2", 0, 1, 3.6, "DENIED", "ASSUMED_BAD"), []),
        (ev("h0", "h2", 0, 1, 4.7, "GOOD", "ASSUMED_BAD", lost=4.65), [("cut", 0, 50)]),  # in the aftermath
        (ev("h0", "h2", 0, 1, 6.0, "GOOD", "ASSUMED_BAD", lost=5.9), []),  # long after: another cause
        (ev("h0", "h2", 0, 1, 6.0, "GOOD", "ASSUMED_BAD", lost=4.0), [("cut", 0, 2000)]),  # noticed late
        (ev("h0", "h99", 0, 1, 3.6, "GOOD", "ASSUMED_BAD"), []),
    ],
)
def test_which_retirements_a_fault_causes(
    folder: RunFolder, tmp_path: Path, event: dict[str, object], found: list[tuple[str, int, float]]
) -> None:
    assert retired(folder, tmp_path, event) == [(name, occurrence, pytest.approx(ms)) for name, occurrence, ms in found]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("link-loss: p0-t0-0:p0-t1-1, loss: 50%", {("h0", "h2"), ("h2", "h0"), ("h1", "h2"), ("h0", "h3")}),
        ("ev-loss: p0-t1-1, from: h0, loss: 50%", {("h0", "h2"), ("h0", "h3")}),
        ("ev-loss: p0-t1-1, from: h0, to: h2, loss: 50%", {("h0", "h2")}),
    ],
)
def test_a_fault_of_one_sender_retires_no_ev_of_another(
    folder: RunFolder, tmp_path: Path, written: str, found: set[tuple[str, str]]
) -> None:
    folder.break_instead(written)
    pairs = (("h0", "h2"), ("h2", "h0"), ("h1", "h2"), ("h0", "h3"))
    folder.events = [ev(*pair, 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55) for pair in pairs]
    causes = recoveries(load_record(folder.write(tmp_path)))
    assert {(one.change.host, one.change.peer) for one in causes} == found


def test_the_reverse_direction_crosses_the_link_too(folder: RunFolder, tmp_path: Path) -> None:
    assert len(retired(folder, tmp_path, ev("h2", "h0", 0, 1, 3.6, "GOOD", "ASSUMED_BAD", lost=3.55))) == 1


def test_the_latest_occurrence_is_the_cause(folder: RunFolder, tmp_path: Path) -> None:
    folder.history += [fault("inject", "ok", 4.6, cycle=1), fault("heal", "ok", 5.6, cycle=1)]
    event = ev("h0", "h2", 0, 1, 4.65, "GOOD", "ASSUMED_BAD", lost=4.61)
    assert retired(folder, tmp_path, event) == [("cut", 1, pytest.approx(40))]


def test_occurrences_that_touch_are_one_interval(folder: RunFolder, tmp_path: Path) -> None:
    folder.history += [fault("inject", "ok", 4.6, cycle=1), fault("heal", "ok", 5.6, cycle=1)]
    record = load_record(folder.write(tmp_path))
    assert [outage.links for outage in outages(record)] == [(LINK,), (LINK,)]
    assert window_times(record, DURING_FAULTS) == between(at(3.5), at(5.6) + 10 * RTT_NS)
    assert figure(record, "packets_lost during cut") == 4 * 11


def test_before_the_first_snapshot_counters_are_zero(folder: RunFolder, tmp_path: Path) -> None:
    folder.events = [snapshot(host, 6, 9) for host in HOSTS]
    assert figure(load_record(folder.write(tmp_path)), "packets_lost during cut") == 4 * 9


@pytest.mark.parametrize(
    ("stat", "value"),
    [("min", 1), ("max", 10), ("p100", 10), ("p99", 10), ("mean", 5.5), ("median", 5.5), ("p50", 5.5)],
)
def test_statistics(stat: str, value: float) -> None:
    assert statistic(range(10, 0, -1), stat) == value


def test_percentiles_are_values_that_occurred() -> None:
    assert nearest_rank(range(1, 101), 99) == 99
    assert nearest_rank(range(1, 201), 99) == 198
    assert nearest_rank([7], 99) == 7


def exposed(folder: RunFolder, tmp_path: Path, *last: float | None) -> list[float]:
    lost = [ev("h0", "h2", 0, 1, 3.6 + 0.01 * n, "GOOD", "ASSUMED_BAD", 3.55, one) for n, one in enumerate(last)]
    folder.events = [event for event in folder.events if event["event"] != "ev_state"] + list(lost)
    return [one.exposure_ns / MS for one in recoveries(load_record(folder.write(tmp_path)))]


def test_exposure_lasts_from_the_fault_to_the_last_packet_sent(folder: RunFolder, tmp_path: Path) -> None:
    # The fault is in place at 3.501 s: packets before it, or none at all, were not sent to no purpose.
    assert exposed(folder, tmp_path, 3.58, 3.5, None) == pytest.approx([79, 0, 0])
    record = load_record(tmp_path)
    assert figure(record, "exposure.p100") == pytest.approx(79 * MS)
    assert figure(record, "exposure.p50 during cut") == 0
    assert figure(record, "exposure.p99") == pytest.approx(79 * MS)


def test_exposure_is_only_known_for_paths_that_broke(folder: RunFolder, tmp_path: Path) -> None:
    folder.events = [ev("h0", "h2", 0, 0, 3.6, "GOOD", "ASSUMED_BAD", 3.55, 3.58)]
    assert no_data(folder, tmp_path, "exposure.p100 during cut") == "no EV was retired by cut"


def cold(folder: RunFolder) -> None:
    """The same fault, but broken 2 s before the workload began and healed 1 s after."""
    folder.scenario = folder.scenario.replace("at: 3500ms", "at: cold-start")
    folder.history = [line for line in folder.history if "fault" not in line]
    folder.history[1:1] = [fault("inject", "invoke", -2), fault("inject", "ok", -1.99)]
    folder.history[4:4] = [fault("heal", "invoke", 1), fault("heal", "ok", 1.001)]


def test_a_cold_fault_counts_from_what_was_sent_into_it(folder: RunFolder, tmp_path: Path) -> None:
    cold(folder)
    folder.events = [ev("h0", "h2", 0, 1, 0.16, "GOOD", "ASSUMED_BAD", lost=0.11, last=0.13)]
    folder.events.append(ev("h0", "h2", 0, 1, 1, "ASSUMED_BAD", "GOOD"))
    record = load_record(folder.write(tmp_path))
    assert figure(record, "recovery.p100 during cut") == pytest.approx(50 * MS), "from the first lost packet"
    assert figure(record, "exposure.p100 during cut") == pytest.approx(130 * MS), "from the workload's start"
    assert figure(record, "steps_done during cut") == 2, "0 to 1.251 s"
    assert figure(record, "steps_done clean") == 6


def test_what_is_denied_is_not_retired(folder: RunFolder, tmp_path: Path) -> None:
    folder.break_instead("deny: p0-t1-1")
    folder.events = [
        ev("h0", "h2", 0, 1, 3.6, "GOOD", "DENIED", last=3.55),
        ev("h0", "h2", 0, 1, 4.51, "DENIED", "ASSUMED_BAD", last=3.55),
        ev("h0", "h2", 0, 1, 4.6, "ASSUMED_BAD", "GOOD", last=3.55),
        ev("h3", "h1", 0, 1, 3.8, "GOOD", "ASSUMED_BAD", lost=3.7, last=3.75),
    ]
    record = load_record(folder.write(tmp_path))
    assert recoveries(record) == [], "a denied path is not broken: what is lost meanwhile has another cause"
    assert figure(record, "evs_retired during cut") == 1
    assert figure(record, "steps_done during cut") == 2, "the time of it is known all the same"
