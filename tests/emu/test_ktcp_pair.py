"""Two daemons over kernel TCP in two network namespaces, a veth a plane, driven over the control channel alone."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time

import pytest

from mrc_testbed.hosts.ktcp.dialling import LISTEN_PORT
from mrc_testbed.testbed.workloads.collective import Terms
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.testbed.workloads.steps import ALL, Compute, Exchange, StepJob
from tests.emu.test_daemon_pair import PLANES, PORT_RATE_BPS, RTT_NS, Host, Pair, cabled_pair, pytestmark, run_program

__all__ = ["pytestmark"]

SETTINGS = {"congestion_control": "cubic", "rto_min_ns": 5_000_000, "payload_bytes": 4096}


def address(host: int, plane: int) -> str:
    return f"fd00:1:{plane}:{host}::1"


class TcpPair(Pair):
    def _address(self, host: Host, peer: int) -> None:
        host.ip("link", "set", "lo", "up")
        for plane in range(PLANES):
            port = f"eth{plane}"
            host.ip("link", "set", port, "up", "gso_max_segs", "1")
            host.ip("addr", "add", f"{address(host.number, plane)}/128", "dev", "lo", "nodad")
            host.ip("addr", "add", f"fe80::{plane}:{host.number + 1}/64", "dev", port, "nodad")
            where = ["via", f"fe80::{plane}:{peer + 1}", "dev", port, "src", address(host.number, plane)]
            host.ip("route", "add", f"fd00:1:{plane}::/48", *where)

    def request(self, host: Host, **more: object) -> dict:
        peer = 1 - host.number
        ports = {number: [[plane, address(number, plane)] for plane in range(PLANES)] for number in (0, 1)}
        fields = dict(
            transport="tcp",
            host=host.number,
            name=f"h{host.number}",
            planes=PLANES,
            rtt_ns=RTT_NS,
            port_rate_bps=PORT_RATE_BPS,
            seed=7,
            ports=ports[host.number],
            peers=[{"host": peer, "name": f"h{peer}", "ports": ports[peer]}],
            tcp=SETTINGS,
        )
        return fields | more

    def configure(self, **more: object) -> None:
        for host in self.hosts:
            host.ask("configure", **self.request(host, **more))


@pytest.fixture
def cabled():
    yield from cabled_pair(TcpPair(0))


@pytest.fixture
def pair(cabled):
    cabled.configure()
    return cabled


def job(steps: int, size: int) -> JobPlan:
    return StepJob((0, 1), steps, (Compute(1_000_000), Exchange("allreduce", ALL, Terms(size)))).plan()


def open_qps(pair, planned):
    rows = {
        host.number: [{"id": qp.id, "peer": 1 - host.number, "region_bytes": qp.region_bytes} for qp in planned.qps]
        for host in pair.hosts
    }
    return [host.ask("open_qps", qps=rows[host.number])["qps"] for host in pair.hosts]


def connect(pair, attributes):
    for host in pair.hosts:
        host.ask("connect_qps", qps=attributes[1 - host.number])


def test_connections_answer_in_the_warm_up_with_a_round_trip(pair):
    connect(pair, open_qps(pair, job(1, 1000)))
    for host, answer in zip(pair.hosts, pair.warm_up(), strict=True):
        assert answer["silent_qps"] == []
        assert answer["silent"] == {}
        assert 0 < answer["rtt_ns"][f"h{1 - host.number}"] < RTT_NS


def test_a_ring_of_two_is_exact(pair):
    steps, size = 10, 500_001
    connect(pair, open_qps(pair, job(steps, size)))
    pair.warm_up()
    run_program(pair, job(steps, size))
    assert sum(report["bytes"] for host in pair.hosts for report in host.seen("step")) == steps * 2 * size
    stats = [host.ask("stats") for host in pair.hosts]
    for mine, theirs in (stats, stats[::-1]):
        counters = mine["counters"]
        assert counters["bytes_sent"] == theirs["counters"]["bytes_delivered"] > steps * size
        assert counters["messages_posted"] == counters["messages_completed"] > 0
        assert counters["qp_errors"] == counters["frames_refused"] == counters["strangers"] == 0
        assert counters["retransmitted"] == counters["timeouts"] == 0
        assert mine["paths"] == {f"h{1 - stats.index(mine)}": {}}
        assert counters["data_sent"] >= steps * size / 4096
        assert sum(qp["sent"] for qp in mine["qps"].values()) == counters["data_sent"]


def test_the_namespace_and_sockets_have_the_settings(pair):
    connect(pair, open_qps(pair, job(1, 1000)))
    pair.warm_up()
    for host in pair.hosts:
        inside = ["nsenter", "--net", "--target", str(host.process.pid)]
        shown = subprocess.run([*inside, "ss", "-tinH"], check=True, capture_output=True, text=True).stdout
        assert "cubic" in shown
        # 12 bytes of a full packet are the TCP time stamp.
        assert "mss:4084" in shown
        setting = subprocess.run(
            [*inside, "cat", "/proc/sys/net/ipv4/tcp_rto_min_us"], check=True, capture_output=True, text=True
        )
        assert setting.stdout.strip() == "5000"


def test_the_same_seed_has_the_same_ports():
    def ports() -> set[str]:
        pair = TcpPair(0)
        try:
            pair.cable()
            pair.configure()
            connect(pair, open_qps(pair, job(1, 1000)))
            pair.warm_up()
            first = pair.hosts[0]
            shown = subprocess.run(
                ["nsenter", "--net", "--target", str(first.process.pid), "ss", "-tnH"],
                check=True,
                capture_output=True,
                text=True,
            )
            return {" ".join(line.split()[3:5]) for line in shown.stdout.splitlines()}
        finally:
            for host in pair.hosts:
                host.end()

    once = ports()
    assert once
    assert once == ports()


def swallow(host, on):
    """Let everything vanish that this host sends, or no longer: frames go to an address that nobody has.

    A blackhole route would refuse the packet to TCP itself, which then probes its peer and never times out.
    """
    for plane in range(PLANES):
        neighbour = [f"fe80::{plane}:{2 - host.number}", "dev", f"eth{plane}"]
        if on:
            host.ip("neigh", "replace", *neighbour, "lladdr", "02:00:00:00:00:fe", "nud", "permanent")
        else:
            host.ip("neigh", "del", *neighbour)


def test_a_silent_network_is_a_stall_and_the_job_lives(pair):
    steps, size = 6, 3_000_000
    planned = job(steps, size)
    connect(pair, open_qps(pair, planned))
    pair.warm_up()
    for host in pair.hosts:
        host.ask("load", rank=host.number, data_seed=7, program=planned.programs[host.number])
    pair.start()
    first = pair.hosts[0]
    first.wait_for("step", 2)
    swallow(first, True)
    cut_ns = time.monotonic_ns()
    time.sleep(1.0)
    stalled = {qp for host in pair.hosts for shot in host.seen("snapshot") for qp in shot["stalled"]}
    swallow(first, False)
    heal_ns = time.monotonic_ns()
    pair.finish(30)
    stalls = [stall for host in pair.hosts for stall in host.seen("stall")]
    assert stalls
    longest = max(stalls, key=lambda stall: stall["end_ns"] - stall["begin_ns"])
    assert longest["begin_ns"] < cut_ns + 200_000_000
    assert longest["end_ns"] > heal_ns
    stalled |= {qp for host in pair.hosts for shot in host.seen("snapshot") for qp in shot["stalled"]}
    assert longest["qp"] in stalled
    for host in pair.hosts:
        assert [step["bytes_wrong"] for step in host.seen("step")] == [0] * steps
        assert not host.seen("qp_error")
    assert sum(host.ask("stats")["counters"]["timeouts"] for host in pair.hosts) > 0


def test_qps_are_reset_and_destroyed_and_set_up_again(pair):
    planned = job(2, 500_001)
    names = [qp.id for qp in planned.qps]
    connect(pair, open_qps(pair, planned))
    pair.warm_up()
    run_program(pair, planned)
    connect(pair, [host.ask("reset_qps", qps=names)["qps"] for host in pair.hosts])
    run_program(pair, planned)
    for host in pair.hosts:
        host.ask("destroy_qps", qps=names)
    connect(pair, open_qps(pair, planned))
    run_program(pair, planned)
    assert not [event for host in pair.hosts for event in host.seen("qp_error")]


def test_a_peer_that_dies_ends_the_qps_with_the_kernels_words(pair):
    planned = job(100, 3_000_000)
    connect(pair, open_qps(pair, planned))
    pair.warm_up()
    for host in pair.hosts:
        host.ask("load", rank=host.number, data_seed=7, program=planned.programs[host.number])
    pair.start()
    first, second = pair.hosts
    first.wait_for("step")
    second.process.send_signal(signal.SIGKILL)
    first.wait_for("qp_error")
    error = first.seen("qp_error")[0]
    assert error["peer"] == "h1"
    assert error["reason"] in {os.strerror(errno.ECONNRESET), os.strerror(errno.EPIPE), "closed by the peer"}


def intruder(host: Host, said: bytes) -> bytes:
    """Connect to a host from inside of its namespace, say something, and read to the end."""
    code = (
        "import socket,sys\n"
        f"s = socket.create_connection(('{address(host.number, 0)}', {LISTEN_PORT}))\n"
        f"s.sendall(bytes.fromhex('{said.hex()}')); s.shutdown(socket.SHUT_WR); s.settimeout(5)\n"
        "try:\n print(len(s.recv(100)))\nexcept ConnectionError:\n print(0)\n"
    )
    command = ["nsenter", "--net", "--target", str(host.process.pid), "python3", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, timeout=20).stdout.strip()


@pytest.mark.parametrize("said", [b"", b"\0" * 7, b"\xff" * 60, b"\0" * 16 + b"\1\0\0\0"])
@pytest.mark.nightly(keep=1)
def test_strangers_are_shown_out(pair, said):
    first = pair.hosts[0]
    connect(pair, open_qps(pair, job(2, 1000)))
    assert intruder(first, said) == b"0"
    pair.warm_up()
    run_program(pair, job(2, 1000))
    assert first.ask("stats")["counters"]["strangers"] == 1


def test_a_port_that_nobody_answers_on_is_named_when_the_warm_up_is_over(pair):
    first = pair.hosts[0]
    attributes = open_qps(pair, job(1, 1000))
    swallow(first, True)
    connect(pair, attributes)
    answer = first.ask("warm_up", timeout_ns=500_000_000)
    assert answer["silent_qps"] == sorted(attributes[0])
    swallow(first, False)
    assert [answer["silent_qps"] for answer in pair.warm_up()] == [[], []]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tcp": SETTINGS | {"congestion_control": "vegas2"}}, "no TCP congestion control 'vegas2', only"),
        ({"tcp": SETTINGS | {"rto_min_ns": 0}}, "rto_min_ns must be an integer of 1 or more"),
        ({"tcp": {}}, "congestion_control must be a string"),
        ({"ports": []}, "ports must have at least one"),
        ({"ports": [[0]]}, "ports must be [[plane, address], ...]"),
        ({"peers": [{"host": 1, "name": "h1", "ports": [[0, "x"]]}]}, "peer h1: ports must be"),
        ({"transport": "carrier-pigeon"}, "transport must be one of mrc,"),
    ],
)
@pytest.mark.nightly(keep=3)
def test_settings_that_cannot_be_are_refused(cabled, more, message):
    host = cabled.hosts[0]
    answer = host.answer(host.send("configure", **cabled.request(host, **more)))
    assert answer["ok"] is False
    assert message in answer["error"]
    host.ask("configure", **cabled.request(host))


def test_deny_and_allow_do_not_apply(pair):
    for cmd in ("deny", "allow"):
        answer = pair.hosts[0].ask(cmd, paths=[{"plane": 0}])
        assert answer["not_applicable"] is True
