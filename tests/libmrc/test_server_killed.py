"""A program that is killed in the middle of its writes: nothing more is sent for it, and its peer has no wrong byte."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from time import monotonic, sleep

import pytest

from mrc_testbed.hosts.verbs.messages import To
from tests.libmrc.killed_program import SIZE
from tests.libmrc.pair import Pair
from tests.libmrc.raw_program import RETRIES, Buffer, RawProgram

BYTE = 0xA5
MOST_S = 120


def patiently(until: Callable[[], bool]) -> None:
    """Wait for the daemons' thread."""
    end = monotonic() + MOST_S
    while not until():
        assert monotonic() < end
        sleep(0.002)


@pytest.fixture
def child(tmp_path):
    started = []

    def start(path):
        command = [sys.executable, "-m", "tests.libmrc.killed_program", path, "1", str(BYTE)]
        made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(made)
        return made

    yield start
    for each in started:
        each.kill()
        each.wait(MOST_S)
        for pipe in filter(None, (each.stdin, each.stdout)):
            pipe.close()
    RawProgram.close_all()


@pytest.mark.parametrize("roce", [False, True], ids=["mrc", "roce"])
def test_killed_in_the_middle_of_a_write(child, tmp_path, roce):
    with Pair(tmp_path, roce=roce) as pair:
        victim = child(pair.hosts[0].path)
        program, target = RawProgram(pair.hosts[1].path, patiently), Buffer(SIZE)
        program.hello()
        rkey, qpn = program.register(target), program.create()
        dest, address, key = map(int, victim.stdout.readline().split())
        program.receive_from(qpn, 0, dest)
        program.modify(qpn, To.RTS, given=2, linear=1, exp=2)
        victim.stdin.write(f"{qpn} {target.address} {rkey}\n")
        victim.stdin.flush()
        own = Buffer(4096)
        lkey = program.register(own)
        program.post(qpn, own, lkey, address, key)
        program.wait(lambda: program.sent[qpn] > 0)  # who was never answered is patient for a minute
        patiently(lambda: target[40960:40961] == bytes([BYTE]))
        victim.kill()
        victim.wait(MOST_S)
        patiently(lambda: not pair.hosts[0].server.by_number)
        with pair.stopped():
            sent = pair.hosts[0].endpoint.counters()["data_sent"]
        program.post(qpn, own, lkey, address, key)
        program.wait(lambda: bool(program.failed[qpn]))
        assert program.failed[qpn] == [(RETRIES, "retries exceeded")]
        with pair.stopped():
            assert pair.hosts[0].endpoint.counters()["data_sent"] == sent, "nothing more is sent"
            assert set(target[0:SIZE]) <= {0, BYTE}, "nothing wrong has come"
            assert not pair.hosts[0].told
