"""Garbage from programs: their daemon survives, and others notice nothing."""

from __future__ import annotations

import contextlib
import random

import pytest

from mrc_testbed.hosts.verbs.messages import FORMS, RecordKind, To
from tests.libmrc.raw_program import Buffer, Joined, RawProgram, gid, open_descriptors, settle


def corpus(joined):
    """Records that are right, of a program that has a QP and a region."""
    program, qpn = joined.programs[0], joined.qpns[0]
    own = Buffer(65536)
    rtr = {"qpn": qpn, "state": To.RTR, "dgid": gid(1), "path_mtu": 4096, "dest_qpn": joined.qpns[1]}
    return [
        FORMS[RecordKind.REG_MR].pack(pd=1, token=1, address=own.address, length=own.size, access=1),
        FORMS[RecordKind.DEREG_MR].pack(key=joined.lkeys[0], token=2),
        FORMS[RecordKind.CREATE_QP].pack(pd=1, token=3, max_send_wr=5, max_recv_wr=5),
        FORMS[RecordKind.DESTROY_QP].pack(qpn=qpn, token=4),
        *(FORMS[RecordKind.MODIFY_QP].pack(**rtr | {"state": state}, token=5) for state in To),
        program.post_record(qpn, joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1]),
        FORMS[RecordKind.POST_RECV].pack(qpn=qpn, count=3),
        FORMS[RecordKind.QUERY_PORT].pack(port=1, token=6),
        FORMS[RecordKind.QUERY_EVS].pack(token=7),
        FORMS[RecordKind.WATCH_EVS].pack(on=1, token=8),
        FORMS[RecordKind.PROBE].pack(ev=0x101, dgid=gid(1), token=9),
    ]


def mutated(draw, record):
    bad = bytearray(record)
    for _ in range(draw.randrange(4)):
        at = draw.choice([draw.randrange(4, 80), draw.randrange(4, 24)])
        bad[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    if draw.random() < 0.05:
        bad[0] = draw.choice([kind for kind in range(80) if kind not in (RecordKind.MODIFY_PORT, RecordKind.MODIFY_EV)])
    return bytes(bad)


def attack(pair, seed, rounds):
    """Programs that send garbage; those on their side go on, and so does one on each host who sends none."""
    draw = random.Random(seed)
    witness = Joined(pair, receives=0)
    for round_ in range(rounds):
        attacker = Joined(pair)
        records = corpus(attacker)
        program = attacker.programs[0]
        for _ in range(draw.randrange(1, 30)):
            if draw.random() < 0.1:
                datagram = draw.randbytes(draw.choice([1, 5, 128, 256, 2048, 3000]))
            else:
                datagram = b"".join(mutated(draw, draw.choice(records)) for _ in range(draw.randrange(1, 17)))
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                program.send(datagram)
            settle(pair)
            program.read()
        for each in attacker.programs:
            each.close()
        witness.write(bytes([round_ % 255 + 1]) * 100, at=round_ % 600 * 100)
        witness.wait_sent(round_ + 1)
    pair.drive(within_ns=3 * 10**9, must=False)
    rows = min(rounds, 600)
    wanted = b"".join(bytes([round_ % 255 + 1]) * 100 for round_ in range(rows))
    if rounds <= 600:
        assert witness.targets[1][0 : rows * 100] == wanted
    for host in pair.hosts:
        assert len(host.server._served) == 1
        assert len(host.endpoint._qps) == 1
        assert len(host.server._keys) == 2


def test_garbage_ends_nothing_but_its_own_connection(pair):
    attack(pair, 1, 40)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 12))
def test_much_garbage(pair, seed):
    attack(pair, seed, 400)


def test_random_first_datagrams(mrc):
    draw, before = random.Random(7), 0
    for number in range(300):
        program = RawProgram(mrc.hosts[0].path, mrc.drive)
        good = bytearray(program.hello_record())
        if draw.random() < 0.7:
            for _ in range(draw.randrange(4)):
                good[draw.randrange(64)] = draw.randrange(256)
        else:
            good = bytearray(draw.randbytes(draw.randrange(1, 400)))
        given = draw.choice([None, [program.memory], [program.memory, program.events], [program.events] * 2])
        program.send(bytes(good), descriptors=given)
        settle(mrc)
        program.close()
        settle(mrc)
        if number % 50 == 0:
            before = before if number else open_descriptors()
            assert open_descriptors() == before
    assert not mrc.hosts[0].server._served
