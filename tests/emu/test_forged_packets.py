"""Packets forged by root inside a node: what does not fit is refused and counted, what does is in no sender's books."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.checks.builtin import INTACT
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.result import NOBODY_SENT
from mrc_testbed.testbed.checks.senders import surpluses_of
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.usid import PathId, inner_address, plain_address
from tests.emu.forger import ipv6_udp
from tests.emu.runs import SMALL, Run
from tests.emu.test_daemon_pair import Host, Pair, cabled  # noqa: F401

FORGER = str(Path(__file__).with_name("forger.py"))
PORT = 0xC000
REGION_BYTES = 1 << 16
FORGED = b"\xee" * 4096


def inside(pid: int, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["nsenter", f"--net=/proc/{pid}/ns/net", sys.executable, FORGER, *arguments])


class Forgery:
    """QPs between two hosts, and a third party in the namespace of the first that speaks to the second."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        pair.configure()
        pair.warm_up()
        self.sides = []
        for host in pair.hosts:
            qps = [{"id": "qp", "peer": 1 - host.number, "region_bytes": REGION_BYTES}]
            self.sides.append(host.ask("open_qps", qps=qps)["qps"]["qp"])
        for host in pair.hosts:
            host.ask("connect_qps", qps={"qp": self.sides[1 - host.number]})

    def data(self, qpn: int | None = None) -> bytes:
        """What fits the QP of host 1 in every field, but for this number."""
        target, region = self.sides[1], self.sides[1]["regions"][0]
        buffer = memoryview(bytearray(5000))
        bits = wire.TIMESTAMP | self.sides[0]["psn"]
        where = target["qpn"] if qpn is None else qpn, bits, 0, 1, 0, region["addr"], region["rkey"], len(FORGED)
        return bytes(buffer[: wire.emit_data(buffer, bth.WRITE_ONLY, *where, memoryview(FORGED), None)])

    def probe(self, source_qpn: int) -> bytes:
        buffer = memoryview(bytearray(100))
        return bytes(buffer[: wire.emit_probe(buffer, self.sides[1]["qpn"], 1, source_qpn, 0)])

    def send(self, payload: bytes, source: str, port: int) -> dict[str, int]:
        """What host 1 counted because of it."""
        before = self.counters(self.pair.hosts[1])
        packet = ipv6_udp(source, inner_address(1, PathId(0, 0)), port, payload)
        assert inside(self.pair.hosts[0].process.pid, "one", packet.hex()).wait() == 0
        deadline = time.monotonic() + 5
        while (after := self.counters(self.pair.hosts[1])) == before:
            assert time.monotonic() < deadline, "nothing came"
        return {name: count - before[name] for name, count in after.items() if count != before[name]}

    def counters(self, host: Host) -> dict[str, int]:
        counters: dict[str, int] = host.ask("stats")["counters"]
        return {name: count for name, count in counters.items() if name != "cpu_ns"}


@pytest.fixture
def forgery(cabled: Pair) -> Forgery:  # noqa: F811
    return Forgery(cabled)


def test_only_the_addresses_ports_and_qps_that_were_set_up_are_heard(forgery: Forgery) -> None:
    peer = plain_address(0)
    assert forgery.send(forgery.data(), plain_address(7), PORT) == {"unknown_source": 1}
    assert forgery.send(forgery.data(), peer, PORT + 1) == {"unknown_port": 1}
    assert forgery.send(forgery.data(qpn=0x63), peer, PORT) == {"packets_in": 1, "refused_unknown_qp": 1}
    strange = forgery.send(forgery.probe(forgery.sides[0]["qpn"] + 1), peer, PORT)
    assert strange["refused_wrong_qp"] == 1
    assert forgery.counters(forgery.pair.hosts[1])["data_received"] == 0


def test_what_fits_in_every_field_is_in_no_books_of_a_sender(forgery: Forgery) -> None:
    scenario = load_scenario_text(SMALL.replace("STEPS", "1"))
    assert forgery.send(forgery.data(), plain_address(0), PORT)["data_received"] == 1
    counters = {f"h{host.number}": forgery.counters(host) for host in forgery.pair.hosts}
    surpluses = surpluses_of(RunRecord(Path(), scenario, counters=counters))
    assert surpluses
    assert str(surpluses[0]) == "data packets of all hosts: 1 arrived, 0 were sent"


@pytest.mark.timeout(120)
@pytest.mark.nightly
def test_wrong_bytes_that_a_forger_wrote_are_not_the_transport_s(tmp_path: Path) -> None:
    run = Run(tmp_path, scenario=SMALL.replace("256KiB", "1MiB"), steps=6)
    run.wait_until_step(0)
    (host,) = run.pids("mininet:h0")
    forger = inside(host, "ahead", "port0", "3")
    assert run.finish() == 3, run.output
    forger.wait()
    (reached,) = [row for row in run.verdict["fidelity"]["figures"] if row["name"] == NOBODY_SENT]
    assert reached["observed"] > 0
    assert "NIC of h0" in reached["why"]
    checks = {check["name"]: check for check in run.verdict["checks"]}
    wrong = checks.get(INTACT) or checks["bytes_wrong == 0"]
    assert (wrong["status"], wrong["unbelieved"]) == ("inconclusive", "fail"), "it wrote into a region"
