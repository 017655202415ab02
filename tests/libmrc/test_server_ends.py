"""Programs that end at any step, that do not read, and that do two things at once."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest

from mrc_testbed.hosts.verbs.messages import FORMS, RecordKind, To
from tests.libmrc.raw_program import RETRIES, Buffer, Joined, RawProgram, gid, greeted, open_descriptors, settle

# --- ends ---


STEPS = ["connect", "hello", "register", "create", "init", "rtr", "rts", "receives", "post"]


def go_to(program, step):
    """As far as this step; its last request is not waited for."""
    buffer, qpn = Buffer(65536), 0
    if step == "connect":
        return
    if step == "hello":
        program.send(program.hello_record(), descriptors=[program.memory, program.events])
        return
    program.hello()
    if step == "register":
        program.ask(RecordKind.REG_MR, pd=1, address=buffer.address, length=buffer.size, access=1)
        return
    key = program.register(buffer)
    if step == "create":
        program.ask(RecordKind.CREATE_QP, pd=1)
        return
    qpn = program.create()
    states = {"init": To.INIT, "rtr": To.RTR, "rts": To.RTS}
    for name, state in states.items():
        fields = {"qpn": qpn, "state": state, "dgid": gid(1), "path_mtu": 4096, "dest_qpn": 77}
        if name == step:
            program.ask(RecordKind.MODIFY_QP, **fields)
            return
        program.request(RecordKind.MODIFY_QP, **fields)
    program.post_receives(qpn, 5)
    if step == "post":
        program.post(qpn, buffer, key, 0, 0)


@pytest.mark.nightly(keep=16)
@pytest.mark.parametrize("read_first", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_program_ends_at_any_step(pair, step, read_first):
    """In the same turn a new one may get the number of its connection."""
    before = open_descriptors()
    program = RawProgram(pair.hosts[0].path, pair.drive)
    go_to(program, step)
    if read_first:
        settle(pair)
    program.close()
    other = RawProgram(pair.hosts[0].path, pair.drive)
    other.hello()
    settle(pair)
    assert not pair.hosts[0].told, "to end is no fault"
    assert other.request(RecordKind.QUERY_PORT, port=1) == 1
    assert len(pair.hosts[0].server._served) == 1
    assert not pair.hosts[0].server.by_number
    assert not pair.hosts[0].server._keys
    other.close()
    settle(pair)
    pair.drive(within_ns=3 * 10**9, must=False)
    assert not pair.hosts[0].endpoint._qps
    assert not pair.hosts[0].names.names
    assert open_descriptors() == before


def test_a_program_ends_with_what_it_has_not_read(pair):
    """The kernel says ECONNRESET then, not the end of the file."""
    joined = Joined(pair)
    program = joined.programs[0]
    for _ in range(10):
        program.ask(RecordKind.QUERY_PORT, port=1)
    settle(pair)
    program.close()
    settle(pair)
    assert not pair.hosts[0].told
    assert not pair.hosts[0].server._served


def test_the_number_of_a_connection_is_given_again_at_once(pair):
    """What one program left unread is nothing to the next."""
    for _ in range(20):
        program = greeted(pair)
        for _ in range(7):
            program.ask(RecordKind.QUERY_PORT, port=1)
        program.close()
        other = RawProgram(pair.hosts[0].path, pair.drive)
        other.hello()
        assert other.request(RecordKind.QUERY_PORT, port=1) == 1
        assert set(other.replies) == set()
        other.close()
        settle(pair)


def test_a_program_that_ends_leaves_its_peer_without_answer(pair):
    joined = Joined(pair, size=1 << 20)
    joined.sources[0].fill(b"\xa5" * (1 << 20))
    joined.programs[0].post(
        joined.qpns[0], joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1]
    )
    pair.drive(lambda: joined.targets[1][4096:4097] == b"\xa5")
    joined.programs[0].close()
    settle(pair)
    sent = pair.hosts[0].endpoint.counters()["data_sent"]
    pair.drive(within_ns=10**9, must=False)
    assert pair.hosts[0].endpoint.counters()["data_sent"] == sent, "nothing more is sent"
    there = joined.targets[1][0 : 1 << 20]
    assert 0 < there.count(0xA5) < 1 << 20
    assert set(there) == {0, 0xA5}
    target = joined.targets[0][0 : 1 << 20]
    joined.write(b"late", source=1)
    status, text = joined.wait_failed(1)
    assert (status, text) == (RETRIES, "retries exceeded")
    assert joined.targets[0][0 : 1 << 20] == target


# --- programs that do not read ---


def test_a_program_that_does_not_read_loses_nothing_and_holds_up_nobody(pair):
    lazy, busy = Joined(pair, receives=1024), Joined(pair)
    posted = 0
    for program in lazy.programs:
        program.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        program.deaf = True
    for round_ in range(40):
        for number in range(16):
            lazy.write(b"z" * 8, at=8 * number, immediate=posted)
            posted += 1
            settle(pair)
        busy.write(b"busy", at=4 * round_)
        busy.wait_sent(round_ + 1)
    pair.drive(lambda: pair.hosts[1].server.counters()["verbs_received"] == posted)
    for program in lazy.programs:
        program.deaf = False
    lazy.wait_sent(posted)
    lazy.programs[1].wait(lambda: len(lazy.received(1)) == posted)
    assert lazy.received(1) == [(number, 8) for number in range(posted)]
    assert lazy.programs[0].request(RecordKind.QUERY_PORT, port=1) == 1


def test_a_program_that_asks_and_never_reads_is_ended(pair):
    busy = Joined(pair)
    rude = greeted(pair)
    rude.deaf = True
    record = FORMS[RecordKind.QUERY_PORT].pack(port=1, token=1)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(6000):
            with contextlib.suppress(BlockingIOError):
                rude.send(*[record] * 16)
            settle(pair)
    (told,) = pair.hosts[0].told
    assert "answers unread" in told[1]["reason"]
    busy.write(b"still there")
    busy.wait_sent(1)


def test_a_program_that_posts_without_end_has_its_turn_and_no_more(pair):
    busy, flood = Joined(pair), Joined(pair)
    record = flood.programs[0].post_record(0x9999, flood.sources[0], 0, 0, 0)
    for round_ in range(50):
        with contextlib.suppress(BlockingIOError):
            while True:
                flood.programs[0].send(*[record] * 16)
        busy.write(b"x", at=round_)
        turns = 0
        while busy.programs[0].sent[busy.qpns[0]] <= round_:
            pair.drive(lambda: True)
            pair._turn(pair.now_ns)
            pair.now_ns += 100_000
            busy.programs[0].read()
            turns += 1
            assert turns < 1000
    assert busy.targets[1][0:50] == b"x" * 50


def test_async_events_wake_as_often_as_they_are_told(mrc):
    program = greeted(mrc)
    for _ in range(3):
        mrc.hosts[0].network.switch_port(0, False, mrc.now_ns)
        mrc.drive(within_ns=10**8, must=False)
        mrc.hosts[0].network.switch_port(0, True, mrc.now_ns)
        mrc.drive(within_ns=10**9, must=False)
    program.read()
    assert program.asyncs == [(10, 1), (9, 1)] * 3
    assert program.async_wakes() == 6


def test_an_eventfd_that_is_full_holds_up_nothing(mrc):
    program = greeted(mrc)
    os.write(program.events, ((1 << 64) - 2).to_bytes(8, "little"))
    mrc.hosts[0].network.switch_port(0, False, mrc.now_ns)
    mrc.drive(within_ns=10**8, must=False)
    program.read()
    assert program.asyncs == [(10, 1)]


# --- two things in one turn ---


def test_the_last_port_goes_while_a_qp_is_used(mrc):
    """The endpoint has failed the QP, and nobody was told yet."""
    joined = Joined(mrc)
    program, qpn = joined.programs[0], joined.qpns[0]
    bad = program.post_record(qpn, joined.sources[0], 0, joined.targets[1].address, joined.rkeys[1])
    ports = [FORMS[RecordKind.MODIFY_PORT].pack(port=port, token=port, enabled=0) for port in (1, 2)]
    program.send(*ports, bad)
    assert joined.wait_failed()[0] == RETRIES
    program.modify(qpn, To.RESET)
    for index, wanted in enumerate((To.ERROR, To.RTS, To.RESET)):
        other = program.create()
        program.modify(other, To.INIT)
        rtr = {"qpn": other, "dgid": gid(1), "path_mtu": 4096, "dest_qpn": 5}
        program.send(
            FORMS[RecordKind.MODIFY_QP].pack(token=1000 + index, state=To.RTR, **rtr),
            FORMS[RecordKind.MODIFY_QP].pack(token=2000 + index, state=wanted, **rtr),
        )
        settle(mrc)
        program.request(RecordKind.DESTROY_QP, qpn=other)
    assert not mrc.hosts[0].told


def test_posted_and_destroyed_in_one_datagram(pair):
    joined = Joined(pair)
    program, qpn = joined.programs[0], joined.qpns[0]
    good = program.post_record(qpn, joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1])
    program.send(good, good, FORMS[RecordKind.DESTROY_QP].pack(qpn=qpn, token=500), good)
    assert program.answer(500) == 0
    pair.drive(within_ns=10**9, must=False)
    program.read()
    assert program.sent[qpn] == 0
    assert not program.failures()
