"""One daemon and a team of them, played by a small program that speaks the control protocol and does as it is told."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import pytest

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.forker import Child
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.runner import daemon as daemon_module
from mrc_testbed.testbed.runner.daemon import DaemonProcess
from mrc_testbed.testbed.runner.denylist import Controller
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.setup import broken_paths, configuration, connect_qps, refuse_silence
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.workloads.collective import Terms
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.testbed.workloads.steps import ALL, Exchange, StepJob
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape

PLAYER = r"""
import json, os, select, signal, socket, sys, time
name, control = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))
def say(**fields):
    control.sendall(json.dumps(fields).encode() + b"\n")
def answer(request, **fields):
    say(id=request["id"], ok=True, **fields)
if os.environ.get("PLAYER") == "deaf":
    select.select([control], [], [])
    os._exit(0)
if os.environ.get("PLAYER") == "stuck":
    time.sleep(60)
received = b""
while chunk := control.recv(65536):
    received += chunk
    *lines, received = received.split(b"\n")
    for line in lines:
        request = json.loads(line)
        cmd = request["cmd"]
        if cmd in ("echo", "stop"):
            answer(request, name=name, got=request)
        elif cmd == "news":
            for number in range(3):
                say(event="step", step=number)
            answer(request)
            say(event="late")
        elif cmd == "pieces":
            text = json.dumps({"id": request["id"], "ok": True, "text": "x" * 200000}).encode() + b"\n"
            control.sendall(text[:100])
            time.sleep(0.02)
            control.sendall(text[100:])
        elif cmd == "open_qps":
            qps = {qp["id"]: f"{name} {qp['id']} {qp['peer']} {qp['region_bytes']}" for qp in request["qps"]}
            answer(request, qps=qps)
        elif cmd == "connect_qps":
            answer(request)
            say(event="connected", qps=request["qps"])
        elif cmd == "mute":
            pass
        elif name == request.get("but", name):
            if cmd == "refuse":
                say(id=request["id"], ok=False, error="not in this state")
            elif cmd == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif cmd == "abort":
                print("first line\nlast words", file=sys.stderr, flush=True)
                sys.exit(3)
            elif cmd == "leave":
                sys.exit(0)
            elif cmd == "hang up":
                control.close()
                time.sleep(60)
            elif cmd == "fail":
                say(event="fatal", reason="KeyError: 'x'")
        else:
            answer(request)
"""


class Stage:
    """A fabric that starts players instead of daemons."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.players: list[subprocess.Popen[bytes]] = []

    def start_daemon(self, node: str, descriptor: int, log: IO[bytes]) -> Child:
        self.started.append(node)
        player = subprocess.Popen(
            [sys.executable, "-ISc", PLAYER, node, str(descriptor)], stderr=log, pass_fds=(descriptor,)
        )
        self.players.append(player)
        return Child(player.pid)


class Play:
    """A stage, a loop, and the events that were told."""

    def __init__(self, folder: Path) -> None:
        self.stage, self.loop = Stage(), RealTimeLoop()
        self.recorder = Recorder(folder)
        self.events: list[tuple[str, dict[str, Any]]] = []

    def team(self, *hosts: str) -> Team:
        fabric = cast(Fabric, self.stage)
        return Team(
            {host: DaemonProcess(host, fabric, self.loop, self.recorder, self.note) for host in hosts or ("h0",)},
            self.loop,
        )

    def note(self, host: str, event: dict[str, Any]) -> None:
        self.events.append((host, event))

    def wait(self, done: Callable[[], bool], seconds: float = 20) -> bool:
        return self.loop.run_until(done, time.monotonic_ns() + int(seconds * 1e9))


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    play = Play(create_folder(tmp_path, "play"))
    yield play
    for player in play.stage.players:
        player.kill()
        player.wait()


def test_every_daemon_answers_its_own_request(play: Play) -> None:
    team = play.team("h0", "h1", "h2")
    assert play.stage.started == ["h0", "h1", "h2"]
    answers = team.ask("echo", lambda host: {"greeting": f"hello {host}"})
    assert {host: answer["name"] for host, answer in answers.items()} == {"h0": "h0", "h1": "h1", "h2": "h2"}
    assert answers["h1"]["got"] == {"id": 1, "cmd": "echo", "greeting": "hello h1"}
    assert team.ask("echo")["h2"]["got"] == {"id": 2, "cmd": "echo"}


def test_events_come_with_their_host_in_order(play: Play) -> None:
    play.team("h0").ask("news")
    assert play.events[:3] == [("h0", {"event": "step", "step": number}) for number in range(3)]
    assert play.wait(lambda: len(play.events) == 4), "what comes after the answer is told later"
    assert play.events[-1] == ("h0", {"event": "late"})


def test_a_long_answer_in_pieces_is_one(play: Play) -> None:
    assert len(play.team().ask("pieces")["h0"]["text"]) == 200_000


def test_a_refusal_names_host_and_command(play: Play) -> None:
    with pytest.raises(RunError, match=r"^h1: `refuse` refused: not in this state$"):
        play.team("h0", "h1", "h2").ask("refuse", lambda _: {"but": "h1"})


def test_no_answer_in_time_names_who_is_silent(play: Play) -> None:
    team = play.team("h0", "h1")
    team.ask("echo")
    with pytest.raises(RunError, match=r"^h0, h1: no answer to `mute` within 0\.1 s$"):
        team.ask("mute", timeout_s=0.1)
    team.ask("echo")


def test_a_death_by_signal_is_named(play: Play) -> None:
    with pytest.raises(RunError, match=r"^h1: the endpoint daemon was killed by SIGKILL; its log .*h1\.log is empty$"):
        play.team("h0", "h1").ask("kill", lambda _: {"but": "h1"})


def test_an_end_with_a_status_is_told_with_the_last_words(play: Play) -> None:
    with pytest.raises(RunError, match=r"^h0: the endpoint daemon exited with status 3: last words \(.*h0\.log\)$"):
        play.team().ask("abort")


def test_an_end_nobody_asked_for_is_an_error_even_with_status_0(play: Play) -> None:
    with pytest.raises(RunError, match=r"^h0: the endpoint daemon exited with status 0; its log"):
        play.team().ask("leave")


def test_an_end_with_requests_unread_is_named_too(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel then answers the reader by an error instead of the end of the file."""
    monkeypatch.setenv("PLAYER", "deaf")
    with pytest.raises(RunError, match=r"^h0: the endpoint daemon exited with status 0; its log"):
        play.team().ask("echo")


def test_a_request_to_a_dead_daemon_is_an_error(play: Play) -> None:
    team = play.team()
    play.stage.players[0].kill()
    with pytest.raises(RunError, match=r"^h0: the endpoint daemon was killed by SIGKILL"):
        team.ask("echo")


def test_a_closed_channel_of_a_living_process_is_told(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    team = play.team()
    waits = []

    def never(_: Child, timeout: float) -> int:
        waits.append(timeout)
        raise TimeoutError("player", timeout)

    monkeypatch.setattr(Child, "wait", never)
    with pytest.raises(RunError, match=r"^h0: the endpoint daemon closed its control channel but is still running$"):
        team.ask("hang up")
    assert waits
    monkeypatch.undo()


def test_a_daemon_that_takes_no_more_requests_does_not_hold_up_the_run(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYER", "stuck")
    monkeypatch.setattr(daemon_module, "_SEND_S", 0.1)
    with pytest.raises(RunError, match=r"^h0: does not read requests; `load` could not be sent within 0\.1 s$"):
        play.team().ask("load", lambda _: {"program": "x" * 10_000_000})


def test_a_fatal_event_ends_the_run_with_its_reason(play: Play) -> None:
    with pytest.raises(RunError, match=r"^h0: the endpoint daemon failed: KeyError: 'x'; see .*h0\.log$"):
        play.team().ask("fail")
    assert play.events == []


def test_stopped_daemons_may_end(play: Play) -> None:
    team = play.team("h0", "h1")
    team.stop()
    team.close()
    for player in play.stage.players:
        assert player.wait(timeout=20) == 0
    assert not play.wait(lambda: False, seconds=0.05)


def test_a_daemon_that_ends_after_stop_is_no_error_and_no_more_listened_to(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a file stays readable: to go on listening would keep the loop busy."""
    forgotten = []
    forget = play.loop.forget
    monkeypatch.setattr(play.loop, "forget", lambda source: (forgotten.append(source), forget(source)))
    team = play.team()
    team.stop()
    play.stage.players[0].kill()
    play.stage.players[0].wait()
    assert play.wait(lambda: bool(forgotten))
    assert not play.wait(lambda: len(forgotten) > 1, seconds=0.05)


def test_closing_the_channel_ends_a_daemon(play: Play) -> None:
    team = play.team()
    team.close()
    assert play.stage.players[0].wait(timeout=20) == 0


SCENARIO = """
name: small
seed: 9
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms}
endpoint: {ev_active: 64, icrc: true}
workload: [{train: {hosts: [h0, h1, h3], steps: 3, compute: 100ms, allreduce: 3MiB}}]
"""


def ring(*hosts: int) -> JobPlan:
    return StepJob(hosts, 3, (Exchange("allreduce", ALL, Terms(3 << 20)),)).plan()


def test_the_attributes_of_each_end_are_carried_to_the_other(play: Play) -> None:
    scenario = load_scenario_text(SCENARIO)
    plan = build_plan(scenario.shape())
    job = ring(0, 1, 3)
    connect_qps(play.team("h0", "h1", "h3"), plan, job)
    assert play.wait(lambda: len(play.events) == 3)
    size, ids = job.qps[0].region_bytes, "/allreduce/0"
    assert size > 0
    told = {host: event["qps"] for host, event in play.events}
    # The ring is 0 > 1 > 3 > 0; only the receiving end of a QP registers memory.
    assert told == {
        "h0": {f"0>1{ids}": f"h1 0>1{ids} 0 {size}", f"3>0{ids}": f"h3 3>0{ids} 0 0"},
        "h1": {f"0>1{ids}": f"h0 0>1{ids} 1 0", f"1>3{ids}": f"h3 1>3{ids} 1 {size}"},
        "h3": {f"1>3{ids}": f"h1 1>3{ids} 3 0", f"3>0{ids}": f"h0 3>0{ids} 3 {size}"},
    }


@pytest.mark.parametrize(
    ("family", "members", "told"),
    [
        (Clos2(2, 2, 2), (0, 2), None),  # four links, as endpoints suppose
        (Clos3(2, 2, 2, 2, 1), (0, 1), None),  # of one pod
        (Clos3(2, 2, 2, 2, 1), (0, 2), 6),
        (Clos3(2, 2, 2, 2, 1, t1_speed=(1.0, 0.5)), (0, 2), 8),  # two links at half the rate, on the longest way
        (Rail(2, 2, 1), (0, 2), None),  # the same NIC of two nodes
        (Rail(2, 2, 1, spine_speed=(0.75,)), (0, 1), 5),  # 2 + 2 x 4/3
    ],
)
def test_a_daemon_is_told_how_far_its_farthest_peer_is(
    family: Family, members: tuple[int, int], told: int | None
) -> None:
    scenario = load_scenario_text(SCENARIO)
    plan = build_plan(Shape(2, family, 25_000_000, 20_000_000))
    asked = configuration("h0", scenario, plan, ring(*members), FabricOptions("ifb", "endpoint"), [])
    assert asked.get("forwardings") == told


def test_a_daemon_is_told_its_peers_and_the_paths_to_them() -> None:
    scenario = load_scenario_text(SCENARIO)
    plan = build_plan(scenario.shape())
    job = ring(0, 1, 3)
    denied = [{"plane": 1}]
    told = configuration("h0", scenario, plan, job, FabricOptions("ifb", "endpoint"), denied)
    peers = told.pop("peers")
    assert told == {
        "transport": "mrc",
        "host": 0,
        "name": "h0",
        "allow_to": "probes",
        "bad_after_losses": 1,
        "busy_port": "wait",
        "probe_class": "control",
        "switches_trim": False,
        "address": plan.hosts[0].address,
        "planes": 2,
        "udp_port": 0xC000,
        "rtt_ns": 20_000_000,
        "delay_ns": 10_000_000,
        "port_program": False,
        "port_rate_bps": 25_000_000,
        "ev_active": 64,
        "icrc": True,
        "seed": 9,
        "speed": 1,
        "swift": 1,
        "congestion_control": "nscc",
        "ev_selection": "adaptive",
        "payload_bytes": 4096,
        "mpr": 8,
        "dynamic_mpr": 0,
        "max_wimm": 32,
        "trim_nack": True,
        "timeout": 0,
        "linear_tries": 7,
        "exponential_tries": 5,
        "reorder_packets": 3,
        "reinfer": True,
        "probe_successes": 3,
        "dscp_data": 4,
        "dscp_retransmission": 8,
        "dscp_no_trim": 0,
        "dscp_control": 46,
        "dscp_trimmed": 12,
        "dscp_trimmed_last_hop": 16,
        "denylist": denied,
    }
    assert [(peer["host"], peer["name"], peer["address"]) for peer in peers] == [
        (1, "h1", plan.hosts[1].address),
        (3, "h3", plan.hosts[3].address),
    ]
    assert [row["udp_port"] for row in peers] == [plan.host_by_name[row["name"]].udp_port for row in peers]
    assert [path[:2] for path in peers[0]["paths"]] == [[0, 0], [1, 0]], "the same T0: no T1 to choose"
    assert [path[:2] for path in peers[1]["paths"]] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert peers[1]["paths"][3][2] == plan.paths(plan.hosts[0], plan.hosts[3])[3].inner


def test_a_host_over_tcp_is_told_addresses_and_settings() -> None:
    text = SCENARIO + "tcp: {congestion_control: reno, rto_min: 5ms}\n"
    scenario = load_scenario_text(text, overrides=["transport=tcp"])
    plan = scenario.plan()
    told = configuration("h0", scenario, plan, ring(0, 1, 3), FabricOptions("ifb", "none"), [])
    assert told["transport"] == "tcp"
    assert told["tcp"] == {"congestion_control": "reno", "rto_min_ns": 5_000_000, "payload_bytes": 4096}
    assert told["ports"] == [(0, "fd00:1::1")]
    assert told["peers"] == [
        {"host": 1, "name": "h1", "ports": [(0, "fd00:1::2")]},
        {"host": 3, "name": "h3", "ports": [(0, "fd00:1:0:1::2")]},
    ]
    assert not {"udp_port", "address", "ev_active"} & told.keys()


@pytest.mark.parametrize("delay", ["netem", "none"])
def test_endpoints_delay_only_when_the_kernel_does_not(delay: Any) -> None:
    scenario = load_scenario_text(SCENARIO)
    told = configuration(
        *("h0", scenario, build_plan(scenario.shape()), ring(0, 1, 3)),
        *(FabricOptions("ifb", delay), []),
    )
    assert told["delay_ns"] == 0


def test_some_of_the_daemons_may_be_asked(play: Play) -> None:
    team = play.team("h0", "h1", "h2")
    answers = team.ask("echo", lambda host: {"x": host}, hosts=["h2", "h0"])
    assert {host: answer["got"]["x"] for host, answer in answers.items()} == {"h0": "h0", "h2": "h2"}


class Asked:
    """A team that notes what it is asked."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.command = ""

    def ask(self, command: str, fields: Callable[[str], Any], timeout_s: float, hosts: Sequence[str]) -> None:
        self.command = command
        self.told = {host: fields(host)["paths"] for host in hosts}


def controller_of(extra: str) -> tuple[Controller, Any]:
    scenario = load_scenario_text(SCENARIO + extra)
    plan = build_plan(scenario.shape())
    return Controller(scenario, plan, ring(0, 1, 3)), scenario.occurrences[0]


def test_a_name_is_told_as_the_paths_that_each_host_has_there() -> None:
    controller, occurrence = controller_of("faults: [{at: 100ms, deny: [p0-t1-1, p1], for: 100ms}]\n")
    team = Asked()
    controller.update(cast(Team, team), "deny", occurrence)
    assert team.command == "deny"
    # h0 and h1 are below the same T0: between them uplink 1 is no path, and uplink 0 meets no T1.
    assert team.told == {
        "h0": [{"plane": 0, "uplink": 1, "peer": "h3"}, {"plane": 1}],
        "h1": [{"plane": 0, "uplink": 1, "peer": "h3"}, {"plane": 1}],
        "h3": [{"plane": 0, "uplink": 1, "peer": "h0"}, {"plane": 0, "uplink": 1, "peer": "h1"}, {"plane": 1}],
    }


def test_hosts_that_are_not_named_are_told_nothing() -> None:
    controller, occurrence = controller_of("faults: [{at: 100ms, deny: p0-t1-1, for: 100ms, hosts: [h3]}]\n")
    team = Asked()
    controller.update(cast(Team, team), "allow", occurrence)
    assert team.told.keys() == {"h3"}


def test_the_denylist_of_a_host_before_the_start() -> None:
    text = SCENARIO.replace("icrc: true", "icrc: true, denylist: [p1-t1-0, {path: p0, hosts: [h1]}]")
    scenario = load_scenario_text(text)
    controller = Controller(scenario, build_plan(scenario.shape()), ring(0, 1, 3))
    assert controller.at_start() == {
        "h0": [{"plane": 1, "uplink": 0, "peer": "h3"}],
        "h1": [{"plane": 1, "uplink": 0, "peer": "h3"}, {"plane": 0}],
        "h3": [{"plane": 1, "uplink": 0, "peer": "h0"}, {"plane": 1, "uplink": 0, "peer": "h1"}],
    }


def test_a_name_over_which_nobody_sends_is_an_error() -> None:
    text = SCENARIO.replace("hosts: [h0, h1, h3]", "hosts: [h0, h1, h2]").replace("hosts_per_t0: 2", "hosts_per_t0: 3")
    scenario = load_scenario_text(text + "faults: [{at: 100ms, deny: p0, for: 100ms}]\n")
    plan = build_plan(scenario.shape())
    controller = Controller(scenario, plan, ring(0, 1, 2))
    (occurrence,) = scenario.occurrences
    with pytest.raises(RunError, match="deny p0-t1-1: the named hosts send nothing over it"):
        controller.update(cast(Team, Asked()), "deny", replace(occurrence, targets=("p0-t1-1",)))


def test_paths_over_a_link_that_is_broken_before_the_start_may_stay_silent() -> None:
    scenario = load_scenario_text(SCENARIO + "faults: [{at: cold-start, link-down: p0-t0-0:p0-t1-1, for: 100ms}]\n")
    plan, job = build_plan(scenario.shape()), ring(0, 1, 3)
    broken = broken_paths(scenario, plan, job, scenario.occurrences)
    assert broken == {"h0": {"h3": [[0, 1]]}, "h1": {"h3": [[0, 1]]}, "h3": {"h0": [[0, 1]], "h1": [[0, 1]]}}
    answered: dict[str, Any] = {"silent_qps": []}
    refuse_silence({"h0": {"silent": {"h3": [[0, 1]]}, **answered}, "h1": {"silent": {}, **answered}}, broken, False)
    for wrong in ({"h3": [[0, 1], [1, 1]]}, {"h1": [[1, 1]]}):
        with pytest.raises(RunError, match=r"h0: 1 path to h\d did not answer.* the first is plane 1, uplink 1"):
            refuse_silence({"h0": {"silent": wrong, **answered}}, broken, False)


def test_a_silent_qp_is_an_error_only_of_an_intact_fabric() -> None:
    answers = {"h0": {"silent": {}, "silent_qps": ["q1", "q2"]}}
    refuse_silence(answers, {"h0": {}}, False)
    with pytest.raises(RunError, match="h0: 2 QPs without a connection, and there is no fault; the first is q1"):
        refuse_silence(answers, {"h0": {}}, True)


def test_a_dead_port_silences_every_path_of_its_plane() -> None:
    scenario = load_scenario_text(SCENARIO + "faults: [{at: cold-start, link-down: h0:p1-t0-0, for: 100ms}]\n")
    plan, job = build_plan(scenario.shape()), ring(0, 1, 3)
    broken = broken_paths(scenario, plan, job, scenario.occurrences)
    assert broken == {
        "h0": {"h1": [[1, 0]], "h3": [[1, 0], [1, 1]]},
        "h1": {"h0": [[1, 0]]},
        "h3": {"h0": [[1, 0], [1, 1]]},
    }


def test_an_answer_over_a_slowed_link_may_come_too_late() -> None:
    cold = "faults: [{at: cold-start, link-rate: h1:p1-t0-0, rate: 150kbit, for: 1s}]\n"
    scenario = load_scenario_text(SCENARIO + cold)
    plan, job = build_plan(scenario.shape()), ring(0, 1, 3)
    assert not any(broken_paths(scenario, plan, job, scenario.occurrences).values()), "it is waited for"
    slowed = broken_paths(scenario, plan, job, scenario.occurrences, slowed=True)
    assert slowed["h0"] == {"h1": [[1, 0]]}
    assert set(slowed["h1"]) == {"h0", "h3"}


def test_loss_of_one_sender_silences_its_own_paths_and_those_back_to_it() -> None:
    cold = "faults: [{at: cold-start, ev-loss: p0-t1-1, from: h0, to: h3, loss: 100%, for: 1s}]\n"
    scenario = load_scenario_text(SCENARIO + cold)
    plan, job = build_plan(scenario.shape()), ring(0, 1, 3)
    broken = broken_paths(scenario, plan, job, scenario.occurrences)
    assert broken == {"h0": {"h3": [[0, 1]]}, "h1": {}, "h3": {"h0": [[0, 1]]}}
