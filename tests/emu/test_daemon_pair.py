"""Two daemons in two network namespaces, a veth a plane between them, driven over the control channel alone.

No SRv6 here: the address of an EV is routed straight to its plane's veth, so what is tested is the endpoint.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from mrc_testbed.testbed.workloads.collective import Terms
from mrc_testbed.testbed.workloads.steps import ALL, Compute, Exchange, StepJob
from mrc_testbed.topos.usid import PathId, inner_address, plain_address

PROJECT = Path(__file__).parents[2]
PLANES = 2
UPLINKS = 4
PORT_RATE_BPS = 100_000_000
RTT_NS = 20_000_000
"""T. With a smaller one a daemon that waits for its CPU on a busy machine looks like a broken path."""

pytestmark = [
    pytest.mark.emu,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces: run as root (sudo)"),
]


class Host:
    """A daemon in a namespace of its own and the runner's end of its control channel."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.events: list[dict] = []
        self._answers: dict[int, dict] = {}
        self._ids = itertools.count(1)
        self._received = b""
        self.control, theirs = socket.socketpair()
        self.control.settimeout(10)
        with theirs:
            self.process = subprocess.Popen(
                [
                    "unshare",
                    "--net",
                    "--",
                    sys.executable,
                    "-m",
                    "mrc_testbed.hosts.daemon",
                    "--control-fd",
                    str(theirs.fileno()),
                ],
                cwd=PROJECT,
                pass_fds=[theirs.fileno()],
            )
        self._wait_for_namespace()

    def _wait_for_namespace(self) -> None:
        ours = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + 5
        while os.readlink(f"/proc/{self.process.pid}/ns/net") == ours:
            assert time.monotonic() < deadline, "unshare made no namespace"
            time.sleep(0.01)

    def ip(self, *arguments: str) -> None:
        command = ["nsenter", "--net", "--target", str(self.process.pid), "ip", *arguments]
        subprocess.run(command, check=True, capture_output=True, text=True)

    def send(self, cmd: str, **fields: object) -> int:
        number = next(self._ids)
        self.control.sendall(json.dumps({"id": number, "cmd": cmd, **fields}).encode() + b"\n")
        return number

    def answer(self, number: int) -> dict:
        while number not in self._answers:
            self.read()
        return self._answers.pop(number)

    def ask(self, cmd: str, **fields: object) -> dict:
        answer = self.answer(self.send(cmd, **fields))
        assert answer["ok"], answer
        return answer

    def read(self) -> None:
        data = self.control.recv(1 << 16)
        assert data, "the daemon closed its control channel"
        *lines, self._received = (self._received + data).split(b"\n")
        for message in map(json.loads, lines):
            assert message.get("event") != "fatal", message
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self.events.append(message)

    def seen(self, event: str) -> list[dict]:
        return [message for message in self.events if message["event"] == event]

    def wait_for(self, event: str, count: int = 1, seconds: float = 20) -> None:
        """Read until `count` of an event have come in all. No other can be waited for once a QP is in error: snapshots
        come on, and a test that reads on would wait for its time limit."""
        deadline = time.monotonic() + seconds
        while len(self.seen(event)) < count:
            assert event == "qp_error" or not self.seen("qp_error"), self.seen("qp_error")
            assert time.monotonic() < deadline, f"{len(self.seen(event))} of {count} {event} in {seconds:.0f} s"
            self.read()

    def end(self) -> None:
        self.control.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Pair:
    """Both hosts, cabled, and the phases of a run on them."""

    def __init__(self, delay_ns: int) -> None:
        self.delay_ns = delay_ns
        self.hosts: list[Host] = []

    def cable(self) -> None:
        self.hosts += [Host(0), Host(1)]
        pids = [str(host.process.pid) for host in self.hosts]
        for plane in range(PLANES):
            port = f"eth{plane}"
            veth = ["link", "add", port, "mtu", "9000", "netns", pids[0], "type", "veth", "peer", "name", port]
            subprocess.run(["ip", *veth, "mtu", "9000", "netns", pids[1]], check=True)
        for host in self.hosts:
            self._address(host, 1 - host.number)

    def _address(self, host: Host, peer: int) -> None:
        host.ip("link", "set", "lo", "up")
        host.ip("addr", "add", plain_address(host.number), "dev", "lo", "nodad")
        host.ip("route", "add", "local", f"fd00:0:0:{host.number}::/64", "dev", "lo")
        for plane in range(PLANES):
            port = f"eth{plane}"
            host.ip("link", "set", port, "up")
            host.ip("addr", "add", f"fe80::{plane}:{host.number + 1}/64", "dev", port, "nodad")
            subnet = f"fd00:0:0:{peer}:0:{plane}::/96"
            host.ip("route", "add", subnet, "via", f"fe80::{plane}:{peer + 1}", "dev", port)
        host.ip("route", "add", plain_address(peer), "via", f"fe80::0:{peer + 1}", "dev", "eth0")

    def configure(self, **more: object) -> None:
        for host in self.hosts:
            peer = 1 - host.number
            paths = [
                [plane, up, inner_address(peer, PathId(plane, up))] for plane in range(PLANES) for up in range(UPLINKS)
            ]
            host.ask(
                "configure",
                host=host.number,
                name=f"h{host.number}",
                address=plain_address(host.number),
                planes=PLANES,
                udp_port=0xC000,
                rtt_ns=RTT_NS,
                delay_ns=self.delay_ns,
                port_rate_bps=PORT_RATE_BPS,
                ev_active=128,
                icrc=False,
                seed=7,
                peers=[
                    {
                        "host": peer,
                        "name": f"h{peer}",
                        "address": plain_address(peer),
                        "udp_port": 0xC000,
                        "paths": paths,
                    }
                ],
                **more,
            )

    def train(self, steps: int, size: int) -> None:
        job = StepJob((0, 1), steps, (Compute(1_000_000), Exchange("allreduce", ALL, Terms(size)))).plan()
        opened = []
        for host in self.hosts:
            qps = [{"id": qp.id, "peer": 1 - host.number, "region_bytes": qp.region_bytes} for qp in job.qps]
            opened.append(host.ask("open_qps", qps=qps)["qps"])
        for host in self.hosts:
            host.ask("connect_qps", qps=opened[1 - host.number])
        for host in self.hosts:
            program = job.programs[host.number]
            host.ask("load", rank=host.number, data_seed=7, program=program)

    def warm_up(self) -> list[dict]:
        pending = [(host, host.send("warm_up", timeout_ns=3_000_000_000)) for host in self.hosts]
        return [host.answer(number) for host, number in pending]

    def start(self) -> None:
        at_ns = time.monotonic_ns() + 20_000_000
        for host in self.hosts:
            host.ask("start", at_ns=at_ns)

    def finish(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not all(host.seen("program_done") for host in self.hosts):
            assert time.monotonic() < deadline, [host.seen("step")[-1:] for host in self.hosts]
            readable, _, _ = select.select([host.control for host in self.hosts], [], [], 1)
            for host in self.hosts:
                if host.control in readable:
                    host.read()


def cabled_pair(pair):
    """Not configured yet; it ends with the test."""
    try:
        pair.cable()
        yield pair
    finally:
        for host in pair.hosts:
            host.end()


@pytest.fixture
def cabled():
    yield from cabled_pair(Pair(0))


@pytest.fixture(params=[0, RTT_NS // 2], ids=["no-delay", "delay-line"])
def pair(request):
    pair = Pair(request.param)
    try:
        pair.cable()
        pair.configure()
        yield pair
    finally:
        for host in pair.hosts:
            host.end()


def test_every_path_answers_and_the_round_trip_is_the_delay(pair):
    for host, answer in zip(pair.hosts, pair.warm_up(), strict=True):
        assert answer["ok"]
        assert answer["silent"] == {}
        rtt_ns = answer["rtt_ns"][f"h{1 - host.number}"]
        assert 2 * pair.delay_ns < rtt_ns < 2 * pair.delay_ns + 5_000_000


def test_a_ring_of_two_is_exact_and_uses_planes_alike(pair):
    steps, size = 10, 500_001
    pair.warm_up()
    pair.train(steps, size)
    pair.start()
    pair.finish(30)
    for host in pair.hosts:
        reports = host.seen("step")
        assert [report["step"] for report in reports] == list(range(steps))
        assert [report["bytes_wrong"] for report in reports] == [0] * steps
        assert not host.seen("qp_error")
        stats = host.ask("stats")
        assert stats["counters"]["receive_buffer_drops"] == 0
        packets = [
            sum(count for path, count in stats["paths"][f"h{1 - host.number}"].items() if path.startswith(f"{plane}/"))
            for plane in range(PLANES)
        ]
        assert sum(packets) >= sum(report["bytes"] for report in reports) // 4096
        assert max(packets) - min(packets) <= 1
    assert sum(report["bytes"] for host in pair.hosts for report in host.seen("step")) == steps * 2 * size


def test_the_loss_of_a_plane_costs_no_byte(pair):
    steps, size = 12, 500_000
    pair.warm_up()
    pair.train(steps, size)
    pair.start()
    first = pair.hosts[0]
    first.wait_for("step", 3)
    first.ip("link", "set", "eth1", "down")
    pair.finish(60)
    for host in pair.hosts:
        assert [report["bytes_wrong"] for report in host.seen("step")] == [0] * steps
        assert not host.seen("qp_error")
        states = host.seen("ev_state")
        assert (f"h{1 - host.number}", 1) in {(event["peer"], event["plane"]) for event in states}
        assert all(event["from"] != event["to"] and event["trigger"] for event in states)
        # A path of the other plane may be suspected when a process is late; a plane is given up for a port alone.
        given_up = {(event["peer"], event["plane"]) for event in host.seen("plane_state") if not event["usable"]}
        assert given_up == {(f"h{1 - host.number}", 1)}
    # With its port down a host has no route there any more: an error of `send` is one more lost packet.
    counters = first.ask("stats")["counters"]
    assert sum(count for name, count in counters.items() if name.startswith("send_lost_")) > 0


def plugin(file: Path, kind: str, attribute: str) -> dict:
    return {"name": "mine", "kind": kind, "file": str(file), "attribute": attribute}


def test_a_ring_of_two_is_exact_with_the_plugins_of_the_examples(cabled):
    examples = PROJECT / "docs/examples"
    plugins = [
        plugin(examples / "my_cc.py", "congestion_control", "FixedRate"),
        plugin(examples / "random_spray.py", "ev_selection", "RandomSpray"),
    ]
    cabled.configure(plugins=plugins, congestion_control="mine", ev_selection="mine")
    cabled.warm_up()
    cabled.train(5, 500_001)
    cabled.start()
    cabled.finish(30)
    for host in cabled.hosts:
        assert [report["bytes_wrong"] for report in host.seen("step")] == [0] * 5
        assert host.ask("stats")["counters"]["data_on_bad_ev"] == 0


def test_a_plugin_that_raises_in_the_middle_ends_the_run_with_its_file_and_line(cabled, tmp_path):
    source = (PROJECT / "docs/examples/my_cc.py").read_text()
    file = tmp_path / "mine.py"
    file.write_text(f"{source}\n\nclass Mine(FixedRate):\n    def on_sack(self, *_):\n        1 / 0\n")
    line = len(file.read_text().splitlines())
    cabled.configure(plugins=[plugin(file, "congestion_control", "Mine")], congestion_control="mine")
    cabled.warm_up()
    cabled.train(5, 500_001)
    cabled.start()
    with pytest.raises(AssertionError, match=f"plugin mine.py:{line}: ZeroDivisionError: division by zero"):
        cabled.finish(10)


def test_a_silent_path_is_named_when_the_time_of_the_warm_up_is_over(pair):
    first = pair.hosts[0]
    first.ip("route", "add", "blackhole", inner_address(1, PathId(1, 2)) + "/128")
    began = time.monotonic()
    answer = first.ask("warm_up", timeout_ns=300_000_000)
    assert 0.3 <= time.monotonic() - began < 0.6
    assert answer["silent"] == {"h1": [[1, 2]]}


def test_snapshots_come_five_a_second(pair):
    host = pair.hosts[0]
    host.wait_for("snapshot", 6, seconds=5)
    first, *_, last = (snapshot["t_ns"] for snapshot in host.seen("snapshot")[:6])
    assert 0.95e9 < last - first < 1.2e9


def test_what_comes_twice_or_too_early_is_refused(pair):
    host = pair.hosts[0]
    mine = host.ask("open_qps", qps=[{"id": "x", "peer": 1, "region_bytes": 100}])["qps"]["x"]
    refused = [
        (dict(cmd="configure"), "already configured"),
        (dict(cmd="open_qps", qps=[{"id": "x", "peer": 1, "region_bytes": 1}]), "QP x is already open"),
        (dict(cmd="open_qps", qps=[{"id": "y", "peer": 5, "region_bytes": 1}]), "unknown peer, host 5"),
        (dict(cmd="open_qps", qps=[7]), "expected an object with id, not 7"),
        (dict(cmd="connect_qps", qps={"z": {}}), "QP z is not open"),
        (dict(cmd="connect_qps", qps={"x": {}}), "missing or malformed remote attribute"),
        (dict(cmd="connect_qps", qps={"x": {**mine, "mpr": 0}}), "QP x: the peer's attribute mpr must be an integer"),
        (dict(cmd="connect_qps", qps={"x": {**mine, "mtu": "9"}}), "QP x: the peer's attribute mtu must be an integer"),
        (dict(cmd="reset_qps", qps=["x", "z"]), "QP z is not open"),
        (dict(cmd="destroy_qps", qps=[["x"]]), "QP ['x'] is not open"),
        (dict(cmd="destroy_qps", qps="x"), "qps must be a list"),
        (dict(cmd="warm_up", timeout_ns=1, broken={"h1": [7]}), "broken must be {peer: [[plane, uplink], ...]}"),
        (dict(cmd="load", rank=-1, data_seed=1, program=[]), "rank"),
        (dict(cmd="load", rank=0, data_seed=1, program=[[["hop"]]]), "operation 0 ['hop']"),
    ]
    for fields, message in refused:
        answer = host.answer(host.send(**cast(Any, fields)))
        assert answer["ok"] is False
        assert message in answer["error"]
    host.ask("load", rank=0, data_seed=1, program=[[["end", 0]]])
    assert "send connect_qps first: x not connected" in host.answer(host.send("start", at_ns=0))["error"]
    for cmd in ("reset_qps", "destroy_qps"):
        assert "a program is loaded" in host.answer(host.send(cmd, qps=["x"]))["error"]


def run_program(pair, job):
    for host in pair.hosts:
        host.events.clear()
        host.ask("load", rank=host.number, data_seed=7, program=job.programs[host.number])
    pair.start()
    pair.finish(20)
    assert all(step["bytes_wrong"] == 0 for host in pair.hosts for step in host.seen("step"))


def resident_bytes(host):
    status = Path(f"/proc/{host.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


@pytest.mark.nightly(keep=1)
def test_qps_are_reset_and_destroyed_and_set_up_again(pair):
    size = 8 << 20
    job = StepJob((0, 1), 2, (Compute(1_000_000), Exchange("allreduce", ALL, Terms(size)))).plan()
    rows = {
        h.number: [{"id": qp.id, "peer": 1 - h.number, "region_bytes": qp.region_bytes} for qp in job.qps]
        for h in pair.hosts
    }
    names = [qp.id for qp in job.qps]

    def connect(attributes):
        for host in pair.hosts:
            host.ask("connect_qps", qps=attributes[1 - host.number])

    connect([host.ask("open_qps", qps=rows[host.number])["qps"] for host in pair.hosts])
    pair.warm_up()
    run_program(pair, job)
    connect([host.ask("reset_qps", qps=names)["qps"] for host in pair.hosts])
    run_program(pair, job)
    before = [resident_bytes(host) for host in pair.hosts]
    for host in pair.hosts:
        host.ask("destroy_qps", qps=names)
    freed = [was - resident_bytes(host) for was, host in zip(before, pair.hosts, strict=True)]
    assert min(freed) > size / 2
    connect([host.ask("open_qps", qps=rows[host.number])["qps"] for host in pair.hosts])
    run_program(pair, job)


def test_the_daemon_exits_when_its_channel_closes_and_after_stop(pair):
    first, second = pair.hosts
    first.control.close()
    assert first.process.wait(timeout=2) == 0
    second.ask("stop")
    assert second.process.wait(timeout=2) == 0
