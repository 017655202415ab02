from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fakes import FakeClock, FakeFabric

from testbed.errors import FabricError, WorkloadError
from testbed.fabric.fabric import Fabric
from testbed.fabric.options import FabricOptions
from testbed.fabric.port_maps import PortHits
from testbed.faults.inject import Injector
from testbed.faults.site import Site
from testbed.runner import measure
from testbed.runner.folder import Recorder, create_folder
from testbed.runner.loop import Loop
from testbed.runner.measure import Measurement
from testbed.runner.news import FaultDone, HostSays, MachineSeen, News, Note, PortsSampled, StepsDone, WorkloadBegins
from testbed.runner.progress import Silent
from testbed.runner.team import Team
from testbed.scenario import load_scenario_text
from topos.plan import build_plan
from topos.shape import WIRE_BYTES

S = 1_000_000_000
SCENARIO = """
name: small
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1}
workload: [{train: {hosts: all, steps: 3, compute: 1s, allreduce: 1MiB}}]
time_limit: 20s
"""
CUT = "faults: [{at: 1s, link-down: p0-t0-0:p0-t1-0, for: 2s, name: cut}]\n"
TWO = """\
faults:
  - {at: 1s, link-down: p0-t0-0:p0-t1-0, for: 9s, name: cut}
  - {at: 2s, switch-reboot: p1-t1-1, boot: 9s, name: reboot}
"""


class Told(Silent):
    """A progress that remembers."""

    def __init__(self) -> None:
        self.news: list[News] = []

    def tell(self, news: News) -> None:
        self.news.append(news)

    @property
    def steps(self) -> list[str]:
        return [news.text for news in self.news if isinstance(news, StepsDone)]

    @property
    def faults(self) -> list[str]:
        return [f"{news.step.action.value} {news.text}" for news in self.news if isinstance(news, FaultDone)]


class FakeWatch:
    """The machine's figures without the machine."""

    def __init__(self, pids: dict[str, int]) -> None:
        self.pids = pids

    def figures(self) -> dict[str, Any]:
        return {"measured_s": 1.0, "cpu_pressure_some": None, "run_delay": {}, "softnet_drops": 0}


class FakeTeam:
    """Daemons that fall quiet and answer `stats`."""

    pids = {"h0": 1, "h1": 2}  # noqa: RUF012

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, command: str, *_: Any, **__: Any) -> dict[str, dict[str, Any]]:
        self.asked.append(command)
        return {
            host: {
                "id": 9,
                "ok": True,
                "counters": {"sent": pid},
                "paths": {},
                "qps": {},
                "lateness": {"p99_ns": pid * 10, "max_ns": pid * 100},
            }
            for host, pid in self.pids.items()
        }


class Bench:
    """A measurement on fakes. Times of `at` count in seconds from the start of the workload."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
        self.clock = FakeClock().install(monkeypatch)
        monkeypatch.setattr(measure, "MachineWatch", FakeWatch)
        self.folder = create_folder(tmp_path, "small")
        scenario = load_scenario_text(SCENARIO + extra)
        plan = build_plan(scenario.shape())
        self.fabric, self.loop, self.told = FakeFabric(plan), Loop(), Told()
        fabric = cast(Fabric, self.fabric)
        self.injector = Injector(Site(fabric, self.fabric.tell))
        self.measurement = Measurement(scenario, fabric, self.loop, Recorder(self.folder), self.told, self.injector)
        self.start_ns = self.clock.now_ns + S // 5
        self.fake_team = FakeTeam()
        self.team = cast(Team, self.fake_team)
        self.rtt_ns = scenario.fabric.rtt_ns

    def say(self, at_s: float, host: str, event: str, **fields: Any) -> None:
        t_ns = self.start_ns + int(at_s * S)
        self.loop.at(t_ns, lambda: self.measurement.on_event(host, {"event": event, "t_ns": t_ns, **fields}))

    def step(self, at_s: float, host: str, step: int) -> None:
        end_ns = self.start_ns + int(at_s * S)
        begin_ns = end_ns - S // 2
        self.say(
            at_s, host, "step", step=step, begin_ns=begin_ns, end_ns=end_ns, bytes=100 + step, bytes_wrong=0, waits={}
        )

    def finish(self, at_s: float, *hosts: str) -> None:
        for host in hosts or ("h0", "h1"):
            self.say(at_s, host, "program_done")

    def run(self) -> float:
        """Run it; how long that took, in seconds from the start."""
        self.measurement.watch_machine(self.team)
        try:
            self.measurement.run(self.start_ns)
        finally:
            self.took_s = (self.clock.now_ns - self.start_ns) / S
        return self.took_s

    def history(self, *keys: str) -> list[tuple[Any, ...]]:
        lines = [json.loads(line) for line in (self.folder / "history.jsonl").read_text().splitlines()]
        return [tuple(line.get(key) for key in keys) for line in lines]

    def faults_done(self) -> list[tuple[Any, ...]]:
        return [line for line in self.history("op", "fault", "type") if line[0] != "workload"]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bench:
    return Bench(tmp_path, monkeypatch, getattr(request, "param", ""))


cut = pytest.mark.parametrize("bench", [CUT], indirect=True, ids=["one cut"])
DENIED = "faults: [{at: 1s, deny: [p1, p0-t1-0], for: 2s, name: controller}]\n"
COLD = "faults: [{at: cold-start, link-flap: p0-t0-0:p0-t1-0, period: 2s, count: 2, name: cold}]\n"
denied = pytest.mark.parametrize("bench", [DENIED], indirect=True, ids=["denied"])
cold = pytest.mark.parametrize("bench", [COLD], indirect=True, ids=["cold"])
two = pytest.mark.parametrize("bench", [TWO], indirect=True, ids=["two faults"])


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
    for at_s, host, step in ((1, "h0", 0), (1.2, "h1", 0), (2.2, "h1", 1), (4.2, "h0", 1), (5, "h0", 2), (5, "h1", 2)):
        bench.step(at_s, host, step)
    bench.finish(6)
    bench.run()
    assert bench.told.steps == [
        "step 1/3, last 1.20 s, worst 1.20 s",
        "step 2/3, last 3.00 s, worst 3.00 s",
        "step 3/3, last 0.80 s, worst 3.00 s",
    ]
    rows = (bench.folder / "completions.csv").read_text().splitlines()[1:]
    assert len(rows) == 6
    assert rows[2] == f"h1,1,{bench.start_ns + 17 * S // 10},{bench.start_ns + 22 * S // 10},101,0"


def test_who_listens_is_told_of_start_events_counters_and_machine(bench: Bench) -> None:
    bench.say(0.5, "h1", "plane_state", peer="h0", plane=1, usable=False)
    bench.finish(3.5)
    bench.run()
    bench.loop.run_until(lambda: False, bench.start_ns + 9 * S)
    news = bench.told.news
    assert news[0] == WorkloadBegins(bench.start_ns)
    said = [(one.host, one.event["event"]) for one in news if isinstance(one, HostSays)]
    assert said == [("h1", "plane_state"), ("h0", "program_done"), ("h1", "program_done")]
    sampled = [one for one in news if isinstance(one, PortsSampled)]
    assert [one.t_ns for one in sampled[:2]] == [bench.start_ns, bench.start_ns + S // 5]
    assert sampled[0].rows[0] == ("h0", "port0", 1, 2, 3, 0, 5, 6)
    machine = [one.figures for one in news if isinstance(one, MachineSeen)]
    assert len(machine) == 3, "once a second while the workload lasts"
    assert machine[2] == {**FakeWatch({}).figures(), "shaped_rate_error": 0.0}


def test_events_are_recorded_whatever_they_are(bench: Bench) -> None:
    bench.say(0.5, "h1", "plane_state", peer="h0", plane=1, usable=False)
    bench.finish(1)
    bench.run()
    first = json.loads((bench.folder / "events.jsonl").read_text().splitlines()[0])
    assert first["host"] == "h1"
    assert first["event"] == "plane_state"
    assert first["usable"] is False


def test_a_qp_error_ends_the_run_after_a_second(bench: Bench) -> None:
    bench.say(2.05, "h1", "qp_error", qp="1>0", peer="h0", reason="retry counter exceeded")
    bench.say(2.9, "h0", "qp_error", qp="1>0", peer="h1", reason="what followed from it")
    with pytest.raises(WorkloadError, match=r"^h1: QP 1>0 to h0 failed: retry counter exceeded$"):
        bench.run()
    assert bench.took_s == pytest.approx(3.05, abs=0.01), "not only when the next sample is due"
    notes = [news for news in bench.told.news if isinstance(news, Note)]
    assert notes == [Note(bench.start_ns + int(2.05 * S), "qp", "h1: QP 1>0 to h0 failed: retry counter exceeded")]
    assert len((bench.folder / "events.jsonl").read_text().splitlines()) == 2, "what the others said is kept"
    assert ("workload", "ok") not in bench.history("op", "type")


def test_a_qp_error_before_the_start_ends_the_run_soon_after_it(bench: Bench) -> None:
    reason = "all ports down"
    bench.measurement.on_event("h1", {"event": "qp_error", "t_ns": 0, "qp": "1>0", "peer": "h0", "reason": reason})
    with pytest.raises(WorkloadError, match=r"^h1: QP 1>0 to h0 failed: all ports down$"):
        bench.run()
    assert bench.took_s == 1


def test_a_qp_error_shortly_before_the_time_limit_is_the_reason(bench: Bench) -> None:
    bench.say(19.5, "h1", "qp_error", qp="1>0", peer="h0", reason="retry counter exceeded")
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


@cut
def test_faults_come_and_go_at_their_time_and_are_read_back(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert bench.fabric.calls == [
        ("port_down", "p0-t1-0", "down0"),
        ("port_up", "p0-t1-0", "down0"),
        ("verify", "p0-t0-0", "p0-t1-0"),
    ]
    assert bench.faults_done() == [
        (op, "cut", outcome) for op in ("inject", "heal", "read-back") for outcome in ("invoke", "ok")
    ]
    times = dict(zip(bench.history("op"), bench.history("t_ns"), strict=True))
    assert times[("inject",)] == (bench.start_ns + 1 * S,)
    assert times[("heal",)] == (bench.start_ns + 3 * S,)
    assert bench.history("links", "target", "cycle")[1] == (["p0-t0-0:p0-t1-0"], "p0-t0-0:p0-t1-0", 0)
    assert bench.told.faults == ["inject cut: link-down p0-t0-0:p0-t1-0", "heal cut: link-down p0-t0-0:p0-t1-0"]


@cut
def test_a_fault_that_cannot_be_injected_ends_the_run_and_is_recorded(bench: Bench) -> None:
    bench.fabric.refuses = {("port_down", "p0-t1-0", "down0")}
    bench.finish(5)
    with pytest.raises(FabricError):
        bench.run()
    assert bench.faults_done() == [("inject", "cut", "invoke"), ("inject", "cut", "fail")]
    assert bench.history("error")[-1] == ("p0-t1-0: port_down: refused by the test",)
    assert bench.told.faults == []


@cut
def test_a_read_back_that_finds_drift_ends_the_run_and_is_recorded(bench: Bench) -> None:
    bench.fabric.refuses = {("verify", "p0-t0-0", "p0-t1-0")}
    bench.finish(5)
    with pytest.raises(FabricError, match=r"verify"):
        bench.run()
    assert bench.faults_done()[2:] == [
        ("heal", "cut", "invoke"),
        ("heal", "cut", "ok"),
        ("read-back", "cut", "invoke"),
        ("read-back", "cut", "fail"),
    ]


@two
def test_what_is_left_broken_is_healed_last_first(bench: Bench) -> None:
    bench.finish(4)
    bench.run()
    bench.fabric.calls.clear()
    bench.measurement.heal_all()
    assert bench.fabric.calls == [
        ("switch_on", "p1-t1-1"),
        ("verify", "p1-t0-0", "p1-t0-1", "p1-t1-1"),
        ("port_up", "p0-t1-0", "down0"),
        ("verify", "p0-t0-0", "p0-t1-0"),
    ]
    assert bench.injector.broken == {}
    assert bench.faults_done()[-8:] == [
        (op, name, outcome)
        for name in ("reboot", "cut")
        for op in ("heal", "read-back")
        for outcome in ("invoke", "ok")
    ]


@two
def test_faults_that_are_due_when_the_workload_is_over_are_left_out(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    bench.measurement.heal_all()
    bench.loop.run_until(lambda: False, bench.start_ns + 15 * S)
    assert [call[0] for call in bench.fabric.calls] == ["port_down", "port_up", "verify"]


def bad(bench: Bench, at_s: float, to: str, uplink: int = 0) -> None:
    bench.say(at_s, "h0", "ev_state", peer="h1", plane=0, uplink=uplink, to=to)


def test_paths_are_waited_for_until_the_last_is_good_again(bench: Bench) -> None:
    bad(bench, 1, "ASSUMED_BAD", 0)
    bad(bench, 1, "ASSUMED_BAD", 1)
    bench.finish(2)
    bench.run()
    bad(bench, 3, "SKIP", 0)
    bad(bench, 4, "GOOD", 0)
    bad(bench, 6, "GOOD", 1)
    bench.measurement.wait_for_paths(9 * S)
    assert bench.clock.now_ns == bench.start_ns + 6 * S


def test_paths_are_not_waited_for_without_end(bench: Bench) -> None:
    bad(bench, 1, "ASSUMED_BAD")
    bench.finish(2)
    bench.run()
    bench.measurement.wait_for_paths(3 * S)
    assert bench.clock.now_ns == bench.start_ns + 5 * S


def test_nothing_is_waited_for_when_all_paths_are_good(bench: Bench) -> None:
    bench.finish(2)
    bench.run()
    bench.measurement.wait_for_paths(3 * S)
    assert bench.clock.now_ns == bench.start_ns + 2 * S


def document(bench: Bench, name: str) -> Any:
    return json.loads((bench.folder / name).read_text())


def test_the_final_figures_are_whole(bench: Bench) -> None:
    bench.fabric.dropped = 5
    bench.finish(1.5)
    rate = 25_000_000 // 8
    for tenths in range(15):
        bench.loop.at(
            bench.start_ns + tenths * S // 10, lambda n=tenths: setattr(bench.fabric, "sent_bytes", n * rate // 9)
        )
    bench.run()
    bench.fabric.dropped = 12
    bench.measurement.final_figures(bench.team)
    counters = document(bench, "counters.json")
    assert counters["hosts"]["h1"] == {
        "counters": {"sent": 2},
        "paths": {},
        "qps": {},
        "lateness": {"p99_ns": 20, "max_ns": 200},
    }
    assert counters["queues"] == bench.fabric.queues()
    assert counters["socket_losses"] == {"h0": 4}
    port = counters["ports"]["h0"]["port0"]
    assert (port["rx_packets"], port["tx_packets"], port["queue_drops_high"], port["queue_drops_data"]) == (2, 5, 1, 2)
    assert port["in_data"] == bench.fabric.port_counts()["h0", "port0"].in_data
    assert not any(name.startswith("out_") for name in port), "a NIC has no program at egress"
    fidelity = document(bench, "fidelity.json")
    assert fidelity.pop("shaped_rate_error") == pytest.approx(1 / 9, abs=0.01)
    assert fidelity == {
        "measured_s": 1.0,
        "cpu_pressure_some": None,
        "run_delay": {},
        "softnet_drops": 0,
        "udp_rcvbuf_errors": 7,
        "lateness_p99_ns": {"h0": 10, "h1": 20},
        "lateness_max_ns": {"h0": 100, "h1": 200},
        "unavailable": {"cpu_pressure_some": "this kernel does not count it (PSI)"},
    }


def test_the_endpoints_are_quiet_for_three_round_trips_before_they_are_read(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    bench.clock.now_ns = at_ns = 5 * S
    bench.measurement.final_figures(bench.team)
    assert bench.fake_team.asked == ["quiet", "stats"]
    assert bench.clock.now_ns - at_ns == max(100_000_000, 3 * bench.rtt_ns)


def test_the_books_are_read_when_no_port_counts_any_more(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    at_ns = bench.clock.now_ns
    for tenths in range(1, 11):
        bench.loop.at(at_ns + tenths * S // 20, lambda n=tenths: setattr(bench.fabric, "sent_bytes", n))
    bench.measurement.final_figures(bench.team)
    assert 0.6 <= (bench.clock.now_ns - at_ns) / S <= 0.75


def test_queues_that_never_run_empty_are_not_waited_for_without_end(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    at_ns = bench.clock.now_ns
    bench.loop.every(S // 100, lambda: setattr(bench.fabric, "sent_bytes", bench.fabric.sent_bytes + 1), at_ns)
    bench.measurement.final_figures(bench.team)
    assert 20 <= (bench.clock.now_ns - at_ns) / S <= 20.2


@pytest.mark.parametrize(
    "bench", ["faults: [{at: 1s, link-rate: p0-t0-0:p0-t1-0, for: 1s, rate: 100kbit}]\n"], indirect=True
)
def test_a_port_that_was_slow_is_given_the_time_of_its_last_packets(bench: Bench) -> None:
    bench.finish(2.5)
    bench.run()
    at_ns = bench.clock.now_ns
    bench.measurement.final_figures(bench.team)
    assert (bench.clock.now_ns - at_ns) / S == pytest.approx(2 * WIRE_BYTES * 8 / 100_000)


def test_plain_shapers_say_why_packets_are_not_accounted_for(bench: Bench) -> None:
    bench.fabric.options = FabricOptions("dummy", "netem", "plain shaper")
    bench.finish(1.5)
    bench.run()
    bench.measurement.final_figures(bench.team)
    assert "ports" not in document(bench, "counters.json")
    assert not (bench.folder / "ports.csv").exists()
    assert "plain shapers" in document(bench, "fidelity.json")["unavailable"]["unexplained_packets"]


def test_a_short_run_says_why_a_figure_is_missing(bench: Bench) -> None:
    bench.finish(0.5)
    bench.run()
    bench.measurement.final_figures(bench.team)
    fidelity = document(bench, "fidelity.json")
    assert fidelity["shaped_rate_error"] is None
    assert fidelity["unavailable"]["shaped_rate_error"] == "the run was shorter than one window of a second"


@denied
def test_paths_are_denied_and_allowed_at_their_time_and_no_kernel_is_read(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert bench.fabric.calls == [("deny", "p1", "p0-t1-0", ()), ("allow", "p1", "p0-t1-0", ())]
    assert bench.faults_done() == [
        (op, "controller", outcome) for op in ("inject", "heal") for outcome in ("invoke", "ok")
    ]
    times = dict(zip(bench.history("op"), bench.history("t_ns"), strict=True))
    assert times[("inject",)] == (bench.start_ns + 1 * S,)
    assert times[("heal",)] == (bench.start_ns + 3 * S,)


@pytest.mark.parametrize("bench", ["faults: [{at: 1s, deny: p1, for: 1ms, name: short}]\n"], indirect=True)
def test_a_heal_waits_until_its_fault_is_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered_late(*_: Any) -> None:
        bench.loop.run_until(lambda: False, bench.clock.now_ns + S // 10)

    monkeypatch.setattr(bench.fabric, "_called", answered_late)
    bench.finish(5)
    bench.run()
    assert bench.faults_done() == [(op, "short", outcome) for op in ("inject", "heal") for outcome in ("invoke", "ok")]


@denied
def test_what_is_left_denied_is_allowed_at_the_end(bench: Bench) -> None:
    bench.finish(2)
    bench.run()
    bench.measurement.heal_all()
    assert [call[0] for call in bench.fabric.calls] == ["deny", "allow"]
    assert bench.injector.broken == {}


@cold
def test_a_cold_fault_is_injected_once_and_before_the_start(bench: Bench) -> None:
    bench.measurement.break_cold()
    assert bench.fabric.calls == [("port_down", "p0-t1-0", "down0")]
    assert bench.history("t_ns")[-1][0] < bench.start_ns
    bench.finish(5)
    bench.run()
    assert [call[0] for call in bench.fabric.calls] == ["port_down", "port_up", "verify"] * 2
    healed = [line[1] - bench.start_ns for line in bench.history("op", "t_ns") if line[0] == "heal"]
    assert healed == [S, S, 3 * S, 3 * S]


loss = pytest.mark.parametrize(
    "bench", ["faults: [{at: 1s, link-loss: p0-t0-0:p0-t1-0, loss: 20%, for: 2s, name: loss}]\n"], indirect=True
)


@loss
def test_rules_are_read_back_after_their_heal(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert [call[0] for call in bench.fabric.calls] == ["add_rule"] * 2 + ["remove_rule"] * 2 + ["verify_rules"]
    assert bench.faults_done()[-1] == ("read-back", "loss", "ok")
    assert bench.told.faults[0] == "inject loss: link-loss p0-t0-0:p0-t1-0 20%"


@loss
def test_plain_shapers_have_no_counts_of_ports(bench: Bench) -> None:
    bench.fabric.options = replace(bench.fabric.options, switch_ports="plain shaper")
    bench.finish(5)
    bench.measurement.watch_machine(bench.team)
    bench.run()
    bench.measurement.final_figures(bench.team)
    assert "ports" not in document(bench, "counters.json")


@pytest.mark.parametrize(
    "bench", ["faults: [{at: 1s, link-rate: p0-t0-0:p0-t1-0, rate: 5mbit, for: 2s, name: slow}]\n"], indirect=True
)
def test_a_rate_is_read_back_though_its_link_loses_nothing(bench: Bench) -> None:
    bench.finish(5)
    bench.run()
    assert [call[0] for call in bench.fabric.calls] == ["set_rate", "set_rate", "verify"]
    assert bench.told.faults == [
        "inject slow: link-rate p0-t0-0:p0-t1-0 at 5mbit",
        "heal slow: link-rate p0-t0-0:p0-t1-0 at 5mbit",
    ]
