"""The rules of single parts of the core, where a whole transfer would hide a mistake behind a second mechanism."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common.messages import NO_MESSAGE
from mrc_testbed.hosts.common.pacer import Pacer
from mrc_testbed.hosts.common.prng import Prng
from mrc_testbed.hosts.common.psn import MODULUS, unwrap
from mrc_testbed.hosts.common.timers import NEVER, Timers
from mrc_testbed.hosts.mrc.cc.nscc import Nscc
from mrc_testbed.hosts.mrc.config import STAMP_SHIFT, EndpointConfig
from mrc_testbed.hosts.mrc.counters import Counters
from mrc_testbed.hosts.mrc.evselect import SELECTIONS, EvSet
from mrc_testbed.hosts.mrc.evselect.base import NO_PLANE
from mrc_testbed.hosts.mrc.evstate import TRANSITIONS, EvInput, EvState, next_state
from mrc_testbed.hosts.mrc.incast import Incast, Inflow
from mrc_testbed.hosts.mrc.inflight import FREE, OUTSTANDING, Inflight
from mrc_testbed.hosts.mrc.loss import Asked, SackOrder, inferred
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.reasons import Ignored, LossReason
from mrc_testbed.hosts.mrc.retry import RetryCounter
from mrc_testbed.hosts.mrc.sack import SackWindow, pieces
from mrc_testbed.hosts.mrc.timing import UNKNOWN_T_NS, Timing
from tests.sim.simnet import MS, RATE, Net, T


def paths(planes, uplinks):
    ids = [(p, u) for p in range(planes) for u in range(uplinks)]
    return [Path(i, p, u, None, 0xC000) for i, (p, u) in enumerate(ids)]


# --- sequence numbers ---


@given(st.integers(0, MODULUS - 1), st.integers(0, 1 << 40), st.integers(-(1 << 23), (1 << 23) - 1))
def test_unwrap_finds_any_number_within_half_the_space(initial, near, away):
    assert unwrap((initial + near + away) % MODULUS, initial, near) == near + away


# --- EV states ---


@given(st.sampled_from(EvState), st.sampled_from(EvInput))
def test_every_state_and_input_leads_to_a_legal_state(state, event):
    new = next_state(state, event)
    assert (new is state) != ((state, event) in TRANSITIONS)


def test_only_the_controller_frees_a_denied_ev():
    assert {event for (state, event) in TRANSITIONS if state is EvState.DENIED} == {EvInput.ALLOW, EvInput.ALLOW_GOOD}


# --- in flight and losses ---


def in_flight(count, where, step_ns=MS):
    """`count` packets sent `step_ns` apart, packet i on path `where(i)`."""
    table = paths(1, 8)
    flight = Inflight(128, table)
    for i in range(count):
        flight.send(NO_MESSAGE, 100, table[where(i)], 1000 + i * step_ns)
    return flight, table


def losses(
    flight, cack, base, bitmap, out_of_order=0, probe_sent_ns=0, asked_on=None, reorder_ns=20 * MS, nack_wait_ns=0
):
    flight.acknowledge(cack, base, bitmap)
    timing = Timing(EndpointConfig(host=0, planes=1, udp_port=1, rtt_ns=20 * MS, port_rate_bps=10**7, seed=1))
    timing.reorder_packets, timing.reorder_ns, timing.nack_wait_ns = 3, reorder_ns, nack_wait_ns
    return inferred(flight, cack, base, bitmap, out_of_order, timing, Asked(probe_sent_ns, asked_on), reinfer=True)


def test_acknowledging_counts_each_packet_once():
    flight, _ = in_flight(10, lambda i: 0)
    assert flight.acknowledge(2, 3, 0b1010) == 5
    assert (flight.una, flight.highest, flight.bytes) == (3, 6, 500)
    assert flight.acknowledge(2, 3, 0b1010) == 0
    assert flight.acknowledge(6) == 2
    assert flight.acked_bits == 0
    assert flight.acknowledge(6, 7, (1 << 64) - 1) == 3, "bits above what was sent are ignored"
    assert flight.bytes == 0


def test_overtaken_on_the_same_ev_is_lost_when_no_stalled_cpu_explains_it():
    flight, _ = in_flight(8, lambda i: i % 4)
    flight.at(4).sent_ns -= 1
    assert losses(flight, -1, 0, 0b00010000) == [], "the newest was sent not quite 4 ms later"
    assert losses(flight, -1, 0, 0b00100000) == [(0, LossReason.OVERTAKEN), (1, LossReason.OVERTAKEN)]


def test_no_stall_is_waited_for_longer_than_reordering():
    flight, _ = in_flight(8, lambda i: i % 4)
    flight.at(4).sent_ns -= 1
    assert losses(flight, -1, 0, 0b00010000, reorder_ns=3 * MS) == [(0, LossReason.OVERTAKEN)]


def test_a_probe_that_waited_with_the_data_needs_no_more_than_that_on_its_path():
    flight, table = in_flight(100, lambda i: i % 8)
    found = losses(flight, 9, 10, 0, 0, probe_sent_ns=1000 + 70 * MS, asked_on=table[4])
    elsewhere = [seq for seq in range(10, 51) if seq % 8 != 4]
    assert [seq for seq, _ in found] == sorted([*elsewhere, *range(12, 66, 8)])


def test_where_switches_trim_a_nack_is_given_the_time_it_may_take_longer_than_a_sack():
    flight, _ = in_flight(8, lambda i: i % 4)
    assert losses(flight, -1, 0, 0b00010000, nack_wait_ns=6 * MS) == [], "4 was sent 4 ms later"
    assert losses(flight, -1, 0, 0b01000000, nack_wait_ns=6 * MS) == [(0, LossReason.OVERTAKEN)], "and 6 is another's"


def test_overtaken_on_another_ev_is_not_lost():
    flight, _ = in_flight(8, lambda i: i)
    assert losses(flight, -1, 0, 0b11111110) == []


def test_a_hole_the_bitmap_does_not_cover_is_not_judged():
    flight, _ = in_flight(100, lambda i: 0)
    found = losses(flight, 9, 90, 0b1)
    assert found == [(10, LossReason.OVERTAKEN)], "only cack + 1 is known to be missing"


def test_time_alone_or_packets_alone_do_not_prove_a_loss():
    flight, _ = in_flight(8, lambda i: i, step_ns=15 * MS)
    assert losses(flight, -1, 0, 0b00000100) == [], "30 ms later, but only two packets above"
    flight, _ = in_flight(8, lambda i: i)
    assert losses(flight, -1, 0, 0b10000000) == [], "seven above, but only 7 ms later"
    flight, _ = in_flight(8, lambda i: i, step_ns=10 * MS)
    assert losses(flight, -1, 0, 0b00001000) == [(0, LossReason.REORDERED)]


def test_a_packet_sent_twice_tells_nothing_about_its_path():
    flight, table = in_flight(8, lambda i: i % 4)
    flight.lose(4, LossReason.TIMEOUT)
    flight.send_again(4, table[1], 900 * MS)
    # 4 arrived, but by which attempt? Neither path 0 (attempt 1) nor path 1 may be judged by it.
    assert losses(flight, -1, 0, 0b00010000) == []


def test_a_retransmission_named_by_its_sack_does_tell():
    flight, table = in_flight(8, lambda i: i)
    for seq, ev, sent_ns in ((1, 7, 10 * MS), (2, 7, 15 * MS), (3, 6, 15 * MS)):
        flight.lose(seq, LossReason.TIMEOUT)
        flight.send_again(seq, table[ev], sent_ns)
    flight.arrived_by(2, table[6], True)
    assert losses(flight, 0, 1, 0b10) == [], "the SACK named another path than the packet took"
    flight.arrived_by(2, table[7], True)
    assert losses(flight, 0, 1, 0b10) == [(1, LossReason.OVERTAKEN)]


def test_a_probe_answer_settles_everything_sent_well_before_it():
    flight, _ = in_flight(100, lambda i: i % 8)
    found = losses(flight, 9, 10, 0, 0, probe_sent_ns=1000 + 70 * MS)
    assert found == [(seq, LossReason.PROBED) for seq in range(10, 51)]


def test_a_probe_answer_reaches_beyond_the_bitmap_when_it_shows_all():
    everything = [(seq, LossReason.PROBED) for seq in range(10, 100)]
    flight, _ = in_flight(100, lambda i: i % 8)
    assert losses(flight, 9, 10, 0, 0, probe_sent_ns=1000 + 500 * MS) == everything
    flight, _ = in_flight(100, lambda i: i % 8)
    assert losses(flight, 9, 10, 0, 3, probe_sent_ns=1000 + 500 * MS) == everything[:64]


def test_a_sack_written_earlier_does_not_speak_of_holes():
    flight = Inflight(128, paths(1, 8))
    flight.next = 1 << 40
    order = SackOrder(4096, Counters())
    assert order.is_latest(100, flight)
    assert order.is_latest(100, flight)
    assert not order.is_latest(96, flight)
    for later in (0x7FFFFF, 0x800000, 0xFFFFF0, 3):
        assert order.is_latest(later, flight)
    assert not order.is_latest(0xFFFFF0, flight), "the counter has wrapped"
    assert not order._counters.refused[Ignored.COUNTS_UNSENT]


@given(st.data(), st.integers(1, 3), st.integers(0, 0xFFFFFF))
def test_a_counter_is_believed_as_far_as_packets_were_sent(data, times_counted, begin):
    """A peer may count a packet each time it comes; `begin` is the value of its 24 bits."""
    flight = Inflight(128, paths(1, 8))
    order = SackOrder(4096, Counters())
    order._latest = begin
    counted = begin << 8
    for _ in range(data.draw(st.integers(1, 12))):
        flight.next += data.draw(st.integers(0, 200))
        arrived = data.draw(st.integers(0, flight.next - flight.una))
        copies = data.draw(st.integers(0, arrived * (times_counted - 1)))
        flight.serial += copies
        counted += (arrived + copies) * data.draw(st.integers(1, 4096))
        flight.una += arrived
        units = -(-counted // 256) & 0xFFFFFF
        assert order.is_latest(units, flight)
        unsent = (flight.next - flight.una) * 16 + 2
        before = order._counters.refused[Ignored.COUNTS_UNSENT]
        assert not order.is_latest(units + unsent & 0xFFFFFF, flight)
        assert order._counters.refused[Ignored.COUNTS_UNSENT] == before + 1
        assert order.is_latest(units, flight), "what is refused leaves no trace"


def test_the_ring_forgets_nothing_that_may_still_be_asked_for():
    flight, _ = in_flight(128, lambda i: 0)
    flight.acknowledge(127)
    assert flight.known(0)
    assert not flight.known(128)
    assert {flight.at(seq).state for seq in range(flight.mask + 1)} == {FREE}
    flight.send(NO_MESSAGE, 1, flight.at(0).path, 5)
    assert flight.at(128).state == OUTSTANDING


# --- SACK window ---


def test_within_64_the_sack_shows_everything():
    assert SackWindow().begin(0b1010, 3) == 0
    assert list(pieces(0b1010)) == list(pieces(0)) == [0]


def test_a_probe_is_shown_256_bits_at_most_from_the_hole_on():
    assert list(pieces(1 << 200)) == list(pieces(1 << 255)) == list(pieces(1 << 1023)) == [0, 64, 128, 192]


def test_beyond_64_every_bit_is_shown_in_turn():
    window = SackWindow()
    received = ((1 << 300) - 1) & ~0b1
    begins = [window.begin(received, 299) for _ in range(12)]
    assert begins[::2] == [236] * 6, "every second SACK ends at its trigger"
    assert begins[1::2] == [0, 64, 128, 192, 256, 0]


# --- rotation ---


def rotation(planes=3, uplinks=4, ev_active=128):
    table = paths(planes, uplinks)
    config = replace(Net().hosts[0]._config, planes=planes, ev_active=ev_active)
    evs = EvSet(config, Timing(config), Prng(3), lambda path, event, trigger: False)
    turn = SELECTIONS[config.ev_selection](evs)
    evs.serve(turn)
    for path in table:
        evs.add(path)
    return evs, turn, table


def test_every_active_ev_is_used_once_in_each_turn():
    _evs, turn, table = rotation()
    for _ in range(5):
        assert {turn.take().index for _ in table} == {path.index for path in table}


def test_the_order_is_drawn_anew():
    _evs, turn, table = rotation(planes=1, uplinks=8)
    orders = {tuple(turn.take().index for _ in table) for _ in range(5)}
    assert len(orders) == 5


def test_leaving_in_mid_turn_skips_nobody():
    evs, turn, table = rotation(planes=1, uplinks=6)
    first = [turn.take(), turn.take()]
    evs.remove(first[0])
    rest = [turn.take() for _ in range(4)]
    assert {path.index for path in first + rest} == {path.index for path in table}


def test_the_avoided_ev_is_not_taken_and_not_lost_to_the_turn():
    _evs, turn, table = rotation(planes=1, uplinks=4)
    for avoided in table * 5:
        taken = [turn.take(avoid=avoided) if i == 0 else turn.take() for i in range(4)]
        assert taken[0] is not avoided


def test_a_plane_with_one_ev_uses_it_although_it_is_avoided():
    _evs, turn, table = rotation(planes=1, uplinks=1)
    assert turn.take(avoid=table[0]) is table[0]


def test_planes_leave_and_join_the_turn():
    evs, turn, table = rotation(planes=3, uplinks=1)
    assert [turn.take().plane for _ in range(4)] == [0, 1, 2, 0]
    evs.remove(table[1])
    assert turn.turn == 2
    assert [turn.take().plane for _ in range(3)] == [2, 0, 2]
    evs.remove(table[0])
    evs.remove(table[2])
    assert turn.turn == NO_PLANE
    evs.add(table[1])
    assert [turn.take().plane for _ in range(2)] == [1, 1]


# --- pacer, timers, timing, retries ---


def test_the_pacer_lets_a_burst_of_four_go_and_then_keeps_the_rate():
    pacer = Pacer(1, RATE, 4136, 102, True)
    cost = (4096 + 40 + 102) * 8_000_000_000 // RATE
    for _ in range(4):
        assert pacer.ready_at(0) <= 1000
        pacer.charge(0, 4136, 1000)
    assert pacer.ready_at(0) == 1000 + cost
    pacer.charge(0, 4136, 1000 + cost)
    assert pacer.ready_at(0) == 1000 + 2 * cost


class Owner:
    def __init__(self, *answers):
        self.wake_ns = NEVER
        self.answers = list(answers)
        self.woken = []

    def on_timer(self, now_ns):
        self.woken.append(now_ns)
        return self.answers.pop(0) if self.answers else NEVER


def test_an_owner_is_woken_at_the_earliest_time_it_asked_for_and_only_then():
    timers, owner = Timers(), Owner(70)
    timers.arm(owner, 50)
    timers.arm(owner, 20)
    timers.arm(owner, 60)
    assert timers.next_ns == 20
    timers.run(30)
    assert timers.next_ns == 70
    timers.run(69)
    timers.run(71)
    assert owner.woken == [30, 71]
    assert timers.next_ns == NEVER


def test_a_deadline_in_the_past_does_not_hang():
    timers, owner = Timers(), Owner(5, 5)
    timers.arm(owner, 1)
    timers.run(10)
    assert owner.woken == [10]
    assert timers.next_ns == 11


def test_the_timeout_is_rounded_up_to_the_unit():
    timing = Timing(Net().hosts[0]._config)
    assert timing.rto_ns() == 1024 << 17
    assert timing.rto_ns() >= 4 * T > timing.rto_ns() // 2


def test_t_is_the_smallest_round_trip_but_never_below_its_floor():
    timing = Timing(Net().hosts[0]._config)
    timing.sample(3 * T, 0)
    assert timing.t_ns == 3 * T
    timing.sample(2 * T, 0)
    timing.sample(4 * T, 0)
    assert timing.t_ns == 2 * T
    timing.sample(T // 2, 0)
    assert timing.t_ns == T


def test_r_grows_with_the_queues_seen_and_forgets_them():
    timing = Timing(Net().hosts[0]._config)
    assert timing.reorder_ns == T
    timing.sample(T, 0)
    timing.sample(2 * T, T)
    timing.sample(T, 2 * T)
    assert timing.reorder_ns == 2 * T
    timing.sample(T, 10 * T)
    assert timing.reorder_ns == 2 * T, "the period before counts too"
    timing.sample(T, 20 * T)
    assert timing.reorder_ns == T
    timing.sample(9 * T, 21 * T)
    assert timing.reorder_ns == int(3.5 * T), "no more than queues that switches trim"
    assert timing.rto_ns() >= 10 * T
    timing.sample(T, 90 * T)
    assert timing.reorder_ns == T, "an old period does not count"


def test_a_packet_that_was_late_counts_though_no_round_trip_was_measured_on_it():
    """Each fourth packet causes a SACK, so of four planes one may cause none for long."""
    timing = Timing(Net().hosts[0]._config)
    timing.note_arrival(0, 2 * T)
    assert timing.reorder_ns == T, "SACKs wait for more to report"
    timing.note_arrival(0, 6 * T)
    assert timing.slowest_ns == 6 * T - timing.delayed_sack_ns


def test_a_packet_that_takes_longer_than_t_on_its_way_is_waited_for():
    """5.4 ms on four links: with R = T of 1 ms, packets on their way were taken for lost."""
    timing = Timing(Net(rtt_ns=MS).hosts[0]._config)
    assert timing.reorder_ns == timing.forwarding_ns > 5 * MS
    assert timing.rto_ns() >= 4 * timing.forwarding_ns
    timing.note_trim(0)
    assert timing.reorder_ns == int(3.5 * timing.forwarding_ns)


def test_an_echo_is_read_modulo_2_to_the_16():
    timing = Timing(Net().hosts[0]._config)
    timing.sample_echo(0xFFFF, (5 << 16 | 99) << 13)
    assert timing.smallest_rtt_ns == 100 << 13


def test_seven_even_waits_then_five_that_double():
    retry = RetryCounter(7, 5)
    retry.begin(100)
    ends = [100]
    while True:
        ends.append(retry.ends_ns(1))
        if retry.tried(ends[-1]):
            break
    assert [b - a for a, b in pairwise(ends)] == [1] * 8 + [2, 4, 8, 16, 32]


def test_a_packet_that_expires_ends_the_try_with_it_and_the_next_within_an_interval_does_not():
    retry = RetryCounter(7, 5)
    retry.begin(100)
    assert retry.ends_ns(10) == 110
    retry.expired = True
    assert retry.ends_ns(10) < 0, "it waited for itself"
    retry.tried(105)
    assert not retry.expired
    retry.expired = True
    assert retry.ends_ns(10) == 115


def test_progress_gives_all_tries_back_and_forgets_what_expired_or_was_refused():
    retry = RetryCounter(1, 1)
    for now in (10, 20):
        assert not retry.tried(now)
    retry.expired = retry.refused = True
    retry.progress(25)
    assert (retry.tries, retry.expired, retry.refused) == (0, False, False)
    assert retry.ends_ns(10) == 35
    retry.expired = True
    assert retry.ends_ns(10) == 30, "at most one timeout is counted in an interval"


@pytest.mark.parametrize("seed", [0, 1, 2, 1 << 31, (1 << 32) - 1])
def test_the_generator_never_sticks(seed):
    prng = Prng(seed)
    drawn = [prng.below(10) for _ in range(500)]
    assert set(drawn) == set(range(10))


@pytest.mark.parametrize("measured_ns", [0, 600_000])
def test_without_a_configured_round_trip_everything_waits_for_the_first_measurement(measured_ns):
    timing = Timing(replace(Net().hosts[0]._config, rtt_ns=0))
    cc = Nscc(timing)
    assert timing.t_ns == UNKNOWN_T_NS
    assert timing.probe_timeout_ns() > 0
    timing.sample(measured_ns, T)
    cc.begin()
    assert timing.t_ns == max(measured_ns, 1 << STAMP_SHIFT)
    assert cc.window >= timing.packet_bytes
    incast, flow = Incast(0), Inflow()
    for period in range(3):
        incast.note(flow, period * 4096, 50, period * 10 * MS)
    assert flow.penalty == 0
