"""Every key of a scenario's `endpoint` changes what the core does, from the text of the scenario on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mrc_testbed.hosts.common.events import QpError
from mrc_testbed.hosts.control import CommandError, Request
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.evstate import EvState
from mrc_testbed.hosts.mrc.settings import read_settings
from mrc_testbed.testbed.scenario import EndpointSettings, load_scenario_text
from mrc_testbed.testbed.switching.thresholds import PortThresholds
from mrc_testbed.topos.nodes import Link
from tests.sim.simnet import MS, RATE, EvChanged, Net, T, pattern
from tests.sim.test_congestion_paths import trim
from tests.sim.test_loss import is_data
from tests.sim.test_paths import endless, restored, retired
from tests.sim.test_transfer import PACKET, transfer

SCENARIO = """\
name: keys
workload: [train: {steps: 10, compute: 100ms, allreduce: 4MiB}]
endpoint: {%s}
"""
FAST = {"pace": False, "port_rate_bps": 100 * RATE}


def settings(text: str) -> dict:
    """What a daemon makes of this `endpoint`: through the scenario and the line of `configure`."""
    told = load_scenario_text(SCENARIO % text).endpoint.settings()
    return read_settings(Request(json.dumps({"id": 1, "cmd": "configure", **told}).encode()))


def net(text: str, **more) -> Net:
    return Net(**more | settings(text))


def fill(story: Net, token: tuple[int, int, int], link: Link) -> None:
    """Have host 1 send on, by a path over this link, which it keeps half a T behind."""
    if story.ports.fabric.backlog_ns(link.near.node, link.near.name) < T // 2:
        for _ in range(8):
            story.ports.send(1, token, wire.CLASS_NO_TRIM, bytes(PACKET))
    story.scheduler.at(story.now + T // 8, fill, story, token, link)


def dropping_one(story: Net, token: tuple[int, int, int], lost: list[bytes]) -> Any:
    """The next data packet of host 0 on this path vanishes."""

    def tap(host, on, traffic_class, packet):
        if host or on != token or lost or not is_data(packet):
            return True
        lost.append(packet)
        return False

    story.taps.append(tap)
    return tap


def returned(story: Net) -> list[EvChanged]:
    return [event for event in story.events_of(EvChanged) if event.old is EvState.ASSUMED_BAD]


def test_every_key_has_its_test_here():
    keys = {field.alias or name for name, field in EndpointSettings.model_fields.items()}
    elsewhere = {"denylist", "entropies", "icrc", "congestion_control", "ev_selection", "ev_active", "reinfer"}
    elsewhere |= {"busy_port"}
    here = {word for name in globals() if name.startswith("test_key_") for word in [name.removeprefix("test_key_")]}
    assert {key for key in keys - elsewhere if not any(name.startswith(key) for name in here)} == set()


def test_every_setting_reaches_the_core():
    """But for `reorder_ns` and its like, which are left out when they follow something else."""
    text = "timeout: 80ms, reorder_time: 5ms, probe_interval: 30ms, ev_min_active: 7, ev_active: 9, icrc: true"
    given: dict[str, Any] = {"host": 0, "planes": 4, "udp_port": 1, "rtt_ns": T, "port_rate_bps": RATE}
    config = EndpointConfig(**given, **settings(text))
    assert (config.timeout, config.reorder_ns, config.probe_interval_ns) == (17, 5 * MS, 30 * MS)
    assert (config.ev_min_active, config.ev_active, config.icrc) == (7, 9, True)
    usual = EndpointConfig(**given, **settings(""))
    assert usual == EndpointConfig(**given)


@pytest.mark.parametrize(("field", "value"), [("mpr", 0), ("trim_nack", 1), ("reorder_packets", "3")])
def test_a_setting_of_the_wrong_kind_is_refused(field, value):
    with pytest.raises(CommandError, match=field):
        read_settings(Request(json.dumps({"id": 1, "cmd": "configure", field: value}).encode()))


def test_key_payload():
    for text, size in (("", 4096), ("payload: 1KiB", 1024)):
        story = net(text)
        transfer(story, story.join(), pattern(8 * 4096))
        assert story.counters()["data_sent"] == 8 * 4096 / size


def test_key_mpr():
    for mpr in (1, 2):
        story = net(f"mpr: {mpr}", **FAST)
        flow = story.join()
        story.cut(src=1)
        flow.write(pattern(900 * PACKET))
        story.run(within=T, must=False)
        assert story.counters()["data_sent"] == mpr * 128


def test_key_dynamic_mpr():
    for text, sent in (("", 900), ("dynamic_mpr: 2", 256)):
        story = net(text, **FAST)
        flow = story.join()
        transfer(story, flow, pattern(20 * PACKET))
        story.cut(src=1)
        before = story.counters()["data_sent"]
        flow.write(pattern(900 * PACKET))
        story.run(within=T, must=False)
        assert story.counters()["data_sent"] - before == sent


def test_key_max_wimm():
    for most in (2, 5):
        story = net(f"max_wimm: {most}")
        flow = story.join()
        story.cut(src=1)
        for number in range(9):
            flow.write(b"x", offset=number, wr_id=number, immediate=number)
        story.run(within=T, must=False)
        assert story.counters(1)["immediates"] == most


@pytest.mark.parametrize("nacks", [True, False])
def test_key_trim_nack(nacks):
    story = net(f"trim_nack: {str(nacks).lower()}")
    flow = story.join()
    cut = []
    tap = trim(story, lambda token: not cut and token[1:] == (1, 1) and not cut.append(token))
    flow.write(pattern(100 * PACKET))
    story.run(story.completed, within=20 * T)
    story.taps.remove(tap)
    assert len(cut) == story.counters()["retransmitted"] == 1
    assert story.counters()["nacks_received"] == nacks
    assert len(retired(story)) == (not nacks), "found as a loss, it costs its EV"


def test_key_dscp():
    """Each class is where it is said; what came trimmed is told by `trimming`, which `configure` has beside it."""
    story = net("dscp: {data: 1, retransmission: 2, control: 3}", dscp_trimmed=48, dscp_trimmed_last_hop=48)
    seen = []
    story.taps.append(lambda host, token, tc, packet: seen.append((packet[0], tc >> 2)) or True)
    flow = story.join()
    cut = []
    trim(story, lambda token: not cut and token[1:] == (1, 1) and not cut.append(token), 48)
    flow.write(pattern(100 * PACKET))
    story.run(story.completed, within=20 * T)
    data = [dscp for opcode, dscp in seen if opcode <= wire.LAST_DATA_OPCODE]
    assert (data.count(1), data.count(2), len(data)) == (100, 1, 101)
    assert {dscp for opcode, dscp in seen if opcode > wire.LAST_DATA_OPCODE} == {3}
    rested = [event for event in story.events_of(EvChanged) if event.new is EvState.SKIP]
    assert [event.trigger for event in rested] == ["trimmed"], "one value for all: the last hop's cost an EV as well"


@pytest.mark.parametrize(("probes", "trigger"), [("data", "probe_congested"), ("control", "probes_passed")])
def test_key_probe_class_says_whether_a_recovery_probe_meets_the_queue(probes, trigger):
    """Others keep the queue of an uplink above the threshold for marks: only what waits in it is marked."""
    levels = PortThresholds(ecn_low=0.1, ecn_high=0.2, trim=100, trim_last_hop=100, drop=100)
    story = net(f"probe_class: {probes}", hosts=4, switches=levels, planes=2, uplinks=2)
    story.ports.fabric.set_rate(story.ports.uplink(0, 1, 1).name, RATE // 2)
    stop = endless(story, story.join(0, 2))
    fill(story, (3, 1, 1), story.ports.uplink(0, 1, 1))
    story.cut(plane=1, uplink=1, src=0)
    story.run(lambda: retired(story), within=20 * T)
    story.heal(plane=1, uplink=1, src=0)
    story.run(lambda: returned(story), within=100 * T)
    assert [(event.plane, event.uplink, event.trigger) for event in returned(story)] == [(1, 1, trigger)]
    stop()


@pytest.mark.parametrize("to", ["good", "probes"])
def test_key_allow_to(to):
    """A plane that was denied as a whole: what waits for it goes on at once, or after probes."""
    story = net(f"allow_to: {to}", planes=1)
    flow = story.join()
    whole = [(0, uplink) for uplink in range(4)]
    story.hosts[0].deny(1, whole)
    flow.write(pattern(20 * PACKET))
    story.run(within=2 * T, must=False)
    story.hosts[0].allow(1, whole, story.now)
    taken = story.run(story.completed, within=40 * T)
    assert (taken < 4 * T) == (to == "good")
    back = [event for event in story.events_of(EvChanged) if event.old is EvState.DENIED]
    state = EvState.GOOD if to == "good" else EvState.ASSUMED_BAD
    assert {(event.new, event.trigger) for event in back} == {(state, "allow")}


@pytest.mark.parametrize("losses", [1, 3])
def test_key_bad_after_losses(losses):
    """Three packets of one EV vanish, some T apart."""
    story = net(f"bad_after_losses: {losses}")
    stop = endless(story, story.join())
    for number in range(1, 4):
        lost = []
        tap = dropping_one(story, (1, 1, 1), lost)
        story.run(lambda lost=lost: lost, within=20 * T)
        story.taps.remove(tap)
        story.run(within=3 * T, must=False)
        assert bool(retired(story)) == (number >= losses)
        if losses == 1:
            break
    stop()


def test_key_preset():
    assert settings("preset: production")["mpr"] == 4
    assert settings("preset: production, mpr: 2")["mpr"] == 2


def test_key_timeout():
    """Rounded up to a unit of MRC: 80 ms is none, 2^17 x 1.024 us is the next."""
    for text, code in (("", None), ("timeout: 80ms", 17), ("timeout: 60ms", 16)):
        story = net(text)
        flow = story.join()
        story.cut()
        flow.write(pattern(100))
        taken = story.run(lambda story=story: story.counters()["timeouts"], within=100 * T)
        expected = 1024 << code if code else story.hosts[0]._peers[1].timing.rto_ns()
        assert taken == pytest.approx(expected, rel=0.01)


def test_25_exponential_tries_are_endless():
    story = net("linear_tries: 0, exponential_tries: 25, timeout: 1ms")
    flow = story.join()
    story.cut()
    flow.write(pattern(100))
    taken = story.run(lambda: story.counters()["timeouts"] == 14, within=40_000 * MS)
    assert taken == pytest.approx(sum(2**n for n in range(14)) * (1024 << 10), rel=0.02)
    assert not story.events_of(QpError)


@pytest.mark.parametrize(("linear", "exponential"), [(1, 0), (3, 0), (1, 2)])
def test_key_linear_tries_and_exponential_tries(linear, exponential):
    story = net(f"linear_tries: {linear}, exponential_tries: {exponential}, timeout: 60ms")
    flow = story.join()
    story.cut()
    flow.write(pattern(100))
    taken = story.run(lambda: story.events_of(QpError), within=100 * T)
    waits = linear + 1 + sum(2**n for n in range(1, exponential + 1))
    assert taken == pytest.approx(waits * (1024 << 16), rel=0.01)
    assert story.counters()["timeouts"] == linear + exponential + 1


test_key_exponential_tries = test_key_linear_tries_and_exponential_tries


def one_late(text, late_ns):
    """Losses by reason when one packet of a stream takes `late_ns` longer than the others of its EV and class."""
    story = net(text, planes=1, uplinks=8)
    flow = story.join()
    stop = endless(story, flow)
    story.run(within=5 * T, must=False)
    story.worsen(uplink=3, src=0, delay_ns=T // 2 + late_ns)
    story.run(within=3 * T, must=False)
    stop()
    return story.counters()["lost_reordered"]


def test_key_reorder_time():
    assert one_late("", T // 2) == 0
    assert one_late("reorder_time: 2ms", T // 2) > 0
    assert one_late("reorder_time: 2ms", T // 2) > one_late("reorder_time: 8ms", T // 2)


def test_key_reorder_packets():
    few = one_late("reorder_time: 0s, reorder_packets: 1", T // 2)
    assert few > one_late("reorder_time: 0s, reorder_packets: 6", T // 2) > 0
    assert one_late("reorder_time: 0s, reorder_packets: 100", T // 2) == 0


def test_key_ev_min_active():
    for least in (2, 6):
        story = net(f"ev_min_active: {least}", planes=1, uplinks=8)
        story.worsen(loss=0.05)
        stop = endless(story, story.join())
        left = 8
        for _ in range(60):
            story.run(within=T, must=False)
            left = min(left, story.hosts[0]._peers[1].evs.count(0))
        assert left == least
        stop()


def probes_of(story, path):
    """When host 0 sends EV probes on it."""
    found = []

    def note(src, token, traffic_class, packet):
        if src == 0 and packet[0] == wire.ENDPOINT_REQUEST and token[1:] == path:
            found.append(story.now)

    story.taps.append(note)
    return found


def test_key_probe_interval():
    first = {}
    for text in ("", "probe_interval: 20ms", "probe_interval: 800ms"):
        story = net(text)
        stop = endless(story, story.join())
        story.cut(plane=1, uplink=1)
        story.run(lambda story=story: retired(story), within=20 * T)
        sent, begin = probes_of(story, (1, 1)), story.now
        story.run(lambda sent=sent: len(sent) == 2, within=200 * T)
        first[text] = (sent[0] - begin) / T
        stop()
    assert 0.7 <= first["probe_interval: 20ms"] <= 1.3
    assert 2.9 <= first[""] <= 5.1
    assert 29 <= first["probe_interval: 800ms"] <= 51


def test_key_probe_successes():
    for successes in (1, 6):
        story = net(f"probe_successes: {successes}")
        stop = endless(story, story.join())
        story.cut(plane=1, uplink=1)
        story.run(lambda story=story: retired(story), within=20 * T)
        story.heal(plane=1, uplink=1)
        sent = probes_of(story, (1, 1))
        story.run(lambda story=story: restored(story), within=60 * T)
        assert len(sent) == successes
        stop()


def test_ev_active_and_the_floor_that_follows_it():
    story = net("ev_active: 4", uplinks=4)
    flow = story.join()
    transfer(story, flow, pattern(100 * PACKET))
    used = [path for path, count in story.hosts[0].path_packets(1).items() if count]
    assert len(used) == 4


def test_data_packets_are_told_from_others():
    """What these tests count on."""
    story = net("")
    kinds = set()
    story.taps.append(lambda src, token, traffic_class, packet: kinds.add((is_data(packet), packet[0])))
    transfer(story, story.join(), pattern(20 * PACKET))
    assert {data for data, _ in kinds} == {True, False}
    assert not [event for event in story.events_of(EvChanged) if event.new is not EvState.GOOD]
