"""A host's daemon and programs that do what they should: writes, receives, QPs from one state to the next, deaths."""

from __future__ import annotations

import contextlib
import errno

import pytest

from mrc_testbed.hosts.verbs.messages import FORMS, Given, RecordKind, To
from tests.libmrc.raw_program import Buffer, Joined, RawProgram, Refusal, driven, gid, greeted


def test_what_a_host_says_of_itself(pair):
    told = RawProgram(pair.hosts[1].path, pair.drive).hello()
    assert (told["host"], told["gid"], told["name"].rstrip(b"\0")) == (1, gid(1), b"h1")
    assert (told["planes"], told["port_mask"], told["payload_bytes"], told["rtt_ns"]) == (2, 0b11, 4096, 2_000_000)
    assert (told["max_qp"], told["max_qp_wr"], told["max_mr"]) == (1024, 1024, 65536)


def test_writes_arrive_and_are_complete(pair):
    joined = Joined(pair)
    data = bytes(range(256)) * 200
    joined.write(data, at=3)
    joined.write(b"second", at=60_000, immediate=0xDEAD_BEEF)
    joined.wait_sent(2)
    assert joined.targets[1][3 : 3 + len(data)] == data
    assert joined.targets[1][60_000:60_006] == b"second"
    assert joined.received(1) == [(0xDEAD_BEEF, 6)]
    assert not any(program.failures() or program.asyncs for program in joined.programs)


def test_both_directions_with_loss(tmp_path):
    with driven(tmp_path, loss=0.03, seed=5) as pair:
        write_both_ways(Joined(pair))


def write_both_ways(joined):
    for number in range(20):
        for source in (0, 1):
            joined.write(bytes([number + 100 * source]) * 3000, at=3000 * number, source=source, immediate=number)
    for source in (0, 1):
        joined.wait_sent(20, source)
        wanted = b"".join(bytes([number + 100 * source]) * 3000 for number in range(20))
        assert joined.targets[1 - source][0:60_000] == wanted
        assert joined.received(1 - source) == [(number, 3000) for number in range(20)]


def test_writes_of_nothing_and_the_longest(pair):
    joined = Joined(pair)
    joined.write(b"")
    joined.programs[0].post(
        joined.qpns[0], joined.sources[0], 0, 0, 0, length=0, at=(1 << 64) - 1 - joined.sources[0].address
    )
    joined.programs[0].post(joined.qpns[0], joined.sources[0], 0, 0, 0, length=0, immediate=9)
    joined.wait_sent(3)
    assert joined.received(1) == [(9, 0)]


def test_data_that_the_library_copied_need_no_key(pair):
    joined = Joined(pair)
    other = Buffer(4096)
    other.fill(b"inline")
    joined.programs[0].post(joined.qpns[0], other, 0, joined.targets[1].address, joined.rkeys[1], length=6, flags=2)
    joined.wait_sent(1)
    assert joined.targets[1][0:6] == b"inline"


def test_sixteen_posts_in_a_datagram(pair):
    joined = Joined(pair)
    program, target = joined.programs[0], joined.targets[1].address
    joined.sources[0].fill(bytes(range(160)))
    records = [
        program.post_record(
            joined.qpns[0], joined.sources[0], joined.lkeys[0], target + 10 * n, joined.rkeys[1], 10 * n, 10
        )
        for n in range(16)
    ]
    program.send(*records)
    joined.wait_sent(16)
    assert joined.targets[1][0:160] == bytes(range(160))


def test_a_program_that_receives_only_stays_in_rtr(pair):
    first, second = greeted(pair, 0), greeted(pair, 1)
    source, target = Buffer(4096), Buffer(4096)
    qpns = first.create(), second.create()
    second.receive_from(qpns[1], 0, qpns[0], rq_psn=5)
    first.receive_from(qpns[0], 1, qpns[1])
    first.modify(qpns[0], To.RTS, sq_psn=5)
    source.fill(b"abc")
    lkey, rkey = first.register(source), second.register(target)
    first.post(qpns[0], source, lkey, target.address, rkey)
    first.wait(lambda: first.sent[qpns[0]])
    assert target[0:3] == b"abc"


def test_a_start_race_is_no_fault_of_anybody(pair):
    first, second = greeted(pair, 0), greeted(pair, 1)
    source, target = Buffer(4096), Buffer(4096)
    qpns = first.create(), second.create()
    second.modify(qpns[1], To.INIT)
    second.post_receives(qpns[1], 3)
    first.receive_from(qpns[0], 1, qpns[1])
    first.modify(qpns[0], To.RTS)
    lkey, rkey = first.register(source), second.register(target)
    source.fill(b"early")
    for number in range(3):
        first.post(qpns[0], source, lkey, target.address, rkey, immediate=number)
    pair.drive(within_ns=2_500_000_000, must=False)
    second.modify(qpns[1], To.RTR, dest_qpn=qpns[0], dgid=gid(0), path_mtu=1024)
    first.wait(lambda: first.sent[qpns[0]] == 3 or first.failures())
    assert not first.failures()
    second.read()
    assert second.received[qpns[1]] == [(number, 4096) for number in range(3)]
    assert not pair.hosts[0].events, "no EV is blamed"


# --- states ---


def test_states_and_what_they_need(pair):
    program = greeted(pair)
    qpn = program.create()
    wrong = [
        (To.RTR, {}),
        (To.RTS, {}),
    ]
    for state, fields in wrong:
        with pytest.raises(Refusal) as refused:
            program.modify(qpn, state, dgid=gid(1), path_mtu=4096, **fields)
        assert refused.value.error == errno.EINVAL
    program.modify(qpn, To.INIT)
    program.modify(qpn, To.INIT)
    for fields, said in (
        ({"dgid": bytes(16)}, "no host of this fabric has the GID"),
        ({"dgid": gid(7)}, "no host of this fabric has the GID"),
        ({"dgid": gid(0)}, "cannot lead to h0 itself"),
        ({"dgid": gid(1), "path_mtu": 1500}, "path MTU"),
        ({"dgid": gid(1), "path_mtu": 0}, "path MTU"),
        ({"dgid": gid(1), "dest_qpn": 1 << 24}, "24 bits"),
    ):
        with pytest.raises(Refusal, match=said) as refused:
            program.modify(qpn, To.RTR, **{"path_mtu": 4096} | fields)
        assert refused.value.error == errno.EINVAL
    program.modify(qpn, To.RTR, dgid=gid(1), path_mtu=4096, dest_qpn=9)
    with pytest.raises(Refusal):
        program.modify(qpn, To.INIT)
    program.modify(qpn, To.RTS)
    program.modify(qpn, To.RTS)
    for unknown in (4, 5, 7, 0xFFFF_FFFF):
        with pytest.raises(Refusal, match="no state"):
            program.modify(qpn, unknown)  # type: ignore[arg-type]
    with pytest.raises(Refusal):
        program.modify(qpn, To.RTR, dgid=gid(1), path_mtu=4096)
    program.modify(qpn, To.ERROR)
    program.modify(qpn, To.ERROR)
    program.modify(qpn, To.RESET)
    program.modify(qpn, To.ERROR)
    program.modify(qpn, To.RESET)
    program.request(RecordKind.DESTROY_QP, qpn=qpn)
    for kind in (RecordKind.DESTROY_QP, RecordKind.MODIFY_QP):
        with pytest.raises(Refusal, match="has no QP"):
            program.request(kind, qpn=qpn)
    assert not program.ended


def test_attributes_may_be_said_again_in_rtr(pair):
    """The library tells MRC's own attributes of a QP by its present state."""
    joined = Joined(pair)
    program = greeted(pair)
    qpn = program.create()
    program.receive_from(qpn, 1, 99)
    program.modify(qpn, To.RTR, dgid=gid(1), path_mtu=4096, dest_qpn=99, given=Given.MAX_WIMM, max_wimm=2)
    program.modify(qpn, To.RTS)
    joined.write(b"x")
    joined.wait_sent(1)


def test_a_qp_is_put_in_error_and_used_again(pair):
    joined = Joined(pair)
    joined.write(b"one")
    joined.wait_sent(1)
    for program, qpn in zip(joined.programs, joined.qpns, strict=True):
        program.modify(qpn, To.ERROR)
        program.wait(lambda program=program, qpn=qpn: program.failed[qpn])  # type: ignore[misc]
        assert program.failed[qpn] == [(5, "its program put it in ERROR")]
        program.post(qpn, joined.sources[0], 0, 0, 0)  # what crosses with the news
        program.modify(qpn, To.RESET)
        program.failed.clear()
    for mine in (0, 1):
        program, qpn = joined.programs[mine], joined.qpns[mine]
        program.receive_from(qpn, 1 - mine, joined.qpns[1 - mine], rq_psn=70_000)
        program.modify(qpn, To.RTS, sq_psn=70_000)
    joined.write(b"two", at=5)
    joined.wait_sent(2)
    assert joined.targets[1][5:8] == b"two"


@pytest.mark.parametrize("state", [To.RESET, To.INIT, To.RTR])
def test_posts_in_states_that_take_none_are_nothing(pair, state):
    """A thread of a program may post while another resets the QP."""
    program = greeted(pair)
    qpn, buffer = program.create(), Buffer(4096)
    lkey = program.register(buffer)
    if state is not To.RESET:
        program.modify(qpn, To.INIT)
    if state is To.RTR:
        program.modify(qpn, To.RTR, dgid=gid(1), path_mtu=4096, dest_qpn=9)
    for key in (lkey, 0):
        for _ in range(1100):
            with contextlib.suppress(BlockingIOError):
                program.post(qpn, buffer, key, 0, 0)
            pair.drive(lambda: not pair.has_records())
    program.request(RecordKind.QUERY_PORT, port=1)
    assert not program.failures()
    assert not program.ended


def test_receives_of_before_a_reset_are_gone(pair):
    joined = Joined(pair, receives=0)
    program, qpn = joined.programs[1], joined.qpns[1]
    program.modify(qpn, To.RESET)
    program.modify(qpn, To.INIT)
    program.post_receives(qpn, 7)
    program.modify(qpn, To.RESET)
    program.receive_from(qpn, 0, joined.qpns[0], rq_psn=100)
    joined.write(b"x", immediate=1)
    assert joined.wait_failed()[0] == 11
    assert program.received[qpn] == []


def test_a_thousand_and_twenty_four_qps_and_no_more(pair):
    first, second = greeted(pair), greeted(pair)
    tokens = [first.ask(RecordKind.CREATE_QP, pd=1) for _ in range(3)]
    qpns = [first.answer(token) for token in tokens]
    while len(qpns) < 1024:
        qpns.append((first if len(qpns) % 2 else second).create())
    assert len(set(qpns)) == 1024
    for program in (first, second):
        with pytest.raises(Refusal, match="1,024 QPs") as refused:
            program.create()
        assert refused.value.error == errno.ENOMEM
    second.close()
    pair.drive(lambda: len(pair.hosts[0].server.by_number) < 1024)
    assert first.create() not in qpns


def test_a_thousand_connected_qps(pair):
    program, buffer = greeted(pair), Buffer(4096)
    lkey = program.register(buffer)
    qpns = [program.create() for _ in range(1000)]
    for qpn in qpns:
        program.receive_from(qpn, 1, 0x555)
        program.modify(qpn, To.RTS)
    for qpn in qpns[::100]:
        program.post(qpn, buffer, lkey, 0, 0, length=10)
    pair.drive(within_ns=50_000_000, must=False)
    program.close()
    pair.drive(lambda: not pair.hosts[0].server.by_number)
    assert len(pair.hosts[0].names.names) == 1000, "they linger"
    pair.drive(within_ns=2_100_000_000, must=False)
    assert not pair.hosts[0].names.names
    assert not pair.hosts[0].endpoint._qps


@pytest.mark.parametrize(("sends", "receives"), [(1025, 1), (1, 1025), (1 << 31, 0)])
def test_too_much_work_for_a_qp(pair, sends, receives):
    program = greeted(pair)
    with pytest.raises(Refusal) as refused:
        program.request(RecordKind.CREATE_QP, pd=1, max_send_wr=sends, max_recv_wr=receives)
    assert refused.value.error == errno.EINVAL


# --- two programs on one host ---


def test_two_programs_on_one_host_do_not_mix(pair):
    one, two = Joined(pair), Joined(pair)
    one.write(b"one" * 1000)
    two.write(b"two" * 1000)
    one.wait_sent(1)
    two.wait_sent(1)
    assert one.targets[1][0:3000] == b"one" * 1000
    assert two.targets[1][0:3000] == b"two" * 1000
    assert len({*one.rkeys, *one.lkeys}) == len({*two.rkeys, *two.lkeys}) == 4 or one.rkeys[0] != two.rkeys[0]
    with pytest.raises(Refusal, match="has no QP"):
        one.programs[0].modify(two.qpns[0], To.ERROR)
    with pytest.raises(Refusal, match="no region"):
        one.programs[0].request(RecordKind.DEREG_MR, key=two.rkeys[0])
    one.programs[0].post(two.qpns[0], one.sources[0], one.lkeys[0], 0, 0)
    one.programs[0].post_receives(two.qpns[0], 5)
    one.programs[0].request(RecordKind.QUERY_PORT, port=1)
    assert not one.programs[0].failures()


def test_the_end_of_one_leaves_the_other(pair):
    one, two = Joined(pair), Joined(pair)
    for program in one.programs:
        program.close()
    for number in range(10):
        two.write(b"still" * 100, at=number * 500, immediate=number)
    two.wait_sent(10)
    assert two.targets[1][0:5000] == b"still" * 1000


# --- counters, closing ---


def test_what_a_host_counts(pair):
    joined = Joined(pair)
    for number in range(4):
        joined.write(b"x" * 100, immediate=number)
    joined.wait_sent(4)
    wanted = {"verbs_programs": 1, "verbs_writes": 4, "verbs_writes_done": 4, "verbs_received": 0, "verbs_in_bytes": 0}
    assert pair.hosts[0].server.counters() == wanted
    other = {"verbs_programs": 1, "verbs_writes": 0, "verbs_writes_done": 0, "verbs_received": 4, "verbs_in_bytes": 400}
    assert pair.hosts[1].server.counters() == other
    for program in joined.programs:
        program.close()
    pair.drive(lambda: not any(host.server.by_number for host in pair.hosts))
    assert [host.server.counters() for host in pair.hosts] == [wanted, other]


def test_a_closed_server_goes_on_to_let_its_qps_linger(pair):
    joined = Joined(pair)
    joined.write(b"x")
    joined.wait_sent(1)
    pair.hosts[0].server.close(pair.now_ns)
    assert pair.hosts[0].names.names
    pair.drive(within_ns=2_100_000_000, must=False)
    assert not pair.hosts[0].names.names
    joined.programs[0].read()
    assert joined.programs[0].ended
    with pytest.raises(OSError, match="refused"):
        RawProgram(pair.hosts[0].path, pair.drive)
    joined.write(b"y", source=1)
    assert joined.wait_failed(1)[0] == 12
    pair.hosts[0].server.close(pair.now_ns)


def test_names_of_qps_are_those_of_their_programs(pair):
    program = RawProgram(pair.hosts[0].path, pair.drive)
    program.send(
        program.hello_record(name=b"a name of thirty-two characters!"), descriptors=[program.memory, program.events]
    )
    program.wait(lambda: 77 in program.replies)
    qpn = program.create()
    program.receive_from(qpn, 1, 9)
    (name,) = pair.hosts[0].names.by_name
    assert name.startswith("a name of thirty-two characters![")
    assert name.endswith(f":{qpn}")
    assert FORMS[RecordKind.HELLO].names[-1] == "name"
