"""Packets that no peer's endpoint sent: what does not fit the QPs that were set up has no effect and is counted."""

import pytest

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from tests.sim.simnet import PORT, Net, pattern
from tests.sim.test_misbehaving_peer import changed
from tests.sim.test_responder import PACKET, give, nack, sent_by


def set_up():
    """A host with one packet written and not acknowledged, and that packet."""
    net = Net(hosts=3)
    flow = net.join()
    return net, flow, sent_by(net, flow, (2 * PACKET, None))[0]


def sack(flow, source_qpn):
    """Acknowledges everything that host 0 sent first."""
    buffer = memoryview(bytearray(100))
    psn = flow.attributes[0].psn
    size = wire.emit_sack(buffer, flow.qpn[0], psn, 0, 0, PORT, source_qpn, 0, 0, 1, 0, 0, 0, 16)
    return bytes(buffer[:size])


def probe(flow, source_qpn):
    """Asks host 0 what has come."""
    buffer = memoryview(bytearray(100))
    return bytes(buffer[: wire.emit_probe(buffer, flow.qpn[0], 7, source_qpn, 0)])


@pytest.mark.parametrize("make", [sack, probe])
def test_what_names_another_qp_of_its_sender_is_refused(make):
    net, flow, _ = set_up()
    before = net.counters()
    assert not give(net, make(flow, flow.qpn[1] + 1), host=0, traffic_class=bth.CLASS_CONTROL)
    after = net.counters()
    assert {name for name in after if after[name] != before[name]} == {"refused_wrong_qp"}
    give(net, make(flow, flow.qpn[1]), host=0)
    assert net.counters()["refused_wrong_qp"] == 1


def test_a_nack_that_names_another_qp_of_its_sender_sends_nothing_again():
    net, flow, packet = set_up()
    forged = changed(nack(net, flow, packet, wire.NACK_TRIMMED, PORT), b20=(flow.qpn[1] + 1).to_bytes(2, "big"))
    assert not give(net, forged, host=0)
    assert net.counters()["refused_wrong_qp"] == 1
    assert net.counters()["nacks_received"] == net.counters()["retransmitted"] == 0


@pytest.mark.parametrize(
    ("source", "field", "reason"), [(2, None, "wrong_peer"), (9, None, "unknown_peer"), (0, "b5", "unknown_qp")]
)
def test_data_of_another_host_or_for_another_qp_writes_nothing(source, field, reason):
    net, flow, packet = set_up()
    forged = changed(packet, **({field: b"\0\0\x63"} if field else {}))
    net.hosts[1].handle_datagram(memoryview(forged), source, 0, PORT, wire.CLASS_TRIMMABLE, net.now, net.now)
    assert net.counters(1)[f"refused_{reason}"] == 1
    assert net.counters(1)["data_received"] == 0
    assert not any(flow.region())


def test_data_that_fit_in_every_field_are_written_whoever_sent_them():
    """No endpoint can tell them without a secret; the books of the run do (tests/unit/checks/test_senders.py)."""
    net, flow, packet = set_up()
    forged = pattern(PACKET, 5)
    give(net, packet.replace(pattern(2 * PACKET, 0)[:PACKET], forged))
    assert net.counters(1)["data_received"] == 1
    assert flow.region()[:PACKET] == forged
