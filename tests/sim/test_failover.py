"""Failover between ports under a virtual clock: times by closed form, every byte, and what ends a connection."""

from random import Random

import pytest

from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RcConfig
from mrc_testbed.hosts.rc.failover import ANSWER, FailoverTimes
from mrc_testbed.hosts.rc.failover_endpoint import FailoverEndpoint
from mrc_testbed.hosts.rc.port_events import PortMoved
from tests.sim.rcnet import RcNet
from tests.sim.simnet import MS, RATE, Flow, ImmediateDelivered, QpError, T, WriteCompleted, pattern

TIMEOUT = 4096 << 16
DETECTED = 8 * TIMEOUT
S = 1000 * MS
SPEED = 10


class FailoverNet(RcNet):
    """Hosts whose QPs have a part on each plane."""

    def __init__(self, planes=4, failover=True, **config):
        usual = {"timeout_ns": TIMEOUT, "port_rate_bps": RATE, "failover": failover}
        super().__init__(planes=planes, **(usual | config))

    def _make_host(self, host, settings, plugins):
        return FailoverEndpoint(RcConfig(host=host, **settings))

    def join(self, a=0, b=1, region_bytes=1 << 20):  # type: ignore[override]
        """Data go from `a`, which registers nothing, to `b`."""
        ends = {a: self.hosts[a].open_qp(b, 0), b: self.hosts[b].open_qp(a, region_bytes)}
        self.hosts[a].connect_qp(ends[a].qpn, ends[b])
        self.hosts[b].connect_qp(ends[b].qpn, ends[a])
        return Flow(self, a, b, ends[a].qpn, ends[b].qpn, ends[a], ends[b])

    def moves(self, host=0):
        """States that ports of its QPs have come to."""
        return [event.state for event in self.events_of(PortMoved, host)]

    def when(self, state, host=0, within=30 * S):
        """Run until a port of its QPs comes to this state; the time then."""
        self.run(lambda: state in self.moves(host), within=within)
        return self.now


def cut_and_posted(size=400_000, **config):
    """A write whose part on plane 1 goes nowhere."""
    net = FailoverNet(**config)
    flow = net.join()
    net.cut(plane=1)
    flow.write(pattern(size), immediate=0xDEADBEEF)
    return net, flow


def test_a_port_fails_after_eight_timeouts_and_its_flags_are_read_ten_ms_later():
    net, flow = cut_and_posted()
    reads = []
    net.taps.append(lambda src, _, __, packet: reads.append(net.now) if packet[0] == wire.READ_REQUEST else None)
    begin = net.now
    assert net.when("LOST") == begin + DETECTED
    net.run(net.completed, within=S)
    assert reads == [begin + DETECTED + 10 * MS]
    # The READ and its answer, then the part with its own, behind nothing else.
    part_ns = 100_000 * 8 * S // RATE
    assert net.now - reads[0] == pytest.approx(2 * T + part_ns, abs=T // 2)
    assert bytes(flow.region()[:400_000]) == pattern(400_000)
    (told,) = net.events_of(ImmediateDelivered, 1)
    assert (told.qpn, told.immediate) == (flow.qpn[1], 0xDEADBEEF)
    assert net.counters()["parts_replayed"] == 1
    assert net.counters()["qp_errors"] == net.counters(1)["qp_errors"] == 0


def test_what_has_arrived_is_not_sent_again():
    net = FailoverNet()
    flow = net.join()
    net.cut(plane=1, src=1)
    flow.write(pattern(400_000))
    net.run(net.completed, within=DETECTED + S)
    assert net.counters()["parts_replayed"] == 0
    assert net.counters()["ports_failed"] == net.counters(1)["ports_failed"] == 1
    assert bytes(flow.region()[:400_000]) == pattern(400_000)


@pytest.mark.parametrize(
    ("healed_s", "back_s"), [(0.1, 5.2), (0.3, 10.2), (5.1, 10.2), (5.3, 15.2), (10.1, 15.2), (10.3, None), (18, None)]
)
def test_a_port_returns_with_the_second_batch_that_arrives_within_its_window(healed_s, back_s):
    net, _ = cut_and_posted(port_recovery=True)
    detected = net.when("RECOVERING")
    net.run(within=round(healed_s * S), must=False)
    net.heal(plane=1)
    if back_s is None:
        assert net.when("LOST") == detected + 25_200 * MS
        assert net.moves(0) == net.moves(1) == ["RECOVERING", "LOST"]
    else:
        assert net.when("OK") - detected == pytest.approx(round(back_s * S) + T, abs=MS)
        net.run(lambda: net.moves(1) == ["RECOVERING", "OK"], within=2 * T)


def test_a_receiver_that_hears_nothing_gives_up_at_its_fifth_silence():
    net, _ = cut_and_posted(port_recovery=True)
    detected = net.when("RECOVERING", host=1)
    assert net.when("LOST", host=1) == detected + 16_200 * MS


@pytest.mark.parametrize("lost", [1, 3])
@pytest.mark.parametrize("end", [0, 1])
def test_a_lost_answer_leaves_both_ends_of_one_mind(end, lost):
    """The receiver's answer, or the sender's last word: who has not heard it asks, and hears it again."""
    net, _ = cut_and_posted(port_recovery=True)
    net.when("RECOVERING", host=1)
    net.heal(plane=1)
    answers = []

    def lose(src, _, __, packet):
        if packet[0] != wire.SEND_IMM or wire.parse_message(packet)[1] != ANSWER or src != end:
            return True
        answers.append(net.now)
        return len(answers) > lost

    net.taps.append(lose)
    net.run(lambda: net.moves(0)[-1] == net.moves(1)[-1] == "OK", within=8 * S)
    assert answers[lost] - answers[0] == pytest.approx(lost * 200 * MS, abs=MS)
    assert net.moves(0) == net.moves(1) == ["RECOVERING", "OK"]
    said = len(answers)
    net.run(within=6 * S, must=False)
    assert len(answers) == said, "nothing is said twice to who has heard it"


def test_a_port_that_is_back_carries_data_and_can_fail_again():
    net, flow = cut_and_posted(port_recovery=True, speed=SPEED)
    net.when("RECOVERING")
    net.heal(plane=1)
    net.when("OK")
    net.run(lambda: net.moves(1)[-1] == "OK", within=2 * T)
    planes = []
    net.taps.append(lambda src, token, __, packet: planes.append(token[1]) if src == 0 else None)
    flow.write(pattern(40_000, seed=2))
    net.run(lambda: len(net.completed()) == 2, within=S)
    assert set(planes) == {0, 1, 2, 3}
    net.cut(plane=1)
    flow.write(pattern(40_000, seed=3), offset=50_000)
    net.run(lambda: len(net.completed()) == 3, within=DETECTED + S)
    assert bytes(flow.region()[50_000:90_000]) == pattern(40_000, seed=3)
    assert net.moves()[-1] == "RECOVERING"


@pytest.mark.parametrize("recovery", [False, True])
def test_a_second_failed_port_ends_the_connection(recovery):
    net, flow = cut_and_posted(port_recovery=recovery)
    net.run(net.completed, within=DETECTED + S)
    net.cut(plane=3)
    flow.write(pattern(40_000))
    net.run(lambda: net.events_of(QpError), within=DETECTED + S)
    (error,) = net.events_of(QpError)
    assert (error.qpn, str(error.reason)) == (flow.qpn[0], "retries exceeded")
    assert net.counters()["qp_errors"] == 1


def test_two_ports_at_once_end_it_too():
    net, _ = cut_and_posted()
    net.cut(plane=2)
    assert net.run(lambda: net.events_of(QpError), within=DETECTED + S) == pytest.approx(DETECTED, abs=MS)


@pytest.mark.parametrize("planes", [2, 4, 8])
def test_one_dead_port_costs_half_for_any_number_of_planes(planes):
    net = FailoverNet(planes=planes)
    flow = net.join()
    size = planes * 120_000
    flow.write(pattern(size))
    whole_ns = net.run(net.completed, within=S)
    net.cut(plane=1)
    flow.write(bytes(8))
    net.run(lambda: len(net.completed()) == 2, within=DETECTED + S)
    flow.write(pattern(size))
    assert net.run(lambda: len(net.completed()) == 3, within=S) / whole_ns == pytest.approx(2, rel=0.15)


def test_one_port_is_held_and_then_used_once_again():
    net = FailoverNet(planes=1, failover=False, retry_hold_ns=5 * S)
    flow = net.join()
    net.cut()
    flow.write(pattern(100_000), immediate=0xFFFF0001)
    begin = net.now
    assert net.when("HOLDING") == begin + DETECTED
    net.heal()
    net.run(net.completed, within=6 * S)
    assert net.now - begin == pytest.approx(DETECTED + 5 * S + 2 * T + 100_000 * 8 * S // RATE, abs=T // 2)
    net.run(lambda: net.events_of(ImmediateDelivered, 1), within=T)
    assert net.events_of(ImmediateDelivered, 1)[0].immediate == 0xFFFF0001
    assert bytes(flow.region()[:100_000]) == pattern(100_000)
    assert not net.events_of(QpError)


def test_a_held_port_that_stays_dead_ends_the_connection_after_as_many_retries():
    net = FailoverNet(planes=1, failover=False, retry_hold_ns=5 * S)
    flow = net.join()
    net.cut()
    flow.write(pattern(100_000))
    assert net.run(lambda: net.events_of(QpError), within=30 * S) == 2 * DETECTED + 5 * S


class Story:
    """Writes with immediates both ways, and whether each was there when it was told, once and in order.

    What was read is overwritten, so that a part which came late would be seen."""

    SIZE, SLOTS, DEPTH = 9_000, 16, 8

    def __init__(self, net, flow, count):
        self.net, self.flow, self.count = net, flow, count
        self.posted, self.heard, self.back = 0, 0, 0
        net.listeners.append(self._hear)
        self._post()

    def _post(self):
        done = len(self.net.completed())
        while self.posted < self.count and self.posted < done + self.DEPTH:
            at = self.posted % self.SLOTS * self.SIZE
            self.flow.write(pattern(self.SIZE, self.posted), at, self.posted, self.posted * 0x10001)
            self.posted += 1

    def _hear(self, host, event):
        if isinstance(event, WriteCompleted) and host == 0:
            self._post()
        if not isinstance(event, ImmediateDelivered):
            return
        if host == 0:
            assert event.immediate == self.back
            self.back += 1
            return
        assert event.immediate == self.heard * 0x10001
        at = self.heard % self.SLOTS * self.SIZE
        region = self.flow.region()[at : at + self.SIZE]
        assert bytes(region) == pattern(self.SIZE, self.heard)
        region[:] = b"\xee" * self.SIZE
        self.flow.write(b"", wr_id=self.heard, immediate=self.heard, source=1)
        self.heard += 1

    @property
    def over(self):
        return self.heard == self.back == self.count


@pytest.mark.parametrize("seed", range(24))
def test_whatever_one_port_does_no_byte_is_wrong_and_none_comes_twice(seed):
    """Cuts of one port, one way or both, at any time and for any time, over paths that lose and repeat packets."""
    dice = Random(seed)
    hold = seed % 4 == 3
    planes = 1 if hold else dice.choice([2, 3, 4])
    library = {"failover": False, "retry_hold_ns": S // 2} if hold else {"port_recovery": dice.random() < 0.7}
    recovery = dice.choice(["go-back-n", "selective"])
    net = FailoverNet(planes=planes, seed=seed, recovery=recovery, timeout_ns=4096 << 14, speed=SPEED, **library)
    net.worsen(loss=dice.choice([0, 0.003]), duplicate=dice.choice([0, 0.01]))
    flow = net.join()
    story = Story(net, flow, 120)
    for _ in range(4):
        net.run(lambda: story.over, within=round(dice.uniform(0, 0.4) * S), must=False)
        which = {"plane": dice.randrange(planes) if net.moves() == [] else net.events_of(PortMoved)[0].plane}
        which |= dice.choice([{}, {"src": 0}, {"src": 1}])
        net.cut(**which)
        net.run(lambda: story.over, within=round(dice.uniform(0.02, 2.5) * S), must=False)
        net.heal(**which)
    net.run(lambda: story.over or net.events_of(QpError) or net.events_of(QpError, 1), within=20 * S, must=False)
    died = bool(net.events_of(QpError) or net.events_of(QpError, 1))
    assert story.over or died
    fresh = [story.flow.region()[at * story.SIZE : (at + 1) * story.SIZE] for at in range(story.SLOTS)]
    if story.over:
        assert {bytes(slot) for slot in fresh} == {b"\xee" * story.SIZE}


def test_defaults_are_those_of_the_library():
    """ncclParamIbResiliencyPort...: 10, 200, 5, 5000, 4000 ms, 5, 5."""
    assert FailoverTimes() == FailoverTimes(10 * MS, 200 * MS, 5, 5 * S, 4 * S, 5, 5)


def test_who_has_no_failover_refuses_what_it_says():
    net = RcNet()
    flow = net.join()
    buffer = memoryview(bytearray(100))
    said = (wire.emit_read, (0, 0, 1)), (wire.emit_flags, (0, 0, bytes(64))), (wire.emit_message, (0, 0))
    for emit, told in said:
        size = emit(buffer, flow.qpn[1], *told)
        net.hosts[1].handle_datagram(buffer[:size], 0, 0, 0, 0, net.now, net.now)
    assert net.counters(1)["refused_qp_state"] == 3


def test_a_read_with_another_key_closes_no_port():
    net = FailoverNet()
    flow = net.join()
    buffer = memoryview(bytearray(100))
    own = flow.attributes[1].ports[0]
    size = wire.emit_read(buffer, own.qpn, 0, 1, own.rkey ^ 1)
    net.hosts[1].handle_datagram(buffer[:size], 0, 0, 0, 0, net.now, net.now)
    flow.write(pattern(100_000))
    net.run(net.completed, within=S)
    assert net.moves(1) == []


@pytest.mark.parametrize("recovery", [False, True])
@pytest.mark.parametrize("ends", ["destroy_qp", "reset_qp"])
def test_a_program_that_takes_its_qp_away_leaves_no_timer_behind(ends, recovery):
    """While its flags are still to be read, and while the port is asked for."""
    for waited_ns in (0, 300 * MS):
        net, flow = cut_and_posted(port_recovery=recovery)
        net.when("RECOVERING" if recovery else "LOST")
        net.run(within=waited_ns, must=False)
        for host in (0, 1):
            getattr(net.hosts[host], ends)(flow.qpn[host])
        before = net.now
        net.run(within=60 * S, must=False)
        assert net.now >= before
        assert all(net.hosts[host].next_timeout() is None for host in (0, 1))
