"""The RoCE-like reliable connection: rules, rates and deaths, under a virtual clock."""

import itertools
from dataclasses import replace
from typing import Any, cast

import pytest

from mrc_testbed.hosts.common.bth import ACK_REQUEST, AETH_NAK_REMOTE_ACCESS
from mrc_testbed.hosts.common.errors import (
    PeerAttributeError,
    QpStateError,
    UnknownChoiceError,
    UnknownPeerError,
    UnknownQpError,
)
from mrc_testbed.hosts.common.events import StallEnded
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RECOVERIES, RcAttributes, RcConfig
from tests.sim.rcnet import DEEP, LOSSY, LOSSY_ECN, PACKET_NS, PORT_RATE, RcNet, stream
from tests.sim.simnet import MS, ImmediateDelivered, QpError, T, pattern

TIMEOUT = 4096 << 16
EACH = pytest.mark.parametrize("recovery", RECOVERIES)


def share(net, packets=10_000):
    """Run for as long as `packets` take at line rate: what part of them came."""
    before = net.delivered(1)
    net.run(within=packets * PACKET_NS, must=False)
    return (net.delivered(1) - before) / packets


def lossy_share(qps, loss, recovery="go-back-n", packets=12_000, seed=3):
    net = RcNet(recovery=recovery, timeout_ns=TIMEOUT, seed=seed)
    for _ in range(qps):
        stream(net, net.join(), packets)
    net.worsen(loss=loss, src=0)
    return share(net, packets)


def psn_of(packet):
    return wire.bits_and_psn(memoryview(packet)) & 0xFFFFFF


def tapped(net, src, opcodes):
    """The packets of these opcodes that `src` sends, as they go."""
    seen = []
    net.taps.append(lambda host, _, __, packet: seen.append(packet) if host == src and packet[0] in opcodes else None)
    return seen


def lose_once(net, *psns):
    """The first packet of each of these PSNs that host 0 sends is lost."""
    left = set(psns)

    def tap(src, _, __, packet):
        if src == 0 and packet[0] in DATA and psn_of(packet) in left:
            left.remove(psn_of(packet))
            return False
        return None

    net.taps.append(tap)


DATA = range(wire.WRITE_FIRST, wire.WRITE_ONLY_IMM + 1)

# --- what arrives ---


@EACH
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 40_000])
def test_a_write_arrives_whole_with_its_immediate(recovery, size):
    net = RcNet(recovery=recovery)
    flow = net.join()
    data = pattern(size)
    flow.write(data, offset=8, immediate=77)
    net.run(net.completed)
    assert bytes(flow.region()[8 : 8 + size]) == data
    assert [event.immediate for event in net.events_of(ImmediateDelivered, 1)] == [77]
    assert net.counters()["retransmitted"] == 0


@EACH
@pytest.mark.parametrize("qps", [1, 4, 16, 64])
@pytest.mark.nightly(keep=6)
def test_without_loss_a_port_runs_at_its_rate(recovery, qps):
    net = RcNet(recovery=recovery)
    for _ in range(qps):
        stream(net, net.join(), 6_000)
    net.run(within=2 * T, must=False)
    assert share(net, 5_000) == pytest.approx(1, abs=0.01)
    assert net.counters()["retransmitted"] == 0


def test_qps_to_one_host_take_turns_over_its_ports_and_stay():
    net = RcNet(planes=2, recovery="go-back-n")
    flows = [net.join() for _ in range(4)]
    assert [net.requester(flow).plane for flow in flows] == [0, 1, 0, 1]
    for flow in flows:
        stream(net, flow, 500)
    net.run(lambda: net.delivered(1) == 4 * 512)
    assert net.now - net.start < 1.1 * 1024 * PACKET_NS + 2 * T


@EACH
def test_psns_wrap(recovery):
    net = RcNet(recovery=recovery)
    flow = net.join(psn_a=(1 << 24) - 20, psn_b=(1 << 24) - 3)
    there, back = pattern(100 * 4096, 1), pattern(100 * 4096, 2)
    net.worsen(loss=0.02)
    flow.write(there, immediate=1)
    flow.write(back, source=1)
    net.run(lambda: net.completed(0) and net.completed(1), within=1000 * T)
    assert bytes(flow.region(1)[: len(there)]) == there
    assert bytes(flow.region(0)[: len(back)]) == back


def test_the_source_port_is_that_of_the_two_qps_and_never_changes():
    net = RcNet()
    flows = [net.join() for _ in range(8)]
    ports = set()
    way_of = net.way_of

    def remember(src, token):
        ports.add((src, token[0]))
        return way_of(src, token)

    net.way_of = remember  # type: ignore[method-assign]
    net.worsen(loss=0.05)
    for flow in flows:
        stream(net, flow, 100)
    net.run(within=30 * T, must=False)
    assert {port for _, port in ports} == {wire.source_port(flow.qpn[0], flow.qpn[1]) for flow in flows}
    assert len(ports) == 16
    assert all(0xC000 <= port <= 0xFFFF for _, port in ports)


# --- rules of section 9.7 ---


def test_one_nak_a_gap_names_the_missing_packet_and_everything_after_it_goes_again():
    net = RcNet()
    flow = net.join(psn_a=100)
    data = tapped(net, 0, DATA)
    answers = tapped(net, 1, [wire.ACKNOWLEDGE])
    lose_once(net, 110)
    flow.write(pattern(40 * 4096))
    net.run(net.completed)
    naks = [wire.parse_ack(memoryview(each)) for each in answers if each[12] == wire.SYNDROME_NAK_SEQUENCE]
    assert [psn for _, psn, _, _ in naks] == [110]
    assert [psn_of(each) for each in data] == [*range(100, 140), *range(110, 140)]
    assert net.counters()["go_backs"] == 1
    assert net.counters(1)["out_of_order"] == 29


def test_an_ack_every_four_packets_and_at_the_end_of_a_message():
    net = RcNet()
    flow = net.join(psn_a=0)
    answers = tapped(net, 1, [wire.ACKNOWLEDGE])
    flow.write(pattern(10 * 4096))
    net.run(net.completed)
    assert [wire.parse_ack(memoryview(each))[1] for each in answers] == [3, 7, 9]
    assert [wire.parse_ack(memoryview(each))[3] for each in answers] == [0, 0, 1], "messages completed"


def test_a_duplicate_is_acknowledged_and_not_placed_again():
    net = RcNet()
    flow = net.join()
    net.worsen(duplicate=1.0, src=0)
    flow.write(pattern(50 * 4096), immediate=3)
    net.run(net.completed)
    net.run(within=2 * T, must=False)
    assert net.counters(1)["data_received"] == 50
    assert net.counters(1)["bytes_delivered"] == net.counters()["bytes_sent"] == 50 * 4096
    assert net.counters(1)["duplicates"] == 50
    assert len(net.events_of(ImmediateDelivered, 1)) == 1
    assert net.counters()["retransmitted"] == 0


def test_a_lost_nak_costs_the_timeout():
    net = RcNet(timeout_ns=TIMEOUT)
    flow = net.join(psn_a=0)
    lose_once(net, 5)
    net.taps.append(lambda src, _, __, packet: packet[0] != wire.ACKNOWLEDGE or packet[12] != 0x60)
    flow.write(pattern(20 * 4096))
    took = net.run(net.completed, within=100 * T)
    assert TIMEOUT < took < TIMEOUT + 3 * T
    assert net.counters()["timeouts"] == 1
    assert net.counters(1)["nacks_sent"] == 1


@EACH
def test_a_lost_last_ack_is_asked_for_again(recovery):
    net = RcNet(recovery=recovery, timeout_ns=TIMEOUT)
    flow = net.join()
    net.cut(src=1)
    flow.write(pattern(2 * 4096))
    net.run(within=2 * T, must=False)
    assert not net.completed()
    net.heal()
    net.run(net.completed, within=100 * T)
    assert net.counters(1)["data_received"] == 2


def test_selective_sends_only_what_is_missing_again():
    net = RcNet(recovery="selective")
    flow = net.join(psn_a=0)
    lose_once(net, 3, 4, 9, 30)
    data = pattern(60 * 4096)
    flow.write(data, immediate=5)
    net.run(net.completed, within=10 * T)
    assert bytes(flow.region()[: len(data)]) == data
    assert net.counters()["retransmitted"] == 4
    assert net.counters()["go_backs"] == 0


# --- loss ---


@pytest.mark.parametrize("qps", [1, 4, 16])
@pytest.mark.parametrize("loss", [0.001, 0.01])
def test_go_back_n_loses_one_and_a_half_bdp_a_loss(qps, loss):
    bdp_packets = T / PACKET_NS
    assert lossy_share(qps, loss) == pytest.approx(1 / (1 + 1.5 * loss * bdp_packets / qps), abs=0.05)


@pytest.mark.parametrize("qps", [1, 4, 16])
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.01, 0.03])
@pytest.mark.nightly(keep=4)
def test_selective_recovery_is_never_worse(qps, loss):
    # At 0 its window costs less than half a percent.
    assert lossy_share(qps, loss, "selective") >= lossy_share(qps, loss) - 0.005


# --- death ---


@EACH
@pytest.mark.parametrize("retries", [0, 3, 7])
@pytest.mark.parametrize("timeout_ns", [4096 << 15, 4096 << 16])
def test_a_silent_path_kills_a_qp_after_all_its_retries_and_one_t(recovery, retries, timeout_ns):
    """(retries + 1) timeouts after the last acknowledgement, and that one comes a T after the cut."""
    net = RcNet(recovery=recovery, timeout_ns=timeout_ns, retries=retries)
    flow = net.join()
    stream(net, flow, 50_000)
    net.run(within=5 * T, must=False)
    heard = []
    net.taps.append(lambda src, *_: heard.append(net.now + T // 2) if src == 1 else None)
    cut_at = net.now
    net.cut(src=0)
    net.run(lambda: net.events_of(QpError), within=(retries + 2) * timeout_ns)
    assert net.now == heard[-1] + (retries + 1) * timeout_ns
    assert cut_at + T - 8 * PACKET_NS <= heard[-1] <= cut_at + T
    (event,) = net.events_of(QpError)
    assert event.reason.value == "retries exceeded"
    assert net.counters()["timeouts"] == retries + 1
    with pytest.raises(QpStateError):
        flow.write(b"x")


@EACH
def test_a_write_to_nowhere_dies_exactly_after_all_its_retries(recovery):
    net = RcNet(recovery=recovery, timeout_ns=TIMEOUT, retries=7)
    flow = net.join()
    net.cut()
    flow.write(pattern(100))
    assert net.run(lambda: net.events_of(QpError), within=9 * TIMEOUT) == 8 * TIMEOUT


@EACH
def test_a_cut_that_ends_in_time_is_one_long_silence(recovery):
    net = RcNet(recovery=recovery, timeout_ns=TIMEOUT)
    flow = net.join()
    data = pattern(100 * 4096)
    flow.write(data)
    net.run(within=T, must=False)
    net.cut()
    net.run(within=7 * TIMEOUT, must=False)
    net.heal()
    net.run(net.completed, within=3 * TIMEOUT)
    assert bytes(flow.region()[: len(data)]) == data
    assert not net.events_of(QpError)


def test_progress_gives_all_retries_back():
    net = RcNet(timeout_ns=TIMEOUT, retries=2)
    flow = net.join()
    stream(net, flow, 20_000)
    for _ in range(4):
        net.cut(src=0)
        net.run(within=2 * TIMEOUT + T, must=False)
        net.heal()
        net.run(within=2 * TIMEOUT, must=False)
    assert not net.events_of(QpError)
    assert net.counters()["timeouts"] >= 8


def test_carrier_does_nothing_at_once_and_the_retries_decide():
    net = RcNet(timeout_ns=TIMEOUT)
    flow = net.join()
    stream(net, flow, 5_000)
    net.run(within=T, must=False)
    net.port_down(0, 0)
    net.run(within=7 * TIMEOUT, must=False)
    assert not net.events_of(QpError)
    net.port_up(0, 0)
    net.run(lambda: net.delivered(1) > 2_000, within=3 * TIMEOUT)
    net.port_down(0, 0)
    net.run(lambda: net.events_of(QpError), within=9 * TIMEOUT)


# --- one path each ---


def permutation(seed, levels, recovery="go-back-n", **config):
    """4 hosts of one group write to 4 of the other over 4 uplinks: the share of each, and what its uplink carries."""
    net = RcNet(hosts=8, uplinks=4, seed=seed, switches=levels, recovery=recovery, **config)
    flows = [net.join(host, 4 + host) for host in range(4)]
    ways = net.uplinks_of(flows)
    for flow in flows:
        stream(net, flow, 12_000)
    net.run(within=10 * T, must=False)
    before = [net.delivered(flow.b) for flow in flows]
    # Three on one uplink fill it with 2 BDP a T, and nothing holds them back before it drops.
    net.run(within=15 * T, must=False)
    shares = [(net.delivered(flow.b) - was) * PACKET_NS / (15 * T) for flow, was in zip(flows, before, strict=True)]
    return net, [(each, ways.count(way)) for each, way in zip(shares, ways, strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_flows_on_one_uplink_share_it_and_the_others_have_theirs_alone(seed):
    _net, shares = permutation(seed, DEEP)
    assert max(flows for _, flows in shares) > 1, "no collision: this shows nothing"
    for each, flows in shares:
        assert each == pytest.approx(1 / flows, rel=0.03)


def test_deep_buffers_lose_nothing_where_lossy_ones_do():
    deep, _ = permutation(0, DEEP)
    lossy, _ = permutation(0, LOSSY)
    assert deep.dropped() == 0
    assert lossy.dropped() > 100
    assert deep.counters(0)["retransmitted"] == 0


# --- congestion ---


def test_marks_are_told_at_most_once_an_interval_and_cut_the_rate():
    net = RcNet(congestion_control="dcqcn")
    flow = net.join()
    stream(net, flow, 5_000)
    notifications = []
    tapped(net, 1, [wire.CNP])
    net.taps.append(lambda src, _, __, packet: notifications.append(net.now) if packet[0] == wire.CNP else None)
    net.worsen(ce=True, src=0)
    net.run(within=40 * T, must=False)
    interval = 50_000 * T // 13_000
    assert min(b - a for a, b in itertools.pairwise(notifications)) >= interval
    assert 8 <= len(notifications) <= 40 * T / interval + 1
    counters = net.counters()
    assert counters["cnps_received"] == net.counters(1)["cnps_sent"]
    assert 0 < counters["rate_cuts"] <= counters["cnps_received"]
    assert counters["data_sent"] < 0.5 * 40 * T / PACKET_NS


def test_without_congestion_control_marks_mean_nothing():
    net = RcNet()
    flow = net.join()
    stream(net, flow, 5_000)
    net.worsen(ce=True)
    assert share(net, 3_000) > 0.97
    assert net.counters(1)["marked_received"] > 2_900
    assert net.counters(1)["cnps_sent"] == 0


def test_dcqcn_makes_two_flows_that_collide_drop_less():
    plain, _ = permutation(0, LOSSY_ECN)
    careful, _ = permutation(0, LOSSY_ECN, congestion_control="dcqcn")
    assert careful.counters(0)["cnps_received"] > 0 or careful.counters(1)["cnps_received"] > 0
    assert careful.dropped() < 0.5 * plain.dropped()


@EACH
def test_a_qp_at_the_least_rate_does_not_time_out(recovery):
    """Four of its packets take longer than the timeout, so each asks for its ACK."""
    net = RcNet(recovery=recovery, timeout_ns=10 * T, congestion_control="dcqcn")
    flow = net.join()
    stream(net, flow, 2_000)
    net.worsen(ce=True, src=0)
    net.run(within=200 * T, must=False)
    before = net.delivered(1)
    net.run(within=200 * T, must=False)
    assert net.delivered(1) - before < 200
    assert net.counters()["timeouts"] == 0


def test_a_slow_qp_asks_for_an_ack_as_often_as_t_takes_and_no_more():
    """At a quarter of a port's rate four packets take longer than T, and the peer sends no ACK before the fourth."""
    net = RcNet(congestion_control="dcqcn")
    flow = net.join()
    stream(net, flow, 2_000)
    sent = []
    net.taps.append(
        lambda src, _, __, packet: sent.append((net.now, packet)) if src == 0 and packet[0] in DATA else None
    )
    net.worsen(ce=True, src=0)
    net.run(within=20 * T, must=False)
    asked_at, quarter = 0, []
    for (before, _), (now, packet), (after, _) in zip(sent, sent[1:], sent[2:], strict=False):
        asks = bool(wire.bits_and_psn(memoryview(packet)) & ACK_REQUEST)
        if min(now - before, after - now) > T / 4:
            quarter.append(asks)
            assert asks or after - asked_at <= T
        if asks:
            asked_at = now
    assert 3 <= quarter.count(True) <= len(quarter) // 2


# --- life of a QP ---


def test_a_reset_qp_starts_anew_and_old_packets_have_no_effect():
    net = RcNet(timeout_ns=TIMEOUT)
    flow = net.join()
    flow.write(pattern(200 * 4096))
    net.run(within=T, must=False)
    renewed = [net.hosts[host].reset_qp(flow.qpn[host]) for host in (0, 1)]
    for host in (0, 1):
        net.hosts[host].connect_qp(flow.qpn[host], renewed[1 - host])
        flow.attributes[host] = renewed[host]
    net.run(within=2 * T, must=False)
    assert net.counters(1)["refused_psn_window"] > 0
    data = pattern(50 * 4096, 5)
    flow.write(data, immediate=9)
    net.run(net.completed)
    assert bytes(flow.region()[: len(data)]) == data
    assert not net.events_of(QpError)
    assert not net.events_of(QpError, 1)


def test_a_destroyed_qp_is_gone_and_its_peer_finds_out():
    net = RcNet(timeout_ns=TIMEOUT)
    flow, other = net.join(), net.join()
    stream(net, flow, 500)
    net.run(within=T, must=False)
    net.hosts[1].destroy_qp(flow.qpn[1])
    with pytest.raises(UnknownQpError):
        net.hosts[1].region(flow.qpn[1])
    net.run(lambda: net.events_of(QpError), within=9 * TIMEOUT)
    assert net.counters(1)["refused_unknown_qp"] > 0
    other.write(pattern(5000))
    net.run(net.completed)


@EACH
def test_a_destroyed_qp_leaves_the_window_to_the_others(recovery):
    net = RcNet(recovery=recovery)
    flow, other = net.join(), net.join()
    stream(net, flow, 2_000)
    net.run(within=T, must=False)
    net.cut(dst=1)
    net.run(within=2 * T, must=False)
    net.hosts[0].destroy_qp(flow.qpn[0])
    net.heal()
    stream(net, other, 1_000)
    net.run(lambda: len(net.completed()) >= 16, within=25 * T)


def test_every_qp_answers_a_warm_up_and_says_how_long_a_round_trip_is():
    net = RcNet()
    flows = [net.join() for _ in range(3)]
    silent = net.hosts[0].path_report(1)
    assert sorted(silent.silent_qps) == sorted(flow.qpn[0] for flow in flows)
    assert silent.rtt_ns is None
    net.hosts[0].probe_paths(1, net.now)
    net.run(within=2 * T, must=False)
    report = net.hosts[0].path_report(1)
    assert report.silent_qps == []
    assert report.rtt_ns == pytest.approx(T, rel=0.01)
    assert (net.events[0], net.events[1]) == ([], []), "no completion that nobody asked for"


def test_an_answer_that_comes_after_the_probe_was_sent_again_is_an_answer():
    # A timer shorter than the round trip: found at ports so slow that a packet takes longer than T.
    net = RcNet(recovery="selective", rtt_ns=T // 100)
    net.join()
    net.hosts[0].probe_paths(1, net.now)
    net.run(within=2 * T, must=False)
    assert net.counters()["resend_timeouts"] > 0
    report = net.hosts[0].path_report(1)
    assert (report.silent_qps, report.rtt_ns) == ([], None), "which of the two was answered is not known"


@pytest.mark.parametrize(
    "change",
    [
        {"qpn": 1 << 24},
        {"psn": -1},
        {"mtu": 0},
        {"regions": [{"addr": 0, "len": 1, "rkey": 1 << 32}]},
        {"regions": [{"addr": 0, "len": True, "rkey": 1}]},
        {"recovery": 3},
    ],
)
def test_attributes_that_cannot_be_are_refused(change):
    told = RcNet().hosts[1].open_qp(0, 4096).as_json()
    with pytest.raises(PeerAttributeError) as caught:
        RcAttributes.from_json(told | change)
    assert caught.value.name in {*change, "rkey", "region_bytes"}


def test_another_recovery_is_refused_and_the_qp_stays():
    net = RcNet()
    mine, theirs = net.hosts[0].open_qp(1, 4096), net.hosts[1].open_qp(0, 4096)
    with pytest.raises(PeerAttributeError, match="recovery"):
        net.hosts[0].connect_qp(mine.qpn, replace(theirs, recovery="selective"))
    net.hosts[0].connect_qp(mine.qpn, theirs)


def test_attributes_are_carried_as_json():
    attributes = RcNet().hosts[0].open_qp(1, 4096)
    assert RcAttributes.from_json(attributes.as_json() | {"more": 1}) == attributes
    with pytest.raises(KeyError):
        RcAttributes.from_json({"qpn": 1})
    with pytest.raises(PeerAttributeError):
        RcAttributes.from_json(attributes.as_json() | {"recovery": "hope"})


def test_what_the_application_gets_wrong_is_said():
    net = RcNet()
    with pytest.raises(UnknownPeerError):
        net.hosts[0].open_qp(7, 4096)
    with pytest.raises(UnknownQpError):
        net.hosts[0].connect_qp(99, net.hosts[0].open_qp(1, 1))
    for setting in ("recovery", "congestion_control"):
        with pytest.raises(UnknownChoiceError):
            RcConfig(host=0, planes=1, rtt_ns=T, port_rate_bps=PORT_RATE, **{setting: cast(Any, "hope")})


@EACH
@pytest.mark.parametrize("change", [{"rkey": 1}, {"region_address": 5}])
def test_a_write_that_is_not_allowed_ends_the_qp_at_both_ends(recovery, change):
    net = RcNet(recovery=recovery)
    mine, theirs = net.hosts[0].open_qp(1, 4096), net.hosts[1].open_qp(0, 4096)
    told = replace(theirs, **change)
    net.hosts[0].connect_qp(mine.qpn, told)
    net.hosts[1].connect_qp(theirs.qpn, mine)
    answers = tapped(net, 1, [wire.ACKNOWLEDGE])
    net.hosts[0].post_write(mine.qpn, pattern(4096), told.region_address, 1)
    net.run(lambda: net.events_of(QpError), within=5 * T)
    assert net.events_of(QpError)[0].reason.value == "remote access error"
    assert net.events_of(QpError, 1)[0].reason.value == "the peer's request was outside of the region"
    assert [each[12] for each in answers] == [AETH_NAK_REMOTE_ACCESS]
    assert not any(net.hosts[1].region(theirs.qpn))


def test_a_silence_is_reported_when_it_ends():
    net = RcNet(timeout_ns=TIMEOUT)
    flow = net.join()
    stream(net, flow, 2_000)
    net.run(within=5 * T, must=False)
    net.cut()
    net.run(within=3 * T, must=False)
    assert list(net.hosts[0].stalled(net.now)) == [flow.qpn[0]]
    net.run(within=10 * MS, must=False)
    net.heal()
    net.run(lambda: [event for event in net.events[0] if isinstance(event, StallEnded)], within=40 * T)
    (stall,) = [event for event in net.events[0] if isinstance(event, StallEnded)]
    assert stall.end_ns - stall.begin_ns == pytest.approx(4 * T, abs=T / 5), "from the last ACK to the first NAK"
    assert net.hosts[0].stalled(net.now) == {}
