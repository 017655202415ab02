"""Greetings and records that no verbs library sends: the connection ends, and nothing else."""

from __future__ import annotations

import contextlib
import errno
import os

import pytest

from mrc_testbed.hosts.verbs import facts
from mrc_testbed.hosts.verbs.messages import FORMS, RECORD_BYTES, RecordKind
from tests.libmrc.raw_program import (
    LOCAL_PROTECTION,
    Buffer,
    Joined,
    RawProgram,
    Refusal,
    greeted,
    open_descriptors,
    settle,
)

REQUESTS = (
    RecordKind.REG_MR,
    RecordKind.DEREG_MR,
    RecordKind.CREATE_QP,
    RecordKind.DESTROY_QP,
    RecordKind.MODIFY_QP,
    RecordKind.QUERY_PORT,
    RecordKind.MODIFY_PORT,
    RecordKind.MODIFY_EV,
    RecordKind.QUERY_EVS,
    RecordKind.WATCH_EVS,
    RecordKind.PROBE,
)
POSTS = (RecordKind.POST_SEND, RecordKind.POST_RECV)
OF_DAEMONS = (
    RecordKind.REPLY,
    RecordKind.SENT,
    RecordKind.RECEIVED,
    RecordKind.QP_ERROR,
    RecordKind.ASYNC,
    RecordKind.EV_STATE,
    RecordKind.PROBED,
)


def ends(pair, program, reason=None):
    """Its connection is ended, one line says why, and another program is served."""
    program.wait(lambda: program.ended)
    refusals = [fields["reason"] for event, fields in pair.hosts[0].told if event == "program_refused"]
    if reason is None:
        assert refusals == []
    else:
        assert len(refusals) == 1
        assert reason in refusals[0]
    other = greeted(pair)
    assert other.request(RecordKind.QUERY_PORT, port=1) == 1
    other.close()
    settle(pair)
    assert not pair.hosts[0].server._served


# --- the greeting ---


@pytest.mark.parametrize("kind", [*REQUESTS, *POSTS, *OF_DAEMONS], ids=lambda kind: kind.name)
def test_no_record_comes_before_the_greeting(mrc, kind):
    program = RawProgram(mrc.hosts[0].path, mrc.drive)
    program.send(FORMS[kind].pack(), descriptors=[program.memory, program.events])
    ends(mrc, program, "the first record is no HELLO")


@pytest.mark.parametrize("size", [1, 4, 127, 129, 256, 2048, 5000])
def test_a_greeting_of_another_size(mrc, size):
    program = RawProgram(mrc.hosts[0].path, mrc.drive)
    program.send(program.hello_record().ljust(size, b"\0")[:size], descriptors=[program.memory, program.events])
    ends(mrc, program, "a first datagram of")


@pytest.mark.parametrize("version", [0, 2, 0xFFFF_FFFF])
def test_a_greeting_of_another_version_is_told_so(mrc, version):
    program = RawProgram(mrc.hosts[0].path, mrc.drive)
    program.send(program.hello_record(version), descriptors=[program.memory, program.events])
    program.wait(lambda: program.ended)
    assert program.replies[77]["error"] == errno.EPROTO
    assert b"version" in program.replies[77]["text"]
    ends(mrc, program, "version")


def descriptors_of(which, folder):
    file = os.open(folder / "mem", os.O_RDWR | os.O_CREAT)
    memory, event = os.open("/proc/self/mem", os.O_RDWR), os.eventfd(0)
    reading, writing = os.pipe()
    given = {
        "none": [],
        "memory alone": [memory],
        "three": [memory, event, file],
        "seven": [memory, event, file, file, file, file, file],
        "the other way round": [event, memory],
        "twice the memory": [memory, memory],
        "a pipe": [memory, writing],
        "the wrong end of a pipe": [memory, reading],
        "a file for events": [memory, file],
        "no memory": [reading, event],
    }[which]
    return given, [file, memory, event, reading, writing]


@pytest.mark.parametrize(
    "which",
    [
        *("none", "memory alone", "three", "seven", "the other way round", "twice the memory"),
        *("a pipe", "the wrong end of a pipe", "a file for events", "no memory"),
    ],
)
def test_a_greeting_with_other_descriptors(mrc, which, tmp_path):
    open_before = open_descriptors()
    program = RawProgram(mrc.hosts[0].path, mrc.drive)
    given, own = descriptors_of(which, tmp_path)
    program.send(program.hello_record(), descriptors=given)
    ends(mrc, program, "descriptor")
    program.close()
    for descriptor in own:
        os.close(descriptor)
    assert open_descriptors() == open_before, "the daemon has closed what it was given"


def test_memory_that_is_no_memory_or_cannot_be_written(pair, tmp_path):
    """A file of that name is one; and one that was opened for reading only."""
    for path, flags in ((tmp_path / "mem", os.O_RDWR | os.O_CREAT), ("/proc/self/mem", os.O_RDONLY)):
        joined = Joined(pair)
        program, buffer = RawProgram(pair.hosts[1].path, pair.drive), Buffer(4096)
        program.memory = os.open(path, flags)
        program.hello()
        qpn = program.create()
        program.receive_from(qpn, 0, joined.qpns[0])
        with contextlib.suppress(Refusal):
            program.register(buffer)
        joined.write(b"x")
        joined.wait_sent(1)
        for each in (*joined.programs, program):
            each.close()
        settle(pair)


def test_a_second_greeting(mrc):
    program = greeted(mrc)
    program.send(program.hello_record(), descriptors=[program.memory, program.events])
    ends(mrc, program, "HELLO from a program")


def test_descriptors_that_come_later_are_not_kept(mrc):
    program = greeted(mrc)
    before = open_descriptors()
    program.send(FORMS[RecordKind.QUERY_PORT].pack(port=1, token=5), descriptors=[program.memory, program.events])
    program.wait(lambda: 5 in program.replies)
    assert open_descriptors() == before


def test_more_programs_than_a_host_serves(mrc):
    programs = [greeted(mrc) for _ in range(facts.MOST_PROGRAMS)]
    late = RawProgram(mrc.hosts[0].path, mrc.drive)
    late.wait(lambda: late.ended)
    programs[3].close()
    settle(mrc)
    assert greeted(mrc).request(RecordKind.QUERY_PORT, port=2) == 1
    assert programs[4].request(RecordKind.QUERY_PORT, port=2) == 1


# --- records ---


@pytest.mark.parametrize("kind", OF_DAEMONS, ids=lambda kind: kind.name)
def test_what_only_daemons_say(mrc, kind):
    program = greeted(mrc)
    program.send(FORMS[kind].pack())
    ends(mrc, program, f"{kind.name} from a program")


@pytest.mark.parametrize("kind", [0, 15, 63, 71, 0xFFFF_FFFF])
def test_a_kind_that_there_is_not(mrc, kind):
    program = greeted(mrc)
    program.send(kind.to_bytes(4, "little").ljust(RECORD_BYTES, b"\0"))
    ends(mrc, program, str(kind))


@pytest.mark.parametrize("size", [1, 64, 127, 129, 255, 17 * 128, 5000])
def test_a_datagram_that_is_no_row_of_records(mrc, size):
    program = greeted(mrc)
    program.send(FORMS[RecordKind.QUERY_PORT].pack(port=1, token=1).ljust(size, b"\0")[:size])
    ends(mrc, program, f"a datagram of {min(size, 16 * 128 + 1)} bytes")


def test_what_comes_before_a_wrong_record_is_done(mrc):
    joined = Joined(mrc)
    program = joined.programs[0]
    joined.sources[0].fill(b"before")
    good = program.post_record(
        joined.qpns[0], joined.sources[0], joined.lkeys[0], joined.targets[1].address, joined.rkeys[1], 0, 6
    )
    program.send(good, FORMS[RecordKind.REPLY].pack())
    program.wait(lambda: program.ended)
    mrc.drive(within_ns=10**9, must=False)
    assert joined.targets[1][0:6] in (b"before", bytes(6)), "its program has ended: sent whole, or not at all"


def test_the_longest_write_is_as_long_as_it_may_be(mrc):
    joined = Joined(mrc)
    joined.programs[0].post(joined.qpns[0], joined.sources[0], joined.lkeys[0], 0, 0, length=(1 << 30) + 1)
    joined.programs[0].wait(lambda: joined.programs[0].ended)
    ((event, fields),) = mrc.hosts[0].told
    assert event == "program_refused"
    assert "1,073,741,825 bytes" in fields["reason"]


def test_a_write_of_the_greatest_length(pair):
    """No machine has that much memory, and the request is checked all the same."""
    joined = Joined(pair)
    joined.programs[0].post(joined.qpns[0], joined.sources[0], joined.lkeys[0], 0, 0, length=1 << 30)
    assert joined.wait_failed()[0] == LOCAL_PROTECTION


def test_more_writes_than_a_qp_may_have(mrc):
    joined = Joined(mrc)
    mrc.silent = True
    program = joined.programs[0]
    record = program.post_record(joined.qpns[0], joined.sources[0], joined.lkeys[0], joined.targets[1].address, 0, 0, 1)
    for _ in range(64):
        program.send(*[record] * 16)
        settle(mrc)
    assert not program.ended
    assert mrc.hosts[0].server.counters()["verbs_writes"] == 1024
    program.send(record)
    program.wait(lambda: program.ended)
    assert "1024 outstanding" in mrc.hosts[0].told[0][1]["reason"]


@pytest.mark.parametrize("counts", [(1025,), (1000, 25), (1 << 31,), (0xFFFF_FFFF,)])
def test_more_receives_than_a_qp_may_have(mrc, counts):
    joined = Joined(mrc, receives=0)
    program = joined.programs[0]
    for count in counts:
        program.post_receives(joined.qpns[0], count)
    program.wait(lambda: program.ended)
    assert "receives outstanding on a QP" in mrc.hosts[0].told[0][1]["reason"]
