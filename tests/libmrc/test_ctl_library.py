"""The controller API through the library, against a daemon of Python (tests/libmrc/ctl_daemon.py)."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mrc_testbed.hosts.verbs.messages import RecordKind
from mrc_testbed.testbed.fabric.verbs_library import MRC, PRELOAD
from tests.libmrc import ctl_api as api
from tests.libmrc import ctl_compiled
from tests.libmrc.ctl_api import Controller, Ev, EvAttr, Failed, OpEntry, controller, request
from tests.libmrc.ctl_daemon import ASSUMED_BAD, DENIED, GOOD, PLANES, UPLINKS, CtlDaemon, gid
from tests.libmrc.ctl_rights import needs_net_admin, without_net_admin

EVS = PLANES * UPLINKS
SHORT_NS, LONG_NS = 2 * 10**9, 4 * 10**9

pytestmark = needs_net_admin


@pytest.fixture(scope="module", params=[PRELOAD, MRC])
def library(request: pytest.FixtureRequest) -> Path:
    return ctl_compiled.built(str(request.param))


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CtlDaemon]:
    with CtlDaemon(tmp_path / "h0") as made:
        monkeypatch.setenv("MRC_TESTBED_SOCKET", str(made.path))
        yield made


@pytest.fixture
def ctl(library: Path, daemon: CtlDaemon) -> Iterator[Controller]:
    with controller(library) as made:
        yield made


def test_versions_need_no_device(library: Path) -> None:
    versions = (ctypes.c_uint32 * 4)(*[9] * 4)
    ctypes.CDLL(str(library)).mrc_ctl_query_version(*(ctypes.byref(versions, 4 * at) for at in range(4)))
    assert list(versions) == [0x01000001, 0, 0x01000000, 0]


def test_device(ctl: Controller) -> None:
    attr = ctl.device()
    assert ctl.supported == 1
    assert (attr.max_count, attr.max_count_profile, attr.free_count, attr.align) == (EVS, EVS, 0, 1)
    assert (attr.width, attr.fmt_modes, attr.ev_modes) == (32, 1, 1)
    assert attr.port_mask == 0b110
    assert attr.options == 0x35
    assert [attr.algorithms[0], attr.algorithms[1]] == [b"uet-1.0-nscc", None]
    old = api.DeviceAttr()
    ctl.call("mrc_ctl_query_device", ctypes.c_void_p(ctl.verbs), ctypes.byref(old))
    assert old.max_count == EVS


def test_ports(ctl: Controller, daemon: CtlDaemon) -> None:
    daemon.no_carrier.add(1)
    assert [ctl.port(1), ctl.port(2)] == [1, 1]
    ctl.set_port(2, 0)
    assert daemon.disabled == {2}
    assert [ctl.port(1), ctl.port(2)] == [1, 0]
    ctl.set_port(2, 1)
    assert ctl.port(2) == 1
    for port, state in ((0, 1), (3, 1), (1, 2)):
        with pytest.raises(Failed) as failed:
            ctl.set_port(port, state)
        assert failed.value.errno == errno.EINVAL


def test_states_of_evs_are_the_worst_over_the_peers(ctl: Controller, daemon: CtlDaemon) -> None:
    daemon.change(0x102, 1, ASSUMED_BAD)
    daemon.change(0x001, 2, DENIED)
    daemon.change(0x001, 1, ASSUMED_BAD)
    states = ctl.ev_states()
    assert len(states) == EVS
    assert {ev: state for ev, state in states.items() if state != GOOD} == {0x0102_0000: 2, 0x0001_0000: 4}
    entries = (OpEntry * 2)(OpEntry(ev=Ev.of(0x102, udp_port=49152, port=2)), OpEntry(ev=Ev.of(0x000)))
    ctl.ev_op(api.QUERY_EV_STATE, entries, "query_ev")
    assert [entry.state for entry in entries] == [ASSUMED_BAD, GOOD]


def test_evs_are_denied_and_allowed_one_after_another(ctl: Controller, daemon: CtlDaemon) -> None:
    entries = (OpEntry * 4)(*(OpEntry(ev=Ev.of(ev), state=DENIED) for ev in (0x000, 0x101, 0x00F, 0x102)))
    with pytest.raises(Failed) as failed:
        ctl.ev_op(api.MODIFY_EV_STATE, entries)
    assert failed.value.errno == errno.ENOENT
    denied = {ev >> 16 for ev, state in ctl.ev_states().items() if state == DENIED}
    assert denied == {0x000, 0x101}
    assert {ev for (ev, _), state in daemon.states.items() if state == DENIED} == denied
    entries[0].state = GOOD
    ctl.ev_op(api.MODIFY_EV_STATE, (OpEntry * 1)(entries[0]))
    assert ctl.ev_states()[0] == ASSUMED_BAD
    entries[0].state = ASSUMED_BAD
    with pytest.raises(Failed) as failed:
        ctl.ev_op(api.MODIFY_EV_STATE, entries)
    assert failed.value.errno == errno.EINVAL


def test_too_little_room_for_the_evs(ctl: Controller) -> None:
    with pytest.raises(Failed) as failed:
        ctl.ev_op(api.QUERY_EV_ARRAY, (OpEntry * 1)(), "query_ev")
    assert failed.value.errno == errno.E2BIG
    assert failed.value.entry_count == EVS


def test_evs_of_profiles_that_are_not_there(ctl: Controller) -> None:
    with pytest.raises(Failed) as failed:
        ctl.ev_op(api.QUERY_EV_ARRAY, (OpEntry * EVS)(), "query_ev", profile=77)
    assert failed.value.errno == errno.EINVAL


def test_events_of_changes_alone(ctl: Controller, daemon: CtlDaemon) -> None:
    daemon.change(0x002, 1, ASSUMED_BAD)
    cq = ctl.event_cq(8)
    daemon.change(0x002, 1, ASSUMED_BAD)
    daemon.change(0x101, 2, ASSUMED_BAD)
    daemon.change(0x101, 1, DENIED)
    daemon.instead.append((0x101, gid(2), GOOD))
    assert len(ctl.ev_states()) == EVS
    daemon.change(0x002, 1, GOOD)
    assert ctl.port(1) == 1  # what has been told before is here now
    events = ctl.poll(cq)
    seen = [(event.profile, event.ev.number, event.ev.port, event.drops, event.state) for event in events]
    assert seen == [
        (0, 0x0101_0000, 2, 0, ASSUMED_BAD),
        (0, 0x0101_0000, 2, 0, GOOD),
        (0, 0x0002_0000, 1, 0, GOOD),
    ]
    assert ctl.poll(cq) == []
    ctl.destroy_cq(cq)
    daemon.wait_until_watched(False)


def test_events_lost_are_counted(ctl: Controller, daemon: CtlDaemon) -> None:
    cq = ctl.event_cq(2)
    for state in (ASSUMED_BAD, GOOD, ASSUMED_BAD, GOOD, ASSUMED_BAD):
        daemon.change(0x100, 1, state)
    assert ctl.port(1) == 1
    assert [event.drops for event in ctl.poll(cq, 1)] == [0]
    daemon.change(0x100, 1, GOOD)
    assert ctl.port(1) == 1
    assert [(event.state, event.drops) for event in ctl.poll(cq)] == [(GOOD, 0), (GOOD, 3)]
    ctl.destroy_cq(cq)


def test_events_by_the_masks_of_profiles(ctl: Controller, daemon: CtlDaemon) -> None:
    cq = ctl.event_cq(8)
    given = EvAttr(state=api.OFFLINE, mode=1, fmt_id=0, min_active=1, event_mask=GOOD)
    settings = api.EV_FMT_ID | api.EV_MIN_ACTIVE | api.EV_EVENT_MASK
    ctl.profile("modify_ev", 5, api.STATE | api.EV_MODE | settings, given)
    given.state = api.ONLINE
    ctl.profile("modify_ev", 5, api.STATE, given)
    ctl.profile("modify_ev", 0, api.EV_EVENT_MASK, EvAttr(event_mask=ASSUMED_BAD))
    try:
        daemon.change(0x000, 1, ASSUMED_BAD)
        daemon.change(0x000, 1, GOOD)
        assert ctl.port(1) == 1
        assert [(event.profile, event.state) for event in ctl.poll(cq)] == [(0, ASSUMED_BAD), (5, GOOD)]
    finally:
        ctl.profile("modify_ev", 0, api.EV_EVENT_MASK, EvAttr(event_mask=GOOD | ASSUMED_BAD))
        for state in (api.OFFLINE, api.INIT):
            ctl.profile("modify_ev", 5, api.STATE, EvAttr(state=state))
        ctl.destroy_cq(cq)


def test_old_programs_get_events_of_48_bytes(library: Path, daemon: CtlDaemon) -> None:
    with controller(library, version=1) as ctl:
        cq = ctl.event_cq(4)
        daemon.change(0x000, 1, ASSUMED_BAD)
        daemon.change(0x101, 1, ASSUMED_BAD)
        assert ctl.port(1) == 1
        memory = b"".join(bytes(event) for event in ctl.poll(cq))
        assert int.from_bytes(memory[8:12], "little") == 0
        assert int.from_bytes(memory[56:60], "little") == 0x0101_0000
        assert memory[96:] == bytes(16)
        ctl.destroy_cq(cq)


def test_a_cq_of_completions_holds_no_events(ctl: Controller) -> None:
    cq = ctl._pointer("mrc_create_cq", ctypes.c_void_p(ctl.mrc), 4, None, None, 0)
    with pytest.raises(Failed) as failed:
        ctl.poll(cq)
    assert failed.value.errno == errno.EINVAL
    ctl.destroy_cq(cq)


def test_probes_are_answered_as_they_arrive(ctl: Controller, daemon: CtlDaemon) -> None:
    requests = [request(300 + at, gid(1 + at % 2), ev, gid(0)) for at, ev in enumerate((0x000, 0x101, 0x102))]
    with ThreadPoolExecutor() as pool:
        call = pool.submit(ctl.probe, requests, LONG_NS)
        daemon.wait_for_probes(3)
        for at in (2, 0, 2, 1):
            daemon.answer(at, 1000 * (at + 1))
        error, answers = call.result()
    assert error == 0
    assert [(a.id, a.port, a.rtt, a.adjusted) for a in answers] == [
        (302, 2, 3000, 0),
        (300, 1, 1000, 0),
        (301, 2, 2000, 0),
    ]
    assert [(probe["ev"], probe["dgid"]) for probe in daemon.probes] == [
        (0x000, gid(1)),
        (0x101, gid(2)),
        (0x102, gid(1)),
    ]


def test_more_probes_than_a_datagram_holds(ctl: Controller, daemon: CtlDaemon) -> None:
    with ThreadPoolExecutor() as pool:
        call = pool.submit(ctl.probe, [request(at, gid(1), 0x000) for at in range(100)], LONG_NS)
        daemon.wait_for_probes(100)
        for at in range(100):
            daemon.answer(at, at)
        error, answers = call.result()
    assert (error, [answer.id for answer in answers]) == (0, list(range(100)))


def test_late_answers_are_lost(ctl: Controller, daemon: CtlDaemon) -> None:
    two = [request(1, gid(1), 0x000), request(2, gid(1), 0x101)]
    with ThreadPoolExecutor() as pool:
        call = pool.submit(ctl.probe, two, SHORT_NS)
        daemon.wait_for_probes(2)
        daemon.answer(1, 77)
        error, answers = call.result()
        assert (error, [answer.id for answer in answers]) == (errno.ETIMEDOUT, [2])
        call = pool.submit(ctl.probe, two, LONG_NS)
        daemon.wait_for_probes(4)
        for at in (0, 1, 3, 2):
            daemon.answer(at, 100 + at)
        error, answers = call.result()
    assert (error, [answer.rtt for answer in answers]) == (0, [103, 102])


def test_threads_get_their_own_answers(ctl: Controller, daemon: CtlDaemon) -> None:
    threads, each = 8, 20
    batches = [[request(at, gid(1), at % UPLINKS) for at in range(each)] for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(ctl.probe, batch, LONG_NS) for batch in batches]
        daemon.wait_for_probes(threads * each)
        for at in reversed(range(threads * each)):
            daemon.answer(at, at)
        results = [call.result() for call in calls]
    assert [error for error, _ in results] == [0] * threads
    assert [sorted(answer.id for answer in answers) for _, answers in results] == [list(range(each))] * threads
    assert sorted(answer.rtt for _, answers in results for answer in answers) == list(range(threads * each))


def test_a_probe_refused_ends_the_call(ctl: Controller, daemon: CtlDaemon) -> None:
    with ThreadPoolExecutor() as pool:
        call = pool.submit(ctl.probe, [request(1, gid(1), 0x000), request(2, gid(9), 0x000)], LONG_NS)
        daemon.wait_for_probes(2)
        daemon.answer(0, 5)
        daemon.refuse(1, errno.EINVAL, b"no peer has this GID")
        error, answers = call.result()
    assert (error, [answer.id for answer in answers]) == (errno.EINVAL, [1])
    assert ctl.port(1) == 1


def test_requests_that_cannot_be_probes(ctl: Controller, daemon: CtlDaemon) -> None:
    assert ctl.probe([], 0) == (0, [])
    bad = {
        "to nobody": request(1, bytes(16), 0),
        "to itself": request(1, gid(0), 0),
        "from another": request(1, gid(1), 0, sgid=gid(2)),
        "no such format": request(1, gid(1), 0, mode=3),
    }
    for name, one in bad.items():
        assert ctl.probe([one], LONG_NS) == (errno.EINVAL, []), name
    assert ctl.probe([request(1, gid(1), 0, mode=2)], LONG_NS) == (errno.ENOTSUP, [])
    assert ctl.probe([request(1, gid(1), 0)], LONG_NS, op=1) == (errno.ENOTSUP, [])
    assert ctl.probe([request(1, gid(1), 0)], LONG_NS, op=2) == (errno.EINVAL, [])
    assert daemon.probes == []
    assert ctl.probe([request(1, gid(1), 0)], 0) == (errno.ETIMEDOUT, [])


def test_null_arguments(ctl: Controller) -> None:
    mrc = ctypes.c_void_p(ctl.mrc)
    for name, arguments in {
        "mrc_ctl_query_device": (ctypes.c_void_p(ctl.verbs), None),
        "mrc_ctl_query_device_ex": (ctypes.c_void_p(ctl.verbs), mrc, None, None),
        "mrc_ctl_query_port": (mrc, 1, None, 1),
        "mrc_ctl_modify_port": (None, 1, None, 1),
        **{
            f"mrc_ctl_{do}_{what}_profile": (mrc, ctypes.c_uint64(0), None, 1)
            for do in ("query", "modify")
            for what in ("ev_fmt", "ev", "cc")
        },
        "mrc_ctl_ep_batch_send_wait": (mrc, 0, 0, None, 1, 0, None, None),
    }.items():
        with pytest.raises(Failed) as failed:
            ctl.call(name, *arguments)
        assert failed.value.errno == errno.EINVAL, name


def test_without_the_capability_nothing_works(ctl: Controller, daemon: CtlDaemon) -> None:
    cq, before = ctl.event_cq(4), len(daemon.asked)
    refused: dict[str, Callable[[], object]] = {
        "device": ctl.device,
        "port": lambda: ctl.port(1),
        "set port": lambda: ctl.set_port(1, 0),
        "format": lambda: ctl.profile("query_ev_fmt", 0, api.STATE, api.FmtAttr()),
        "EVs": ctl.ev_states,
        "CC": lambda: ctl.profile("modify_cc", 0, api.STATE, api.CcAttr(state=api.OFFLINE)),
        "event CQ": lambda: ctl.event_cq(4),
        "poll": lambda: ctl.poll(cq),
    }
    with without_net_admin():
        for name, call in refused.items():
            with pytest.raises(Failed) as failed:
                call()
            assert failed.value.errno == errno.EPERM, name
        assert ctl.probe([request(1, gid(1), 0)], LONG_NS) == (errno.EPERM, [])
    assert len(daemon.asked) == before
    assert ctl.poll(cq) == []
    ctl.destroy_cq(cq)


@pytest.mark.parametrize(
    "kind", [RecordKind.QUERY_EVS, RecordKind.QUERY_PORT, RecordKind.WATCH_EVS, RecordKind.MODIFY_EV, RecordKind.PROBE]
)
def test_a_daemon_that_dies_hangs_nobody(ctl: Controller, daemon: CtlDaemon, kind: RecordKind) -> None:
    daemon.silent.add(kind)

    def everything() -> None:
        ctl.port(1)
        entry = OpEntry(ev=Ev.of(0), state=DENIED)
        ctl.ev_op(api.MODIFY_EV_STATE, (OpEntry * 1)(entry))
        ctl.destroy_cq(ctl.event_cq(4))
        error, _ = ctl.probe([request(1, gid(1), 0)], LONG_NS)
        raise Failed(error, "probe")

    for _ in range(2):
        with pytest.raises(Failed) as failed:
            everything()
        assert failed.value.errno == errno.EIO


def test_a_cq_of_events_outlives_the_daemon(ctl: Controller, daemon: CtlDaemon) -> None:
    cq = ctl.event_cq(4)
    daemon.die()

    def poll_on() -> None:
        while True:
            ctl.poll(cq)

    with pytest.raises(Failed) as failed:
        poll_on()
    assert failed.value.errno == errno.EIO
    ctl.destroy_cq(cq)


def test_a_context_takes_its_cqs_along(library: Path, daemon: CtlDaemon) -> None:
    with controller(library) as ctl:
        for _ in range(3):
            ctl.event_cq(4)
    with controller(library) as ctl:
        cq = ctl.event_cq(4)
        daemon.change(0x001, 1, ASSUMED_BAD)
        assert ctl.port(1) == 1
        assert len(ctl.poll(cq)) == 1
        ctl.destroy_cq(cq)
