"""The model of a run that is told what happens: what its frames say."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.faults.schedule import FaultStep, heal, inject
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.runner.events import (
    DaemonEvent,
    FaultDone,
    FlowsMoved,
    MachineSeen,
    Note,
    PhaseBegins,
    PortsSampled,
    StepsDone,
    WorkloadBegins,
)
from mrc_testbed.testbed.scenario import LinkEnd, Occurrence, load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS
from mrc_testbed.topos.plan import build_plan

S = 1_000_000_000
MS = 1_000_000
RING = """
name: ring
about: Two planes.
seed: 5
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit}
workload: [{train: {hosts: all, steps: 3, compute: 1s, allreduce: 1MiB}}]
"""
FLOWS = """
name: flows
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit}
workload:
  - write: {from: h0, to: h2, for: 3s}
  - write: {from: h1, to: h3, start: 2s, for: 3s}
"""
LINK = "p0-t0-0:p0-t1-1"
CUT = Occurrence("cut", 0, KINDS["link-down"], (LINK,), S, 2 * S, (LINK,))


class Told:
    """A model, told in short; its workload began at 0 s."""

    def __init__(self, text: str = RING) -> None:
        scenario = load_scenario_text(text)
        self.model = LiveModel(scenario, build_plan(scenario.shape()))
        self.model.publish(WorkloadBegins(self.ns(0)))

    @staticmethod
    def ns(t_s: float) -> int:
        return 77 * S + round(t_s * S)

    def says(self, t_s: float, host: str, event: str, **fields: Any) -> None:
        self.model.publish(DaemonEvent(host, {"event": event, "t_ns": self.ns(t_s), **fields}))

    def fault(self, t_s: float, step: FaultStep) -> None:
        self.model.publish(FaultDone(step, self.ns(t_s)))

    def ev(self, t_s: float, host: str, peer: str, uplink: int, old: str, new: str, plane: int = 0) -> None:
        self.says(t_s, host, "ev_state", peer=peer, plane=plane, uplink=uplink, **{"from": old, "to": new})

    def snapshot(self, t_s: float, host: str, packets: int, again: int = 0, late_ms: float = 0, drops: int = 0) -> None:
        counters = {"data_sent": packets, "bytes_sent": packets * 4096, "retransmitted": again}
        late = {"p99_ns": round(late_ms * MS), "max_ns": round(late_ms * MS)}
        self.says(t_s, host, "snapshot", counters={**counters, "receive_buffer_drops": drops}, lateness=late)

    def frame(self, t_s: float) -> dict[str, Any]:
        return self.model.frame(self.ns(t_s))

    def ticker(self, t_s: float) -> list[tuple[int, float, str, str]]:
        return [(line["n"], line["t_s"], line["kind"], line["text"]) for line in self.frame(t_s)["ticker"]]


def test_before_anything_has_happened_a_frame_is_whole() -> None:
    scenario = load_scenario_text(RING)
    model = LiveModel(scenario, build_plan(scenario.shape()))
    model.publish(PhaseBegins("build"))
    frame = model.frame(123)
    assert frame["phase"] == "build"
    assert frame["scenario"] == {"name": "ring", "seed": 5, "about": "Two planes."}
    assert (frame["t_s"], frame["progress"], frame["steps"], frame["flows"]) == (None, None, [], None)
    assert frame["links"]["h0:p1-t0-0"] == {"load": [0.0, 0.0], "state": "up"}
    assert len(frame["links"]) == 2 * (4 + 4)
    assert frame["hosts"]["h3"] == {"ports": ["UP", "UP"], "goodput_bps": 0}
    assert frame["nodes"] == {}
    assert frame["ticker"] == []
    assert frame["fidelity"]["light"] == "unknown"
    assert json.loads(json.dumps(frame)) == frame


def test_tiles_count_both_ways_of_every_pair_that_shares_a_qp() -> None:
    """The ring h0 h1 h2 h3: two pairs inside a group, which cross no T1, and two between groups."""
    evs = Told().frame(0)["evs"]
    whole = {"good": 4, "skip": 0, "bad": 0, "denied": 0}
    assert evs == {tile: whole for tile in ("0/t1-0", "0/t1-1", "1/t1-0", "1/t1-1", "0/local", "1/local")}


def test_an_ev_is_counted_in_the_state_that_was_heard_last() -> None:
    told = Told()
    told.ev(1, "h1", "h2", 1, "GOOD", "ASSUMED_BAD")
    told.ev(1, "h2", "h1", 1, "GOOD", "SKIP")
    told.ev(1, "h0", "h3", 1, "GOOD", "DENIED")
    assert told.frame(1)["evs"]["0/t1-1"] == {"good": 1, "skip": 1, "bad": 1, "denied": 1}
    told.ev(2, "h1", "h2", 1, "ASSUMED_BAD", "GOOD")
    assert told.frame(2)["evs"]["0/t1-1"] == {"good": 2, "skip": 1, "bad": 0, "denied": 1}
    told.ev(3, "h0", "h1", 0, "GOOD", "ASSUMED_BAD")
    assert told.frame(3)["evs"]["0/t1-0"]["bad"] == 0
    assert told.frame(3)["evs"]["0/local"]["bad"] == 1


NAMES = st.sampled_from(["h0", "h1", "h2", "h3", "h9"])
CHANGES = st.tuples(
    NAMES, NAMES, st.integers(0, 3), st.integers(0, 3), st.sampled_from(["GOOD", "SKIP", "ASSUMED_BAD", "DENIED", "?"])
)


@settings(deadline=None)
@given(st.lists(CHANGES))
def test_whatever_is_heard_no_count_is_negative_and_tiles_add_up(changes: list[Any]) -> None:
    told = Told()
    for host, peer, plane, uplink, new in changes:
        told.ev(1, host, peer, uplink, "GOOD", new, plane)
    for counts in told.frame(9)["evs"].values():
        assert min(counts.values()) >= 0
        assert sum(counts.values()) == 4


def test_evs_that_one_cause_retired_are_one_line() -> None:
    told = Told()
    told.fault(1.0, inject(CUT))
    for t_s, host, peer in ((1.1, "h1", "h2"), (1.15, "h2", "h1"), (1.2, "h3", "h0")):
        told.ev(t_s, host, peer, 1, "GOOD", "ASSUMED_BAD")
    cut = (1, 1.0, "fault", f"cut: link-down {LINK}")
    assert told.ticker(1.3) == [cut], "more may come"
    burst = (2, 1.1, "ev", "3 EVs of p0-t1-1 retired by 3 hosts")
    assert told.ticker(1.45) == [cut, burst]
    told.ev(2.2, "h1", "h2", 1, "ASSUMED_BAD", "GOOD")
    told.fault(2.3, heal(CUT))
    restored = (3, 2.2, "ev", "1 EV of p0-t1-1 restored by h1")
    assert told.ticker(2.3) == [cut, burst, restored, (4, 2.3, "heal", f"cut: link-down {LINK}")], "in order of time"


def test_what_a_fault_caused_is_told_after_it_though_it_was_heard_before_the_fault_was_done() -> None:
    told = Told()
    told.says(1.01, "h0", "port_state", peer=None, plane=0, state="DOWN")
    told.fault(1.0, inject(CUT))
    assert [line[2] for line in told.ticker(2)] == ["fault", "port"]


def test_a_burst_that_does_not_end_is_told_after_a_second() -> None:
    told = Told()
    for tenth in range(10):
        told.ev(tenth / 10, "h1", "h2", tenth % 2, "GOOD", "ASSUMED_BAD")
    assert told.ticker(0.95) == []
    assert told.ticker(1.0) == [(1, 0.0, "ev", "10 EVs of p0-t1-0 and p0-t1-1 retired by h1")]


def test_congestion_of_evs_is_no_news() -> None:
    told = Told()
    told.ev(1, "h1", "h2", 0, "GOOD", "SKIP")
    told.ev(1, "h1", "h2", 0, "SKIP", "GOOD")
    assert told.ticker(9) == []


def test_the_last_fifty_lines_are_kept_and_all_are_counted() -> None:
    told = Told()
    for number in range(60):
        told.model.publish(Note(told.ns(0.5), "note", f"note {number}"))
    lines = told.ticker(1)
    assert [line[0] for line in lines] == list(range(11, 61))
    assert lines[-1][3] == "note 59"


def test_ports_are_those_of_the_host_itself_and_planes_are_told_by_pair() -> None:
    told = Told()
    told.says(1, "h0", "port_state", peer=None, plane=1, state="DOWN")
    told.says(1, "h1", "port_state", peer="h0", plane=1, state="DOWN")
    told.says(1, "h1", "plane_state", peer="h0", plane=1, usable=False)
    told.says(1, "h0", "plane_state", peer="h1", plane=1, usable=False)
    told.says(2, "h0", "port_state", peer=None, plane=1, state="RISING")
    hosts = told.frame(2)["hosts"]
    assert hosts["h0"]["ports"] == ["UP", "RISING"]
    assert hosts["h1"]["ports"] == ["UP", "UP"]
    assert [line[2:] for line in told.ticker(3)] == [
        ("port", "port 1 of h0 down"),
        ("plane", "plane 1 lost between h0 and h1"),
        ("port", "port 1 of h0 has carrier again"),
    ]


def test_load_is_what_an_end_sent_between_two_samples() -> None:
    told = Told()
    full = 12_500_000 // 8 // 5
    for number, (near, far) in enumerate(((0, 0), (full, full // 4))):
        ends = [("h0", "port1", near), ("h0", "tunl0", 7 * near), ("p1-t0-0", "down0", far)]
        rows = [(node, port, 0, 0, 0, sent, 0, 0) for node, port, sent in ends]
        told.model.publish(PortsSampled(told.ns(number / 5), rows))
    assert told.frame(1)["links"]["h0:p1-t0-0"]["load"] == [1.0, 0.25]


def rules(kind: str, **how: Any) -> Occurrence:
    places = (LinkEnd(LINK, "near"), LinkEnd(LINK, "far"))
    made = Occurrence(kind, 0, KINDS[kind], (LINK,), S, 2 * S, (LINK,), places)
    return Occurrence.from_record({**made.as_record(), "how": {**made.as_record()["how"], **how}}, KINDS)


def test_a_link_is_as_bad_as_the_worst_fault_on_it() -> None:
    told = Told()
    slow = Occurrence("slow", 0, KINDS["link-rate"], (LINK,), S, 2 * S)
    reboot = Occurrence("reboot", 0, KINDS["switch-reboot"], ("p0-t1-1",), S, 2 * S, (LINK, "p0-t0-1:p0-t1-1"))
    silent = Occurrence("grey", 0, KINDS["switch-silent"], ("p1-t1-0",), S, 2 * S, ("p1-t0-0:p1-t1-0",))
    lossy = rules("link-loss", share=200_000)
    seen = []
    for step in (inject(slow), inject(lossy), inject(reboot), inject(silent), heal(reboot), heal(lossy), heal(slow)):
        told.fault(1, step)
        frame = told.frame(1)
        seen.append((frame["links"][LINK]["state"], frame["nodes"]))
    broken, grey = {"p0-t1-1": "broken"}, {"p1-t1-0": "silent"}
    assert seen[:4] == [("slow", {}), ("lossy", {}), ("broken", broken), ("broken", broken | grey)]
    assert seen[4:] == [("lossy", grey), ("slow", grey), ("up", grey)]
    assert frame["links"]["p1-t0-0:p1-t1-0"]["state"] == "broken", "a silent switch passes nothing"


def test_a_link_that_loses_everything_both_ways_is_broken() -> None:
    told = Told()
    told.fault(1, inject(rules("link-loss")))
    assert told.frame(1)["links"][LINK]["state"] == "broken"


def test_steps_stay_while_phases_go_on() -> None:
    told = Told()
    told.model.publish(PhaseBegins("run"))
    told.model.publish(StepsDone(2, 3, 0.9, 1.2))
    frame = told.frame(2.5)
    assert frame["progress"] == {"done": 2, "of": 3, "text": "step 2/3, last 0.90 s, worst 1.20 s"}
    told.model.publish(PhaseBegins("settle"))
    after = told.frame(3)
    assert (after["phase"], after["progress"], after["t_s"]) == ("settle", None, 3.0)
    assert frame["steps"] == after["steps"] == [{"job": "", "done": 2, "of": 3, "last_s": 0.9, "worst_s": 1.2}]


def test_goodput_of_a_host_is_payload_that_was_sent_for_the_first_time() -> None:
    told = Told()
    for fifth in range(11):
        told.snapshot(fifth / 5, "h0", packets=100 * fifth, again=20 * fifth)
    assert told.frame(2)["hosts"]["h0"]["goodput_bps"] == 400 * 4096 * 8
    for fifth in range(11, 17):
        told.snapshot(fifth / 5, "h0", packets=1000, again=200)
    assert told.frame(4)["hosts"]["h0"]["goodput_bps"] == 0


def received(told: Told, t_s: float, qp: str, moved: int, last: bool = False) -> None:
    times = {"begin_ns": told.ns(t_s - 0.1), "end_ns": told.ns(t_s)}
    told.says(t_s, "h9", "received", qp=qp, bytes=moved, messages=1, bytes_wrong=0, last=last, **times)


def test_flows_are_measured_against_what_those_that_go_on_could_have() -> None:
    told = Told(FLOWS)
    line_bps = round(2 * 12_500_000 * 4096 / 4238)
    for tenth in range(1, 16):
        received(told, tenth / 10, "h0->h2/0", 100_000)
    told.model.publish(FlowsMoved(1.0, 5.0, (8e6, 0.0)))
    frame = told.frame(1.5)
    assert frame["flows"]["rate_bps"] == 8_000_000
    assert abs(frame["flows"]["of_bps"] - line_bps) < line_bps / 100
    assert frame["progress"]["text"] == "1/5 s, 8.0 Mb/s, flows 0.0 to 8.0"
    assert abs(told.frame(2.5)["flows"]["of_bps"] - 2 * line_bps) < line_bps / 50, "the second has begun"
    received(told, 2.6, "h0->h2/0", 0, last=True)
    assert abs(told.frame(2.7)["flows"]["of_bps"] - line_bps) < line_bps / 100


SPEED = 1000


class ToldFast(Told):
    """Of a run in virtual time, 1000 times faster; its times are given as they would be at the usual speed."""

    def __init__(self, text: str = RING) -> None:
        super().__init__(f"{text}world: virtual\nscale: {SPEED}\n")

    @staticmethod
    def ns(t_s: float) -> int:
        return 77 * S + round(t_s * S / SPEED)


def test_at_a_scale_rates_are_those_of_a_second_at_the_usual_speed() -> None:
    told = ToldFast(FLOWS)
    for tenth in range(1, 16):
        received(told, tenth / 10, "h0->h2/0", 100_000 if tenth > 5 else 0)
    assert told.frame(1.7)["flows"]["rate_bps"] == 8_000_000 * SPEED, "the last 1 ms, heard 0.2 ms later"
    for fifth in range(17):
        told.snapshot(fifth / 5, "h0", packets=min(100 * fifth, 1000))
    assert told.frame(4)["hosts"]["h0"]["goodput_bps"] == 0, "what was sent before does not count for ever"


def test_at_a_scale_a_burst_ends_in_time_too() -> None:
    told = ToldFast()
    told.ev(1.1, "h1", "h2", 1, "GOOD", "ASSUMED_BAD")
    assert told.ticker(1.3) == []
    assert [line[3] for line in told.ticker(1.4)] == ["1 EV of p0-t1-1 retired by h1"]


def seen(told: Told, **figures: Any) -> tuple[str, str]:
    told.model.publish(MachineSeen({"cpu_pressure_some": 0.3, "run_delay": dict.fromkeys(HOSTS, 0.05), **figures}))
    light = told.frame(1)["fidelity"]
    return light["light"], light["text"]


HOSTS = ("h0", "h1", "h2", "h3")


def test_the_light_judges_by_the_limits_of_the_verdict() -> None:
    told = Told()
    for host in HOSTS:
        told.snapshot(0.5, host, 10, late_ms=1)
    assert seen(told) == ("good", "CPU pressure 30 % (limit 75)")
    assert seen(told, cpu_pressure_some=0.7)[0] == "strained"
    assert seen(told, run_delay={**dict.fromkeys(HOSTS, 0.1), "h2": 0.3})[0] == "lost"
    told.snapshot(0.7, "h1", 10, late_ms=1, drops=2)
    assert seen(told) == ("lost", "socket drops: observed 2 packets, expected <= 0 packets")


def test_what_was_dropped_before_the_workload_does_not_count() -> None:
    scenario = load_scenario_text(RING)
    told = Told()
    told.model = LiveModel(scenario, build_plan(scenario.shape()))
    told.snapshot(-1, "h1", 10, drops=2)
    told.model.publish(WorkloadBegins(told.ns(0)))
    told.snapshot(0.2, "h1", 10, drops=2)
    assert seen(told)[0] == "good"
