"""The controller API through the library and the daemon's own code, between two endpoints in memory."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.testbed.fabric.verbs_library import PRELOAD
from tests.libmrc import ctl_api as api
from tests.libmrc import ctl_compiled
from tests.libmrc.ctl_api import Controller, Ev, EvAttr, Failed, OpEntry, controller, request
from tests.libmrc.ctl_daemon import ASSUMED_BAD, DENIED, GOOD, gid
from tests.libmrc.ctl_rights import needs_net_admin
from tests.libmrc.pair import PLANES, RTT_NS, UPLINKS, Pair

LONG_NS, SHORT_NS = 4 * 10**9, 3 * 10**9
EVS = [plane << 8 | uplink for plane in range(PLANES) for uplink in range(UPLINKS)]

pytestmark = needs_net_admin


@pytest.fixture(scope="module")
def library() -> Path:
    return ctl_compiled.built(PRELOAD)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with Pair(tmp_path) as made:
        yield made


@pytest.fixture
def ctl(library: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Controller]:
    monkeypatch.setenv("MRC_TESTBED_SOCKET", pair.hosts[0].path)
    with controller(library) as made:
        yield made


def test_device_and_evs(ctl: Controller) -> None:
    attr = ctl.device()
    assert (attr.max_count, attr.port_mask) == (len(EVS), 0b110)
    assert ctl.ev_states() == {ev << 16: GOOD for ev in EVS}


def test_ports_are_disabled_and_enabled(ctl: Controller) -> None:
    ctl.set_port(2, 0)
    assert [ctl.port(1), ctl.port(2)] == [1, 0]
    ctl.set_port(2, 1)
    assert ctl.port(2) == 1


def test_probes_take_the_path_that_they_name(ctl: Controller, pair: Pair) -> None:
    pair.dead = {(1, 0)}
    requests = [request(ev + 1, gid(1), ev) for ev in EVS]
    error, answers = ctl.probe(requests, SHORT_NS)
    assert error == errno.ETIMEDOUT
    assert sorted(answer.id for answer in answers) == [ev + 1 for ev in EVS if ev != 0x100]
    assert all(answer.port == ((answer.id - 1) >> 8) + 1 for answer in answers)
    assert all(RTT_NS <= answer.rtt < LONG_NS for answer in answers)
    assert ctl.probe([request(1, gid(1), 0x00F)], LONG_NS) == (errno.ENOENT, [])
    assert ctl.probe([request(1, gid(7), 0)], LONG_NS) == (errno.EINVAL, [])


def test_an_ev_denied_and_allowed_has_events(ctl: Controller) -> None:
    cq, entries = ctl.event_cq(16), (OpEntry * 1)(OpEntry(ev=Ev.of(0x101), state=DENIED))
    ctl.ev_op(api.MODIFY_EV_STATE, entries)
    assert ctl.ev_states()[0x0101_0000] == DENIED
    entries[0].state = GOOD
    ctl.ev_op(api.MODIFY_EV_STATE, entries)
    seen: list[tuple[int, int]] = []
    until = time.monotonic() + 20
    while (0x0101_0000, GOOD) not in seen and time.monotonic() < until:
        seen += [(event.ev.number, event.state) for event in ctl.poll(cq)]
    assert seen == [(0x0101_0000, ASSUMED_BAD), (0x0101_0000, GOOD)]
    assert ctl.ev_states()[0x0101_0000] == GOOD
    ctl.destroy_cq(cq)


def test_a_profile_that_a_qp_names_stays_online(ctl: Controller) -> None:
    settings = api.EV_MIN_ACTIVE | api.EV_EVENT_MASK
    given = EvAttr(state=api.OFFLINE, mode=1, min_active=1, event_mask=ASSUMED_BAD)
    ctl.profile("modify_ev", 6, api.STATE | api.EV_MODE | settings, given)
    given.state = api.ONLINE
    ctl.profile("modify_ev", 6, api.STATE, given)
    with ctl.qp_of_profile(6):
        with pytest.raises(Failed) as failed:
            ctl.profile("modify_ev", 6, api.STATE, EvAttr(state=api.OFFLINE))
        assert failed.value.errno == errno.EBUSY
    for state in (api.OFFLINE, api.INIT):
        ctl.profile("modify_ev", 6, api.STATE, EvAttr(state=state))


def test_a_transport_without_evs_is_not_supported(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Pair(tmp_path, roce=True) as pair:
        monkeypatch.setenv("MRC_TESTBED_SOCKET", pair.hosts[0].path)
        with controller(library) as ctl:
            ctl.device()
            assert ctl.supported == 0
            assert ctl.port(1) == 1
            with pytest.raises(Failed) as failed:
                ctl.event_cq(4)
            assert failed.value.errno == errno.ENOTSUP
