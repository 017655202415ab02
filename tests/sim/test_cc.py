"""The window: NSCC's table by itself, and what it does to transfers."""

from dataclasses import replace

import pytest

from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.cc import ALGORITHMS, FixedWindow, Nscc
from mrc_testbed.hosts.mrc.config import FORWARDINGS, EndpointConfig
from mrc_testbed.hosts.mrc.plugins import Plugins
from mrc_testbed.hosts.mrc.timing import Timing
from tests.sim.simnet import MS, RATE, Net, T, pattern
from tests.sim.test_congestion_paths import trim
from tests.sim.test_transfer import PACKET, transfer

FULL = 4096 + 40 + 48


REAL_RATE = 100_000_000
"""Bit/s a port for a real BDP in bytes: 4 ports x 20 ms make a = 6.7, as 800 Gb/s x 10 us do."""


def nscc(**config):
    """One whose window is as large as it may be."""
    cc = Nscc(Timing(Net(**config).hosts[0]._config))
    cc._set(cc._timing.window_bytes)
    return cc, cc.window


def sacks(cc, count, delay_ns=0, ecn=False, begin=1000 * MS, step_ns=MS):
    """`count` SACKs of one packet each; returns the time after them."""
    now = begin
    for _ in range(count):
        now += step_ns
        cc.on_sack(FULL, T + delay_ns, ecn, cc.window // 2, now)
    return now


def test_it_begins_with_one_and_a_half_of_what_t_holds_and_grows_to_that_of_a_full_packets_round_trip():
    first = Nscc(Timing(Net().hosts[0]._config)).window
    _, largest = nscc()
    assert first == pytest.approx(1.5 * 4 * RATE * T / 8e9, rel=0.02)
    assert largest == pytest.approx(1.5 * 4 * (RATE * T / 8e9 + FORWARDINGS * 4238), rel=0.03)


def test_marked_and_slow_cuts_once_a_round_trip_by_half_at_most():
    cc, window = nscc()
    now = sacks(cc, 200, delay_ns=4 * T, ecn=True, step_ns=MS // 10)
    assert window // 2 <= cc.window < window
    first = cc.window
    sacks(cc, 30, delay_ns=4 * T, ecn=True, begin=now + T)
    assert first // 4 <= cc.window < first


def test_marked_but_fast_is_a_matter_for_the_path_only():
    cc, window = nscc()
    sacks(cc, 200, delay_ns=T // 4, ecn=True)
    assert cc.window == window


def test_unmarked_grows_again_while_the_queue_is_short_and_rests_when_it_is_not():
    for delay, grows in ((0, True), (T // 2, True), (2 * T, False)):
        cc, window = nscc()
        for _ in range(20):
            cc.on_loss(FULL)
        low = cc.window
        sacks(cc, 100, delay_ns=delay)
        assert cc.window <= window
        assert (cc.window - low > 4 * FULL) is grows


def test_unmarked_and_slow_grows_evenly_where_packets_are_marked_and_only_there():
    """By the same for a small window as for a large one, which is what brings windows together."""
    grown = []
    for losses in (20, 60):
        cc, _ = nscc()
        for _ in range(losses):
            cc.on_loss(FULL)
        now = sacks(cc, 1, delay_ns=2 * T, ecn=True)
        low = cc.window
        now = sacks(cc, low // FULL, delay_ns=2 * T, begin=now, step_ns=T * FULL // low)
        grown.append(cc.window - low)
        now = sacks(cc, 10, delay_ns=2 * T, begin=now + T)  # what had been gathered until the last mark is added yet
        held = cc.window
        sacks(cc, 20, delay_ns=2 * T, begin=now)
        assert cc.window - held < FULL, "no mark for a round trip: the queue is where nothing marks"
    assert min(grown) > FULL
    assert max(grown) < 1.5 * min(grown)


@pytest.mark.parametrize("left", [0.1, 0.3, 0.5])
def test_fast_increase_is_a_mode_that_lasts(left):
    """The text: an undelayed window's worth begins it, and then every undelayed byte adds a quarter of a bytes."""
    cc, window = nscc(port_rate_bps=REAL_RATE)
    while cc.window > left * window:
        cc.on_loss(FULL)
    acked, now = 0, 1000 * MS
    while cc.window < window:
        now += MS
        cc.on_sack(FULL, T, False, cc.window // 2, now)
        acked += FULL
    a = cc._timing.t_bytes / 150_000
    assert a == pytest.approx(6.7, rel=0.05)
    assert acked / window < left + (1 - left) / (0.25 * a) + 0.05


@pytest.mark.parametrize(
    ("delay_ns", "ecn", "ends"),
    [(T // 2, False, True), (2 * T, True, True), (0, True, False), (2 * T, False, False)],
    ids=["delayed", "marked and slow", "marked but fast", "unmarked and slow"],
)
def test_what_ends_fast_increase(delay_ns, ecn, ends):
    """As in the text: the two cases that look at the queue of this very path."""
    cc, _ = nscc(port_rate_bps=REAL_RATE)
    for _ in range(300):
        cc.on_loss(FULL)
    now = sacks(cc, 120)
    low = cc.window
    now = sacks(cc, 1, begin=now)
    assert cc.window - low > FULL, "fast increase is on"
    now = sacks(cc, 1, delay_ns=delay_ns, ecn=ecn, begin=now)
    low = cc.window
    sacks(cc, 1, begin=now)
    assert (cc.window - low < FULL) is ends


def test_a_trim_is_a_sample_of_a_full_queue():
    """What was trimmed would have waited T, so that the next mark finds the average above the target."""
    cc, _ = nscc(port_rate_bps=REAL_RATE, switches_trim=True)
    now = sacks(cc, 3)
    for _ in range(150):
        cc.on_trim(FULL, 200 * FULL, now)
    low = cc.window
    sacks(cc, 1, delay_ns=T, ecn=True, begin=now + MS)
    assert 0.8 * low < cc.window < 0.95 * low


def test_a_window_under_penalty_does_not_grow():
    cc, _ = nscc()
    for _ in range(20):
        cc.on_loss(FULL)
    low, now = cc.window, 1000 * MS
    for _ in range(100):
        now += MS
        cc.on_penalty(1, False, FULL)
        cc.on_sack(FULL, T, False, 0, now)
    assert low - FULL < cc.window < low + 2 * FULL


def test_quick_adapt_falls_to_what_was_achieved():
    cc, window = nscc()
    now = sacks(cc, 3)  # the first of them begins the period
    cc.on_trim(FULL, 100_000, now)
    now += 3 * T
    cc.on_trim(FULL, 100_000, now)
    assert cc.window == 2 * FULL
    sacks(cc, 400, begin=now + 3 * T)
    assert cc.window == window


def test_after_quick_adapt_marks_on_what_was_under_way_say_nothing_and_missing_marks_do():
    cc, _ = nscc()
    now = sacks(cc, 3)
    cc.on_trim(FULL, 40 * FULL, now)
    cc.on_trim(FULL, 40 * FULL, now + 3 * T)
    low, now = cc.window, now + 3 * T
    assert low == 2 * FULL
    now = sacks(cc, 20, delay_ns=4 * T, ecn=True, begin=now, step_ns=T // 10)
    assert cc.window == low
    sacks(cc, 10, begin=now, step_ns=T // 10)
    assert cc.window > low + FULL


@pytest.mark.parametrize("gone", ["trimmed", "lost"])
def test_packets_under_way_at_quick_adapt_that_never_arrive_are_not_waited_for(gone):
    """Else those that arrive later are ignored in their place: at a window of one packet, one a round trip."""
    cc, _ = nscc()
    now = sacks(cc, 3)
    cc.on_trim(FULL, 40 * FULL, now)
    now += 3 * T
    cc.on_trim(FULL, 40 * FULL, now)
    assert cc.window == 2 * FULL, "quick adapt has acted"
    now = sacks(cc, 20, begin=now, step_ns=MS // 10)
    for _ in range(20):
        if gone == "trimmed":
            cc.on_trim(FULL, FULL, now)
        else:
            cc.on_loss(FULL)
    low = cc.window
    sacks(cc, 8, begin=now + 3 * T, step_ns=T)
    assert cc.window >= low + 2 * FULL


def test_the_window_is_never_less_than_a_packet():
    cc, _ = nscc()
    for _ in range(1000):
        cc.on_loss(FULL)
    assert cc.window == FULL


def test_the_receivers_penalty_is_taken_and_given_back():
    cc, window = nscc()
    for _ in range(window // FULL):
        cc.on_penalty(64, False, FULL)
    assert cc.window == pytest.approx(window / 2, rel=0.05)
    cc.on_penalty(0, True, FULL)
    assert cc.window == window


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_clean_transfer_keeps_line_rate(algorithm):
    net = Net(congestion_control=algorithm)
    flow = net.join()
    data = pattern(900 * PACKET)
    taken = transfer(net, flow, data)
    ideal = 900 * (PACKET + 40 + 102) * 8 * 1_000_000_000 // (4 * RATE) + T
    assert taken < ideal / 0.95


def test_a_penalty_in_sacks_reaches_the_window():
    net = Net(pace=False)
    flow = net.join()

    def penalise(src, token, traffic_class, packet):
        if src == 1 and packet[0] == wire.SACK and not packet[44] and net.now < net.start + 3 * T:
            changed = bytearray(packet)
            changed[44] = 127
            net.hosts[0].handle_datagram(memoryview(changed), 1, 0, 0xC000, traffic_class, net.now, net.now)
            return False
        return True

    net.taps.append(penalise)
    flow.write(pattern(200 * PACKET))
    net.run(within=3 * T, must=False)
    assert net.hosts[0]._qps[flow.qpn[0]].sender._cc.window < FixedWindow(Timing(net.hosts[0]._config)).window // 2
    net.run(net.completed, within=60 * T)


class Listener(FixedWindow):
    """Notes what it is told."""

    acked = 0

    def on_sack(self, acked, *rest):
        self.acked += acked
        super().on_sack(acked, *rest)


@pytest.mark.parametrize("packets", [1, 4, 32])
def test_congestion_control_hears_of_every_byte_however_short_messages_are(packets):
    """The Transport ACK of a message leaves before the SACK of its last packet, which has nothing new to say then."""
    net = Net(plugins=Plugins(congestion_control={"listener": Listener}), congestion_control="listener")
    flow = net.join()
    for number in range(64 // packets):
        flow.write(pattern(packets * PACKET), wr_id=number)
    net.run(lambda: len(net.completed()) == 64 // packets)
    net.run(within=2 * T, must=False)
    assert net.hosts[0]._qps[flow.qpn[0]].sender._cc.acked == 64 * FULL


@pytest.mark.parametrize("packets", [1, 4])
def test_a_window_that_was_cut_to_one_packet_grows_back_with_short_messages(packets):
    net = Net()
    flow = net.join()
    for number in range(1200 // packets):
        flow.write(pattern(packets * PACKET), wr_id=number)
    control = net.hosts[0]._qps[flow.qpn[0]].sender._cc
    control._set(FULL)
    net.run(within=15 * T, must=False)
    assert control.window > 0.9 * control._timing.window_bytes


def test_trims_narrow_the_window_and_the_transfer_ends():
    net = Net()
    flow = net.join()
    seen = [0]

    def every_third(token):
        seen[0] += 1
        return seen[0] % 3 == 0 and net.now < net.start + 6 * T

    trim(net, every_third, wire.DSCP_TRIMMED_LASTHOP)
    transfer(net, flow, pattern(600 * PACKET))
    assert net.counters()["lost_trimmed_lasthop"] > 50
    assert net.counters()["evs_retired"] == 0


def test_a_lost_last_packet_does_not_slow_the_next_message():
    """A path dies when the end of a message is on it: the sender that waits achieves nothing, and that is no sign."""
    for tenths in range(20, 40):
        net = Net(uplinks=16, seed=12)
        flow = net.join()
        data = pattern(256 * PACKET)
        taken = []
        for message in range(4):
            begun = net.now
            flow.write(data, wr_id=message)
            if message == 2:
                net.run(within=tenths * T // 10, must=False)
                net.cut(plane=0, uplink=3)
            net.run(lambda net=net, done=message + 1: len(net.completed()) == done)
            taken.append(net.now - begun)
            net.run(within=T, must=False)
        assert taken[3] <= 1.1 * taken[1], f"cut after {tenths / 10} T"


@pytest.mark.parametrize("packets", [1, 6, 13.9])
def test_in_small_planes_windows_and_target_are_those_of_fourteen_packets(packets):
    config = EndpointConfig(host=0, planes=2, udp_port=1, rtt_ns=1, port_rate_bps=10**7)
    packet_ns = Timing(config).packet_ns
    timing = Timing(replace(config, rtt_ns=int(packets * packet_ns)))
    assert timing.first_window_bytes == int(1.5 * 14 * 2 * timing.packet_bytes)
    assert timing.window_bytes >= timing.first_window_bytes
    assert Nscc(timing)._target in (10.5 * packet_ns, 14 * packet_ns)


def test_planes_of_fourteen_packets_and_more_have_windows_and_target_of_their_own_t():
    config = EndpointConfig(host=0, planes=2, udp_port=1, rtt_ns=1, port_rate_bps=10**7, switches_trim=True)
    timing = Timing(replace(config, rtt_ns=15 * Timing(config).packet_ns))
    assert timing.first_window_bytes == int(1.5 * timing.t_bytes)
    assert timing.window_bytes == int(1.5 * timing.bdp_bytes)
    assert Nscc(timing)._target == 0.75 * timing.base_ns
