"""Keys and memory that are not what a program says: its QP ends, and nothing else."""

from __future__ import annotations

import errno

import pytest

from mrc_testbed.hosts.verbs import facts
from mrc_testbed.hosts.verbs.messages import FORMS, PostFlag, RecordKind, To
from tests.libmrc.raw_program import (
    FLUSHED,
    LOCAL_PROTECTION,
    REMOTE_ACCESS,
    REMOTE_OPERATION,
    RETRIES,
    Buffer,
    Joined,
    Refusal,
    greeted,
    settle,
)


def test_memory_that_is_none_is_not_registered(pair):
    program = greeted(pair)
    gone, kept = Buffer(8192), Buffer(8192)
    gone.unmap()
    for address, length in (
        (gone.address, 8192),
        (0, 1),
        (0, 1 << 63),
        ((1 << 64) - 1, 1),
        ((1 << 64) - 4096, 4096),
        ((1 << 64) - 1, (1 << 64) - 1),
        (1 << 63, 4096),
        ((1 << 63) - 1, 1),
        (kept.address, 1 << 60),
    ):
        with pytest.raises(Refusal) as refused:
            program.request(RecordKind.REG_MR, pd=1, address=address, length=length, access=3)
        assert refused.value.error == errno.EFAULT
    with pytest.raises(Refusal) as refused:
        program.register(kept, access=2)
    assert refused.value.error == errno.EINVAL
    assert program.request(RecordKind.REG_MR, pd=1, address=kept.address, length=0, access=3)
    key = program.register(kept)
    assert program.request(RecordKind.DEREG_MR, key=key) == 0
    for wrong in (key, 0, key ^ 1, 0xFFFF_FFFF):
        with pytest.raises(Refusal, match="no region"):
            program.request(RecordKind.DEREG_MR, key=wrong)


def test_keys_differ_and_are_never_nothing(mrc):
    program, buffer = greeted(mrc), Buffer(4096)
    keys = [program.register(buffer) for _ in range(500)]
    assert len({key >> 8 for key in keys}) == 500
    assert all(keys)


@pytest.mark.python_core
def test_too_many_regions(mrc, monkeypatch):
    monkeypatch.setattr(facts, "MOST_REGIONS", 10)
    program, buffer = greeted(mrc), Buffer(4096)
    keys = [program.register(buffer) for _ in range(10)]
    with pytest.raises(Refusal) as refused:
        program.register(buffer)
    assert refused.value.error == errno.ENOMEM
    program.request(RecordKind.DEREG_MR, key=keys[0])
    assert program.register(buffer)


@pytest.mark.parametrize("access", [0, 1])
def test_a_region_for_sending_only(pair, access):
    """Nobody may write to it; and it goes with its program as any other."""
    joined = Joined(pair)
    program, source = joined.programs[1], Buffer(4096)
    source.fill(b"out")
    key = program.register(source, access=access)
    program.post(joined.qpns[1], source, key, joined.targets[0].address, joined.rkeys[0], length=3)
    joined.wait_sent(1, source=1)
    assert joined.targets[0][0:3] == b"out"
    joined.programs[0].post(joined.qpns[0], joined.sources[0], joined.lkeys[0], source.address, key, length=3)
    assert joined.wait_failed()[0] == REMOTE_ACCESS
    for each in joined.programs:
        each.close()
    settle(pair)
    assert not pair.hosts[1].server._keys
    greeted(pair, 1)


def wrong_rkeys(joined, other):
    source, target = joined.targets[0], joined.targets[1]
    return {
        "none": (target.address, 0),
        "other bits": (target.address, joined.rkeys[1] ^ 1),
        "one's own": (source.address, joined.rkeys[0]),
        "of another PD": (target.address, joined.programs[1].register(joined.targets[1], pd=2)),
        "of another program": (other.targets[1].address, other.rkeys[1]),
        "of nothing there": (target.address + target.size - 2, joined.rkeys[1]),
        "before": (target.address - 1, joined.rkeys[1]),
        "the end of the world": ((1 << 64) - 2, joined.rkeys[1]),
        "the last byte of the world": ((1 << 64) - 1, joined.rkeys[1]),
    }


RKEYS = ["none", "other bits", "one's own", "of another PD", "of another program", "of nothing there", "before"]


@pytest.mark.parametrize("which", [*RKEYS, "the end of the world", "the last byte of the world"])
def test_wrong_remote_keys(pair, which):
    joined, other = Joined(pair), Joined(pair)
    to, rkey = wrong_rkeys(joined, other)[which]
    joined.programs[0].post(joined.qpns[0], joined.sources[0], joined.lkeys[0], to, rkey, length=3)
    assert joined.wait_failed()[0] == REMOTE_ACCESS
    assert joined.programs[0].sent[joined.qpns[0]] == 0
    pair.drive(within_ns=10**9, must=False)
    if not which.startswith("the "):
        joined.programs[1].read()
        assert joined.programs[1].asyncs == [(3, joined.qpns[1])], "IBV_EVENT_QP_ACCESS_ERR"
        assert joined.programs[1].failures()[0][:2] == (joined.qpns[1], FLUSHED)
        assert joined.programs[1].async_wakes() == 1
    other.write(b"others go on")
    other.wait_sent(1)
    assert joined.targets[1][0:65536] == bytes(65536)


@pytest.mark.parametrize("which", ["none", "of another PD", "of another program", "over the end", "before", "gone"])
def test_wrong_local_keys(pair, which):
    joined, other = Joined(pair), Joined(pair)
    program, source, lkey, at, length = joined.programs[0], joined.sources[0], joined.lkeys[0], 0, 10
    if which == "none":
        lkey = 0
    elif which == "of another PD":
        lkey = program.register(source, pd=2)
    elif which == "of another program":
        source, lkey = other.sources[0], other.lkeys[0]
    elif which == "over the end":
        at, length = source.size - 9, 10
    elif which == "before":
        at = -1
    else:
        program.request(RecordKind.DEREG_MR, key=lkey)
    program.post(joined.qpns[0], source, lkey, joined.targets[1].address, joined.rkeys[1], at=at, length=length)
    assert joined.wait_failed() == (LOCAL_PROTECTION, "memory of a posted write is not there")
    pair.drive(within_ns=10**8, must=False)
    assert pair.hosts[0].endpoint.counters()["data_sent"] == 0
    other.write(b"others go on")
    other.wait_sent(1)


def test_a_source_that_is_unmapped(pair):
    joined = Joined(pair)
    joined.sources[0].unmap()
    joined.programs[0].post(
        joined.qpns[0], joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1]
    )
    assert joined.wait_failed()[0] == LOCAL_PROTECTION
    assert joined.targets[1][0:65536] == bytes(65536)


def test_a_source_that_is_unmapped_in_the_middle(pair):
    joined = Joined(pair, size=1 << 20)
    joined.sources[0].fill(b"\xa5" * (1 << 20))
    joined.programs[0].post(
        joined.qpns[0], joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1]
    )
    pair.drive(lambda: joined.targets[1][4096:4097] == b"\xa5")
    joined.sources[0].unmap()
    assert joined.wait_failed()[0] == LOCAL_PROTECTION
    pair.drive(within_ns=10**9, must=False)
    there = joined.targets[1][0 : 1 << 20]
    assert 0 < there.count(0xA5) < 1 << 20
    assert set(there) == {0, 0xA5}


def test_a_target_that_is_unmapped(pair):
    joined = Joined(pair)
    joined.targets[1].unmap()
    joined.write(b"x" * 9000, immediate=1)
    assert joined.wait_failed()[0] == REMOTE_OPERATION
    joined.programs[1].wait(lambda: joined.programs[1].asyncs)
    assert joined.programs[1].asyncs == [(1, joined.qpns[1])], "IBV_EVENT_QP_FATAL"
    assert joined.received(1) == []


def test_a_target_that_is_deregistered_in_the_middle(pair):
    joined = Joined(pair, size=1 << 20)
    joined.sources[0].fill(b"\xa5" * (1 << 20))
    joined.programs[0].post(
        joined.qpns[0], joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1]
    )
    pair.drive(lambda: joined.targets[1][4096:4097] == b"\xa5")
    joined.programs[1].request(RecordKind.DEREG_MR, key=joined.rkeys[1])
    there = joined.targets[1][0 : 1 << 20]
    assert there.count(0), "it was in the middle"
    assert joined.wait_failed()[0] == REMOTE_ACCESS
    pair.drive(within_ns=10**9, must=False)
    assert joined.targets[1][0 : 1 << 20] == there, "nothing comes after the answer"


@pytest.mark.parametrize("address", [0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 63) - 4096])
def test_addresses_that_no_program_has(pair, address):
    """The key is not looked at for copied data, nor the address for none."""
    joined = Joined(pair)
    record = {"qpn": joined.qpns[0], "address": address, "remote_address": joined.targets[1].address}
    program = joined.programs[0]
    program.send(FORMS[RecordKind.POST_SEND].pack(**record, rkey=joined.rkeys[1]))
    joined.wait_sent(1)
    program.send(FORMS[RecordKind.POST_SEND].pack(**record, rkey=joined.rkeys[1], length=9000, flags=PostFlag.INLINE))
    assert joined.wait_failed()[0] == LOCAL_PROTECTION


def test_a_receive_that_is_not_posted(pair):
    joined = Joined(pair, receives=2)
    for number in range(5):
        joined.write(b"abc", at=3 * number, immediate=number)
    assert joined.wait_failed() == (REMOTE_OPERATION, "remote operation error")
    assert joined.programs[0].sent[joined.qpns[0]] == 2
    assert joined.received(1) == [(0, 3), (1, 3)]
    assert joined.programs[1].asyncs == [(1, joined.qpns[1])]


def test_a_qp_to_a_number_that_nobody_has(pair):
    joined = Joined(pair)
    program = joined.programs[0]
    qpn = program.create()
    program.receive_from(qpn, 1, 0xABCDEF)
    program.modify(qpn, To.RTS, given=2, linear=1, exp=1)
    program.post(qpn, joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1], length=5)
    program.wait(lambda: program.failed[qpn])
    assert program.failed[qpn] == [(RETRIES, "retries exceeded")]
    assert pair.now_ns > 60 * 10**9
    joined.write(b"x")
    joined.wait_sent(1)
