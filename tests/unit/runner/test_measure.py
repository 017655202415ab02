"""The measurement from its start to its end."""

from __future__ import annotations

import json

import pytest

from mrc_testbed.testbed.errors import WorkloadError
from mrc_testbed.testbed.runner.events import DaemonEvent, MachineSeen, Note, PortsSampled, WorkloadBegins
from mrc_testbed.testbed.switching.port_counts import PortHits
from tests.unit.runner.measuring import Bench, FakeWatch, S


def test_it_is_over_when_every_rank_has_finished(bench: Bench) -> None:
    bench.finish(2, "h0")
    bench.finish(3.5, "h1")
    assert bench.run() == 3.5
    assert bench.history("op", "type") == [("workload", "invoke"), ("workload", "ok")]
    assert bench.history("t_ns")[0] == (bench.start_ns,)


def test_counters_are_sampled_five_times_a_second(bench: Bench) -> None:
    bench.finish(1)
    bench.run()
    rows = (bench.folder / "samples.csv").read_text().splitlines()[1:]
    times = [int(row.split(",")[0]) - bench.start_ns for row in rows]
    assert times == [0, S // 5, 2 * S // 5, 3 * S // 5, 4 * S // 5, S]
    assert rows[0].endswith(",h0,port0,1,2,3,0,5,6")


def test_ports_are_written_when_a_count_of_theirs_has_changed(bench: Bench) -> None:
    t0, t1 = ("p0-t0-0", "up0"), ("p0-t1-0", "down1")
    bench.fabric.hits = {t0: PortHits(0, 0, 0, 0, 0), t1: PortHits(9, 0, 0, 0, 0)}
    bench.loop.at(bench.start_ns + S // 2, lambda: bench.fabric.hits.update({t0: PortHits(1, 2, 3, 4, 5)}))
    bench.finish(1)
    bench.run()
    bench.fabric.hits[t1] = PortHits(9, 1, 0, 0, 0)
    bench.measurement.final_figures(bench.team)
    header, *rows = (bench.folder / "ports.csv").read_text().splitlines()
    assert header == "t_ns,node,port,marked,trimmed,dropped,lost,corrupted"
    times, ports = zip(*(row.split(",", 1) for row in rows), strict=True)
    assert list(ports) == ["p0-t1-0,down1,9,0,0,0,0", "p0-t0-0,up0,1,2,3,4,5", "p0-t1-0,down1,9,1,0,0,0"]
    assert [int(time) - bench.start_ns for time in times[:2]] == [0, 6 * S // 10]


def test_a_port_program_that_touched_nothing_leaves_the_head_of_a_table(bench: Bench) -> None:
    bench.finish(1)
    bench.run()
    assert len((bench.folder / "ports.csv").read_text().splitlines()) == 1


def test_steps_are_told_when_the_last_rank_has_done_them(bench: Bench) -> None:
    """From the first rank's begin, or from the last end if that is later; each began half a second before its end."""
    for at_s, host, step in ((1, "h0", 0), (1.2, "h1", 0), (2.2, "h1", 1), (4.2, "h0", 1), (5, "h0", 2), (5, "h1", 2)):
        bench.step(at_s, host, step)
    bench.finish(6)
    bench.run()
    assert bench.told.steps == [
        "step 1/3, last 0.70 s, worst 0.70 s",
        "step 2/3, last 2.50 s, worst 2.50 s",
        "step 3/3, last 0.50 s, worst 2.50 s",
    ]
    rows = (bench.folder / "completions.csv").read_text().splitlines()[1:]
    assert len(rows) == 6
    assert rows[2] == f"h1,1,{bench.start_ns + 17 * S // 10},{bench.start_ns + 22 * S // 10},101,0"


def test_who_listens_is_told_of_start_events_counters_and_machine(bench: Bench) -> None:
    bench.say(0.5, "h1", "plane_state", peer="h0", plane=1, usable=False)
    bench.finish(3.5)
    bench.run()
    bench.loop.run_until(lambda: False, bench.start_ns + 9 * S)
    events = bench.told.events
    assert events[0] == WorkloadBegins(bench.start_ns)
    said = [(one.host, one.event["event"]) for one in events if isinstance(one, DaemonEvent)]
    assert said == [("h1", "plane_state"), ("h0", "program_done"), ("h1", "program_done")]
    sampled = [one for one in events if isinstance(one, PortsSampled)]
    assert [one.t_ns for one in sampled[:2]] == [bench.start_ns, bench.start_ns + S // 5]
    assert sampled[0].rows[0] == ("h0", "port0", 1, 2, 3, 0, 5, 6)
    machine = [one.figures for one in events if isinstance(one, MachineSeen)]
    assert len(machine) == 3, "once a second while the workload lasts"
    assert machine[2] == {**FakeWatch().figures(), "shaped_rate_error": 0.0}


def test_events_are_recorded_whatever_they_are(bench: Bench) -> None:
    bench.say(0.5, "h1", "plane_state", peer="h0", plane=1, usable=False)
    bench.finish(1)
    bench.run()
    first = json.loads((bench.folder / "events.jsonl").read_text().splitlines()[0])
    assert first["host"] == "h1"
    assert first["event"] == "plane_state"
    assert first["usable"] is False


def test_a_qp_error_ends_the_run_after_a_second(bench: Bench) -> None:
    bench.say(2.05, "h1", "qp_error", qp="1>0", peer="h0", reason="retries exceeded")
    bench.say(2.9, "h0", "qp_error", qp="1>0", peer="h1", reason="what followed from it")
    with pytest.raises(WorkloadError, match=r"^h1: QP 1>0 to h0 failed: retries exceeded$"):
        bench.run()
    assert bench.took_s == pytest.approx(3.05, abs=0.01), "not only when the next sample is due"
    notes = [event for event in bench.told.events if isinstance(event, Note)]
    assert notes == [Note(bench.start_ns + int(2.05 * S), "qp", "h1: QP 1>0 to h0 failed: retries exceeded")]
    assert len((bench.folder / "events.jsonl").read_text().splitlines()) == 2, "what the others said is kept"
    assert ("workload", "ok") not in bench.history("op", "type")


def test_a_qp_error_before_the_start_ends_the_run_soon_after_it(bench: Bench) -> None:
    reason = "all ports down"
    bench.measurement.on_event("h1", {"event": "qp_error", "t_ns": 0, "qp": "1>0", "peer": "h0", "reason": reason})
    with pytest.raises(WorkloadError, match=r"^h1: QP 1>0 to h0 failed: all ports down$"):
        bench.run()
    assert bench.took_s == 1


def test_a_qp_error_shortly_before_the_time_limit_is_the_reason(bench: Bench) -> None:
    bench.say(19.5, "h1", "qp_error", qp="1>0", peer="h0", reason="retries exceeded")
    with pytest.raises(WorkloadError, match=r"QP 1>0"):
        bench.run()
    assert bench.took_s == 20


def test_a_qp_error_after_which_all_finish_is_left_to_the_checks(bench: Bench) -> None:
    bench.say(2, "h1", "qp_error", qp="1>0", peer="h0", reason="late")
    bench.finish(2.5)
    assert bench.run() == 2.5


def test_the_rank_that_is_stuck_is_named(bench: Bench) -> None:
    for step in (0, 1):
        bench.step(1 + step, "h0", step)
    bench.step(1, "h1", 0)
    with pytest.raises(WorkloadError, match=r"^not finished within the time limit of 20 s: h1 stuck in step 1$"):
        bench.run()
    assert bench.took_s == 20


def test_of_ranks_that_are_stuck_the_slowest_are_named(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match=r"limit of 20 s: h0, h1 stuck in step 0$"):
        bench.run()


def test_a_rank_that_has_finished_is_not_stuck(bench: Bench) -> None:
    bench.finish(1, "h0")
    bench.step(1, "h1", 0)
    bench.step(2, "h1", 1)
    with pytest.raises(WorkloadError, match=r"limit of 20 s: h1 stuck in step 2$"):
        bench.run()
