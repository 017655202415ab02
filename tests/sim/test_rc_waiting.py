"""The RoCE-like reliable connection: what counts as waiting, for retries and for stalls."""

import pytest

from mrc_testbed.hosts.common.events import StallEnded
from mrc_testbed.hosts.rc.config import RECOVERIES
from tests.sim.rcnet import RcNet, stream
from tests.sim.simnet import MS, QpError, T, WriteCompleted, pattern

EACH = pytest.mark.parametrize("recovery", RECOVERIES)
TIMEOUT = 4096 << 16


def warmed_up_in_silence(recovery, timeouts=3):
    """A QP over a silent path, whose probes have waited so long."""
    net = RcNet(recovery=recovery, timeout_ns=TIMEOUT, retries=7)
    flow = net.join()
    net.cut()
    for _ in range(3):
        net.hosts[0].probe_paths(1, net.now)
        net.run(within=timeouts * TIMEOUT // 3, must=False)
    return net, flow


@EACH
def test_the_retries_of_a_write_begin_with_the_write_and_not_with_probes_before_it(recovery):
    net, flow = warmed_up_in_silence(recovery)
    posted_ns = net.now
    flow.write(pattern(100))
    assert net.run(lambda: net.events_of(QpError), within=9 * TIMEOUT) == 8 * TIMEOUT
    assert net.hosts[0].stalled(net.now) == {flow.qpn[0]: posted_ns}


@EACH
def test_a_silence_that_ends_in_the_last_retry_of_a_write_costs_time_alone(recovery):
    net, flow = warmed_up_in_silence(recovery)
    posted_ns = net.now
    flow.write(pattern(100 * 4096))
    net.run(within=7 * TIMEOUT - MS, must=False)
    net.heal()
    net.run(net.completed, within=2 * TIMEOUT)
    (stall,) = net.events_of(StallEnded)
    assert stall.begin_ns == posted_ns
    assert [type(event) for event in net.events[0]] == [StallEnded, WriteCompleted]


@EACH
def test_probes_alone_neither_end_a_qp_nor_are_a_stall(recovery):
    net, flow = warmed_up_in_silence(recovery, timeouts=20)
    assert net.counters()["timeouts"] >= 15
    assert net.hosts[0].stalled(net.now) == {}
    net.heal()
    net.run(lambda: net.hosts[0].path_report(1).silent_qps == [], within=2 * TIMEOUT)
    flow.write(pattern(4096))
    net.run(net.completed, within=3 * T)
    assert [type(event) for event in net.events[0]] == [WriteCompleted]


@EACH
def test_work_that_comes_while_a_port_is_paused_waits_from_when_it_came(recovery):
    net = RcNet(recovery=recovery)
    flow = net.join()
    stream(net, flow, 64)
    net.run(net.completed, within=20 * T)
    net.heard_pause(0, 0, True)
    posted_ns = net.now
    flow.write(pattern(4096), wr_id=9)
    net.run(within=25 * T, must=False)
    assert net.hosts[0].stalled(net.now) == {flow.qpn[0]: posted_ns}
    net.heard_pause(0, 0, False)
    net.run(lambda: len(net.completed()) == 2, within=3 * T)
    (stall,) = net.events_of(StallEnded)
    assert (stall.begin_ns, stall.end_ns) == (posted_ns, pytest.approx(posted_ns + 26 * T, abs=T // 10))
    assert net.hosts[0].stalled(net.now + 100 * T) == {}


def test_a_probe_that_a_paused_port_holds_back_is_no_stall():
    net = RcNet()
    net.join()
    net.heard_pause(0, 0, True)
    net.hosts[0].probe_paths(1, net.now)
    net.run(within=25 * T, must=False)
    assert net.hosts[0].stalled(net.now) == {}


@EACH
@pytest.mark.parametrize("timeout", [4096 << 15, 4096 << 20])
def test_a_silent_peer_keeps_the_port_from_no_other_qp(recovery, timeout):
    """What was long lost on the way to one peer filled the window of the host: others sent nothing while it lived."""
    net = RcNet(hosts=3, recovery=recovery, timeout_ns=timeout)
    for peer in (1, 2):
        stream(net, net.join(0, peer), 8000)
    net.cut(dst=1)
    net.run(within=35 * T, must=False)
    before = net.delivered(2)
    net.run(within=10 * T, must=False)
    assert not net.events_of(QpError)
    assert net.delivered(2) - before > 250, "half of the port at least"
