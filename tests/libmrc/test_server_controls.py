"""What a controller asks of a host's daemon: ports, EVs and their states, probes; and what all programs hear of it."""

from __future__ import annotations

import errno

import pytest

from mrc_testbed.hosts.verbs.messages import RecordKind, To
from tests.libmrc.pair import PLANES, RTT_NS, UPLINKS
from tests.libmrc.raw_program import RETRIES, Joined, Refusal, driven, gid, greeted

EVS = [plane << 8 | uplink for plane in range(PLANES) for uplink in range(UPLINKS)]
EVERYBODY = bytes(16)
GOOD, ASSUMED_BAD, DENIED = 1, 2, 4
PORT_ACTIVE, PORT_ERR = 9, 10
SECOND = 10**9


def states(program, dgid=EVERYBODY):
    """Of all EVs, asked for now."""
    program.evs.clear()
    count = program.request(RecordKind.QUERY_EVS, dgid=dgid)
    assert len(program.evs) == count
    assert all(each["dgid"] == gid(1) and each["port"] == (each["ev"] >> 8) + 1 for each in program.evs)
    return {each["ev"]: each["state"] for each in program.evs}


def test_ports_that_there_are_and_are_not(pair):
    program = greeted(pair)
    assert [program.request(RecordKind.QUERY_PORT, port=port) for port in (1, 2)] == [1, 1]
    for port in (0, 3, 0xFFFF_FFFF):
        for kind in (RecordKind.QUERY_PORT, RecordKind.MODIFY_PORT):
            with pytest.raises(Refusal, match="ports 1 to 2") as refused:
                program.request(kind, port=port)
            assert refused.value.error == errno.EINVAL


def test_a_port_is_switched_off_and_on(mrc):
    joined, other = Joined(mrc), greeted(mrc)
    program = joined.programs[0]
    assert program.request(RecordKind.MODIFY_PORT, port=2, enabled=0) == 2
    assert program.request(RecordKind.MODIFY_PORT, port=2, enabled=0) == 2, "twice is once"
    assert [other.request(RecordKind.QUERY_PORT, port=port) for port in (1, 2)] == [1, 2]
    assert greeted(mrc).hello_told["port_mask"] == 0b01
    before = mrc.hosts[0].endpoint.path_packets(1)
    for number in range(10):
        joined.write(b"x" * 5000, at=5000 * number)
    joined.wait_sent(10)
    after = mrc.hosts[0].endpoint.path_packets(1)
    assert all(after[path] == before[path] for path in after if path[0] == 1), "nothing goes by the port"
    assert program.request(RecordKind.MODIFY_PORT, port=2, enabled=1) == 1
    mrc.drive(within_ns=SECOND, must=False)
    for each in (program, other):
        each.read()
        assert each.asyncs == [(PORT_ERR, 2), (PORT_ACTIVE, 2)]
        assert each.async_wakes() == 2
    joined.programs[1].read()
    assert joined.programs[1].asyncs == [], "the ports of another host are its own"


def test_a_disabled_port_outlives_its_controller(mrc):
    program = greeted(mrc)
    program.request(RecordKind.MODIFY_PORT, port=1, enabled=0)
    program.close()
    assert greeted(mrc).request(RecordKind.QUERY_PORT, port=1) == 2


def test_all_ports_switched_off(mrc):
    joined = Joined(mrc)
    for port in (1, 2):
        joined.programs[0].request(RecordKind.MODIFY_PORT, port=port, enabled=0)
    joined.programs[0].wait(lambda: joined.programs[0].failures())
    assert joined.programs[0].failures() == [(joined.qpns[0], RETRIES, "all ports down")]
    assert (1, joined.qpns[0]) in joined.programs[0].asyncs, "no write tells of it"
    late = joined.programs[0].create()
    joined.programs[0].receive_from(late, 1, 99)
    joined.programs[0].wait(lambda: joined.programs[0].failed[late])


def test_evs_denied_and_allowed(mrc):
    program = greeted(mrc)
    assert states(program) == states(program, gid(1)) == dict.fromkeys(EVS, GOOD)
    assert program.request(RecordKind.MODIFY_EV, ev=0x101, dgid=gid(1), denied=1) == 0
    assert states(program)[0x101] == DENIED
    joined = Joined(mrc)
    for number in range(10):
        joined.write(b"x" * 5000, at=5000 * number)
    joined.wait_sent(10)
    assert mrc.hosts[0].endpoint.path_packets(1)[1, 1] == 0
    program.request(RecordKind.MODIFY_EV, ev=0x101, dgid=EVERYBODY, denied=0)
    assert states(program)[0x101] == ASSUMED_BAD, "it has to prove itself"
    mrc.drive(lambda: states(program)[0x101] == GOOD)


@pytest.mark.parametrize(
    ("kind", "fields", "error"),
    [
        (RecordKind.MODIFY_EV, {"ev": 0x201, "dgid": gid(1)}, errno.ENOENT),
        (RecordKind.MODIFY_EV, {"ev": 0x002, "dgid": EVERYBODY}, errno.ENOENT),
        (RecordKind.MODIFY_EV, {"ev": 0xFFFF_FFFF, "dgid": gid(1), "denied": 1}, errno.ENOENT),
        (RecordKind.MODIFY_EV, {"ev": 0, "dgid": gid(0)}, errno.EINVAL),
        (RecordKind.MODIFY_EV, {"ev": 0, "dgid": gid(9)}, errno.EINVAL),
        (RecordKind.QUERY_EVS, {"dgid": gid(0)}, errno.EINVAL),
        (RecordKind.QUERY_EVS, {"dgid": b"x" * 16}, errno.EINVAL),
        (RecordKind.PROBE, {"ev": 0x300, "dgid": gid(1)}, errno.ENOENT),
        (RecordKind.PROBE, {"ev": 0, "dgid": gid(0)}, errno.EINVAL),
        (RecordKind.PROBE, {"ev": 0, "dgid": gid(5)}, errno.EINVAL),
    ],
)
def test_what_there_is_not(mrc, kind, fields, error):
    program = greeted(mrc)
    with pytest.raises(Refusal) as refused:
        program.request(kind, **fields)
    assert refused.value.error == error
    assert states(program) == dict.fromkeys(EVS, GOOD)


def test_who_watches_hears_of_changes(mrc):
    watching, once, never = greeted(mrc), greeted(mrc), greeted(mrc)
    for program in (watching, watching, once):
        program.request(RecordKind.WATCH_EVS, on=1)
    watching.request(RecordKind.MODIFY_EV, ev=0x001, dgid=EVERYBODY, denied=1)
    once.request(RecordKind.WATCH_EVS, on=0)
    watching.request(RecordKind.MODIFY_EV, ev=0x001, dgid=EVERYBODY, denied=0)
    mrc.drive(lambda: watching.read() or len(watching.evs) >= 3)
    for program in (watching, once, never):
        program.read()
    assert [(each["ev"], each["state"]) for each in watching.evs] == [(1, DENIED), (1, ASSUMED_BAD), (1, GOOD)]
    assert [each["state"] for each in once.evs] == [DENIED]
    assert never.evs == []
    watching.close()
    never.request(RecordKind.MODIFY_EV, ev=0x001, dgid=gid(1), denied=1)
    assert never.request(RecordKind.QUERY_PORT, port=1) == 1


def test_a_dead_path_is_told_to_who_watches(mrc):
    joined, program = Joined(mrc), greeted(mrc)
    program.request(RecordKind.WATCH_EVS, on=1)
    mrc.dead = {(1, 0)}
    for number in range(10):
        joined.write(b"x" * 5000, at=5000 * number)
    joined.wait_sent(10)
    mrc.drive(lambda: program.read() or program.evs)
    assert {(each["ev"], each["state"]) for each in program.evs} == {(0x100, ASSUMED_BAD)}


def test_probes(mrc):
    program, other = greeted(mrc), greeted(mrc)
    mrc.dead = {(0, 1)}
    tokens = {program.ask(RecordKind.PROBE, ev=ev, dgid=gid(1)): ev for ev in EVS}
    mrc.drive(lambda: program.read() or len(program.probed) == 3)
    mrc.drive(within_ns=SECOND, must=False)
    program.read()
    assert len(program.probed) == 3
    for each in program.probed:
        assert tokens[each["token"]] == each["ev"] != 0x001
        assert each["port"] == (each["ev"] >> 8) + 1
        assert RTT_NS <= each["rtt_ns"] < 2 * RTT_NS
    assert program.replies == {}, "an answer is no reply"
    other.read()
    assert other.probed == []


def test_a_probe_whose_asker_has_gone(mrc):
    program = greeted(mrc)
    program.ask(RecordKind.PROBE, ev=0, dgid=gid(1))
    mrc.drive(lambda: not mrc.has_records())
    program.close()
    mrc.drive(within_ns=SECOND, must=False)
    assert greeted(mrc).request(RecordKind.QUERY_PORT, port=1) == 1


def test_a_transport_without_evs(tmp_path):
    with driven(tmp_path, roce=True) as pair:
        without_evs(greeted(pair))


def without_evs(program):
    for kind, fields in (
        (RecordKind.QUERY_EVS, {}),
        (RecordKind.MODIFY_EV, {"dgid": gid(1)}),
        (RecordKind.WATCH_EVS, {"on": 1}),
        (RecordKind.PROBE, {"dgid": gid(1)}),
        (RecordKind.MODIFY_PORT, {"port": 1}),
    ):
        with pytest.raises(Refusal) as refused:
            program.request(kind, **fields)
        assert refused.value.error == errno.ENOTSUP
    assert program.request(RecordKind.QUERY_PORT, port=1) == 1


def test_attributes_of_a_qp_bound_it(mrc):
    """MRC_QP_RETRY_CNT: a QP with fewer tries gives up sooner."""
    taken = []
    for tries in (1, 4):
        joined = Joined(mrc, given=2, linear=tries, exp=0)
        joined.write(b"x")
        joined.wait_sent(1)
        begun, mrc.silent = mrc.now_ns, True
        joined.write(b"y")
        assert joined.wait_failed()[0] == RETRIES
        taken.append(mrc.now_ns - begun)
        mrc.silent = False
        joined.programs[0].modify(joined.qpns[0], To.RESET)
        mrc.drive(within_ns=5 * SECOND, must=False)
    assert taken[0] < taken[1]
