"""Two daemons with RoCE-like endpoints in two network namespaces, a veth a plane, driven over the control channel."""

from __future__ import annotations

import time

import pytest

from mrc_testbed.hosts.rc.wire import source_port
from tests.emu.test_daemon_pair import PLANES, RTT_NS, pytestmark, run_program
from tests.emu.test_ktcp_pair import TcpPair, address, connect, job, open_qps

__all__ = ["pytestmark"]

SETTINGS = {
    "recovery": "go-back-n",
    "timeout_ns": 4096 << 16,
    "retries": 7,
    "congestion_control": "none",
    "planes": "in-turn",
    "failover": "off",
    "port_recovery": False,
    "retry_hold_ns": 0,
}


class RocePair(TcpPair):
    """The same addresses and routes."""

    def configure(self, **more: object) -> None:
        for host in self.hosts:
            fields = self.request(host, transport="roce", roce=SETTINGS, delay_ns=self.delay_ns)
            host.ask("configure", **fields | more)


@pytest.fixture
def cabled():
    pair = RocePair(RTT_NS // 2)
    try:
        pair.cable()
        yield pair
    finally:
        for host in pair.hosts:
            host.end()


@pytest.mark.parametrize("recovery", ["go-back-n", "selective", "lossless"])
def test_a_ring_of_two_is_exact(cabled, recovery):
    steps, size = 10, 500_001
    cabled.configure(roce=SETTINGS | {"recovery": recovery})
    planned = job(steps, size)
    connect(cabled, open_qps(cabled, planned))
    for host, answer in zip(cabled.hosts, cabled.warm_up(), strict=True):
        assert (answer["silent_qps"], answer["silent"]) == ([], {})
        assert RTT_NS < answer["rtt_ns"][f"h{1 - host.number}"] < RTT_NS + 5_000_000
    run_program(cabled, planned)
    stats = [host.ask("stats") for host in cabled.hosts]
    for mine, theirs in (stats, stats[::-1]):
        counters = mine["counters"]
        assert counters["bytes_sent"] >= theirs["counters"]["bytes_delivered"] >= steps * size
        assert counters["messages_posted"] == counters["messages_completed"] > 0
        assert counters["qp_errors"] == counters["receive_buffer_drops"] == 0
        assert sum(qp["sent"] for qp in mine["qps"].values()) == counters["data_sent"] - counters["retransmitted"]


def sockets(host) -> set[tuple[str, int]]:
    """Local address and port of the UDP sockets in the host's namespace."""
    with open(f"/proc/{host.process.pid}/net/udp6") as file:
        rows = [line.split()[1].split(":") for line in file.readlines()[1:]]
    return {(raw, int(port, 16)) for raw, port in rows}


def test_each_qp_sends_from_a_port_of_its_own_on_the_address_of_its_plane(cabled):
    cabled.configure()
    planned = job(2, 10_000)
    opened = open_qps(cabled, planned)
    connect(cabled, opened)
    cabled.warm_up()
    ports = {source_port(opened[0][qp]["qpn"], opened[1][qp]["qpn"]) for qp in opened[0]}
    for host in cabled.hosts:
        bound = sockets(host)
        assert {port for _, port in bound} == ports | {4791}
        assert len({raw for raw, port in bound if port != 4791}) == min(PLANES, len(ports))


def test_a_qp_dies_of_a_cut_that_outlasts_its_retries_and_lives_through_one_that_does_not(cabled):
    cabled.configure(roce=SETTINGS | {"timeout_ns": 150_000_000, "retries": 3})
    planned = job(400, 200_000)
    connect(cabled, open_qps(cabled, planned))
    cabled.warm_up()
    first = cabled.hosts[0]
    for host in cabled.hosts:
        host.ask("load", rank=host.number, data_seed=7, program=planned.programs[host.number])
    cabled.start()
    first.wait_for("step", 3)
    carrier(first, up=False)
    time.sleep(0.25)
    carrier(first, up=True)
    healed = len(first.seen("step"))
    first.wait_for("step", healed + 5)
    assert not first.seen("qp_error")
    assert max(stall["end_ns"] - stall["begin_ns"] for stall in first.seen("stall")) > 200_000_000
    carrier(first, up=False)
    began_ns = time.monotonic_ns()
    first.wait_for("qp_error")
    (error, *_) = first.seen("qp_error")
    assert error["reason"] == "retries exceeded"
    # Four timeouts after the last acknowledgement; how much later depends on the machine alone.
    assert error["t_ns"] - began_ns + 0.1e9 > 0.6e9
    assert all(step["bytes_wrong"] == 0 for host in cabled.hosts for step in host.seen("step"))


def carrier(host, up: bool) -> None:
    for plane in range(PLANES):
        host.ip("link", "set", f"eth{plane}", "up" if up else "down")
        if up:
            peer = 1 - host.number
            host.ip("addr", "add", f"fe80::{plane}:{host.number + 1}/64", "dev", f"eth{plane}", "nodad")
            via = ["via", f"fe80::{plane}:{peer + 1}", "dev", f"eth{plane}", "src", address(host.number, plane)]
            host.ip("route", "replace", f"fd00:1:{plane}::/48", *via)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"recovery": "hope"}, "recovery must be one of go-back-n, selective, lossless, not 'hope'"),
        ({"congestion_control": "nscc"}, "congestion_control must be one of none, dcqcn, dcqcn-vendor, not 'nscc'"),
        ({"timeout_ns": 0}, "timeout_ns"),
    ],
)
def test_settings_that_cannot_be_are_refused(cabled, settings, said):
    host = cabled.hosts[0]
    fields = cabled.request(host, transport="roce", roce=SETTINGS | settings, delay_ns=0)
    answer = host.answer(host.send("configure", **fields))
    assert answer["ok"] is False
    assert said in answer["error"]
