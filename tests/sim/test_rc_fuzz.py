"""The RoCE-like transport under whatever networks and peers may do: every byte is right, or the QP says it is dead."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire as shared
from mrc_testbed.hosts.rc import wire
from mrc_testbed.hosts.rc.config import RECOVERIES
from tests.examples import examples
from tests.sim.rcnet import RcNet
from tests.sim.simnet import ImmediateDelivered, QpError, T, pattern

PAYLOAD = 256
TIMEOUT = 6 * T
EACH = pytest.mark.parametrize("recovery", RECOVERIES)


def small(recovery, seed=1, hosts=2, **config):
    return RcNet(hosts=hosts, recovery=recovery, seed=seed, payload_bytes=PAYLOAD, timeout_ns=TIMEOUT, **config)


class Shuffler:
    """Holds some packets back, so that later ones overtake them, and loses or repeats others."""

    def __init__(self, net, seed, late, lose, repeat):
        self.net, self.random = net, Random(seed)
        self.late, self.lose, self.repeat = late, lose, repeat
        self.inner = net._carry
        net._carry = self.carry
        self.held = []

    def carry(self, src, token, traffic_class, packet):
        draw = self.random.random()
        if draw < self.lose:
            return
        if draw < self.lose + self.late:
            self.held.append((src, token, traffic_class, packet))
            return
        self.inner(src, token, traffic_class, packet)
        if draw > 1 - self.repeat:
            self.inner(src, token, traffic_class, packet)
        if self.held and self.random.random() < 0.4:
            self.inner(*self.held.pop(self.random.randrange(len(self.held))))


@EACH
@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 1 << 16),
    late=st.sampled_from([0.0, 0.02, 0.2]),
    lose=st.sampled_from([0.0, 0.02, 0.2, 0.6]),
    repeat=st.sampled_from([0.0, 0.1]),
    qps=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 20 * PAYLOAD), min_size=1, max_size=6),
    psn=st.sampled_from([0, (1 << 24) - 5, 1 << 23]),
    retries=st.integers(0, 7),
)
@pytest.mark.nightly(keep=1)
def test_every_byte_is_right_or_the_qp_is_dead(recovery, seed, late, lose, repeat, qps, sizes, psn, retries):
    net = small(recovery, seed, retries=retries)
    flows = [net.join(psn_a=psn) for _ in range(qps)]
    Shuffler(net, seed, late, lose, repeat)
    for flow in flows:
        for number, size in enumerate(sizes):
            flow.write(pattern(size, number), offset=number * 20 * PAYLOAD, wr_id=number, immediate=number)

    def settled():
        dead = {event.qpn for host in (0, 1) for event in net.events_of(QpError, host)}
        completed = {(event.qpn, event.wr_id) for event in net.completed()}
        return all(
            flow.qpn[0] in dead or {(flow.qpn[0], number) for number in range(len(sizes))} <= completed
            for flow in flows
        )

    net.run(settled, within=(retries + 1) * TIMEOUT * 600)
    for flow in flows:
        delivered = [event.immediate for event in net.events_of(ImmediateDelivered, 1) if event.qpn == flow.qpn[1]]
        assert delivered == list(range(len(delivered))), "in order, none twice"
        for number in delivered:
            at = number * 20 * PAYLOAD
            assert bytes(flow.region()[at : at + sizes[number]]) == pattern(sizes[number], number)


class Attack:
    """An endpoint in the middle of a transfer, and real packets of both directions to be changed."""

    def __init__(self, recovery, seed, icrc=False):
        self.net = net = small(recovery, seed, hosts=3, icrc=icrc, congestion_control="dcqcn")
        self.flow = net.join(region_bytes=1 << 16)
        self.idle = net.join(0, 2, region_bytes=4096)
        self.corpus = []
        net.taps.append(lambda src, _, kind, packet: self.corpus.append((src, kind, packet)))
        net.worsen(loss=0.05, ce=True)
        for host in (0, 1):
            for number in range(4):
                self.flow.write(pattern(40 * PAYLOAD), number * 41 * PAYLOAD, number, number, source=host)
        net.run(within=3 * T, must=False)
        self.random = Random(seed)
        self.now = net.now

    def packet(self):
        """One hostile input: (bytes, from which host, traffic class)."""
        random = self.random
        src, kind, packet = random.choice(self.corpus)
        changed = bytearray(packet)
        match random.randrange(6):
            case 0:
                return random.randbytes(random.randrange(80)), 1, kind
            case 1:
                for _ in range(random.randint(1, 3)):
                    changed[random.randrange(min(len(changed), 40))] = random.randrange(256)
            case 2:
                del changed[random.randrange(len(changed)) :]
            case 3:
                changed[5:8] = random.choice([*self.flow.qpn.values(), *self.idle.qpn.values(), 999]).to_bytes(3, "big")
            case 4:
                return packet, random.randrange(4), random.randrange(256)
            case _:
                changed[0] = random.choice([*range(wire.WRITE_FIRST, 0x0C), wire.ACKNOWLEDGE, wire.CNP])
        return bytes(changed), src, kind

    def run(self, inputs):
        target, buffer = self.net.hosts[0], self.net.buffer
        for number in range(inputs):
            packet, peer, kind = self.packet()
            self.now += 50_000
            target.handle_datagram(memoryview(packet), peer, 0, 0xC000, kind, self.now, self.now)
            if number % 16 == 0:
                target.handle_timeout(self.now)
                while target.poll_transmit(self.now, buffer) is not None:
                    pass
                while target.poll_event() is not None:
                    pass
                target.next_timeout()
        return target.counters()


@EACH
def test_hostile_packets_never_crash_an_endpoint_and_each_is_counted(recovery):
    total = {}
    for seed in range(40):
        for name, count in Attack(recovery, seed).run(1_000).items():
            total[name] = total.get(name, 0) + count
    refused = {name for name in total if name.startswith("refused_") and total[name]}
    expected = {"too_short", "unknown_opcode", "bad_version", "bad_length", "unknown_peer", "unknown_qp", "wrong_peer"}
    expected |= {"qp_state", "psn_window", "acks_unsent"}
    # In order, nearly all that is changed is of the wrong message or length; what is not in order is not looked at.
    expected |= {"wrong_length", "out_of_message"} if recovery == "go-back-n" else {"remote_access"}
    assert {f"refused_{name}" for name in expected} <= refused
    assert total["qp_errors"] > 0


@EACH
def test_with_the_crc_on_every_change_is_noticed(recovery):
    counters = Attack(recovery, 3, icrc=True).run(5_000)
    assert counters["refused_bad_icrc"] > 1_000
    assert counters["qp_errors"] == 0


@EACH
@pytest.mark.parametrize("kind", ["middle first", "first twice", "longer", "shorter", "syndrome", "unsent", "old nak"])
def test_what_no_requester_sends_ends_the_qp_or_has_no_effect(recovery, kind):
    net = small(recovery)
    flow = net.join(psn_a=10, psn_b=50)
    flow.write(pattern(4 * PAYLOAD), source=1)
    net.run(lambda: net.completed(1))
    mine, theirs = flow.attributes[0], flow.attributes[1]
    buffer, placed = net.buffer, recovery != "go-back-n"
    reth = (mine.region_address, mine.rkey, 2 * PAYLOAD)

    def data(opcode, psn, length=PAYLOAD, place=reth):
        has_reth = placed or opcode in wire.BEGINS_MESSAGE
        payload = memoryview(bytes(length))
        return wire.emit_data(buffer, opcode, mine.qpn, psn, place if has_reth else None, payload, None)

    def say(size):
        net.hosts[0].handle_datagram(buffer[:size], 1, 0, 0xC000, 0, net.now, net.now)

    match kind:
        case "middle first":
            say(data(wire.WRITE_MIDDLE, 54))
            wrong = "out_of_message"
        case "first twice":
            say(data(wire.WRITE_FIRST, 54))
            say(data(wire.WRITE_FIRST, 55))
            wrong = "out_of_message"
        case "longer":
            say(data(wire.WRITE_ONLY, 54, 3 * PAYLOAD))
            wrong = "wrong_length"
        case "shorter":
            say(data(wire.WRITE_ONLY, 54, PAYLOAD))
            wrong = "wrong_length"
        case "syndrome":
            flow.write(pattern(10))
            net._drain(0)
            say(wire.emit_ack(buffer, mine.qpn, 10, 0x65, 0))
            wrong = "unknown_syndrome"
        case "unsent":
            say(wire.emit_ack(buffer, mine.qpn, 40, wire.SYNDROME_ACK, 0))
            wrong = "acks_unsent"
        case _:
            say(wire.emit_ack(buffer, mine.qpn, 9, wire.SYNDROME_NAK_SEQUENCE, 0))
            wrong = "old_nak"
    fatal = wrong in ("out_of_message", "wrong_length")
    # A packet that says for itself where it belongs needs no message around it.
    harmless = placed and (wrong == "out_of_message" or kind == "shorter")
    assert net.counters()[f"refused_{wrong}"] == (0 if harmless else 1)
    assert net.counters()["qp_errors"] == (1 if fatal and not harmless else 0)
    assert theirs.qpn


# --- packets ---


@given(
    opcode=st.sampled_from(range(wire.WRITE_FIRST, wire.WRITE_ONLY_IMM + 1)),
    qpn=st.integers(0, (1 << 24) - 1),
    psn=st.integers(0, (1 << 24) - 1),
    reth=st.tuples(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1)),
    payload=st.binary(max_size=40),
    immediate=st.integers(0, (1 << 32) - 1),
    selective=st.booleans(),
)
def test_data_reads_back(opcode, qpn, psn, reth, payload, immediate, selective):
    overheads = wire.SELECTIVE_OVERHEAD if selective else wire.GO_BACK_N_OVERHEAD
    has_reth = selective or opcode in wire.BEGINS_MESSAGE
    has_immediate = opcode in wire.HAS_IMMEDIATE
    buffer = memoryview(bytearray(200))
    size = wire.emit_data(
        buffer,
        opcode,
        qpn,
        psn | bth.ACK_REQUEST,
        reth if has_reth else None,
        memoryview(payload),
        immediate if has_immediate else None,
    )
    bth.seal(buffer, size)
    view = buffer[:size]
    assert wire.check(view, True, overheads) is None
    assert shared.destination_qpn(view) == qpn
    assert wire.bits_and_psn(view) == psn | bth.ACK_REQUEST
    assert not has_reth or wire.parse_reth(view) == reth
    assert not has_immediate or wire.parse_immediate(view, overheads) == immediate
    start, end = wire.payload_bounds(view, overheads)
    assert bytes(view[start:end]) == payload
    assert size % 4 == 0


@given(st.binary(max_size=64))
def test_any_bytes_are_checked_without_a_crash(packet):
    for overheads in (wire.SELECTIVE_OVERHEAD, wire.GO_BACK_N_OVERHEAD):
        refusal = wire.check(memoryview(packet), False, overheads)
        if refusal is None and overheads[packet[0]]:
            start, end = wire.payload_bounds(memoryview(packet), overheads)
            assert 12 <= start <= end <= len(packet) - 4


def test_packets_are_those_of_the_specification():
    """Written down by hand from the layouts of InfiniBand 1.4 (9.2, 9.3) and Annex A17."""
    buffer = memoryview(bytearray(64))
    size = wire.emit_ack(buffer, 0x123456, 0xABCDEF, 0x60, 0x000102)
    assert bytes(buffer[:size]).hex() == "1100ffff00123456" + "00abcdef" + "60000102" + "00000000"
    size = wire.emit_cnp(buffer, 0x123456)
    assert bytes(buffer[:size]).hex() == "8100ffff40123456" + "00000000" + "00" * 16 + "00000000"
    reth = (0x1122334455667788, 0x99AABBCC, 5)
    psn = 0xABCDEF | bth.ACK_REQUEST
    size = wire.emit_data(buffer, wire.WRITE_ONLY_IMM, 7, psn, reth, memoryview(b"hello"), 0xDEADBEEF)
    assert bytes(buffer[:size]).hex() == (
        "0b30ffff00000007" + "80abcdef" + "1122334455667788" + "99aabbcc" + "00000005" + "deadbeef"
        "68656c6c6f000000"
        "00000000"
    )


def test_source_ports_are_those_of_linux():
    """`rdma_calc_flow_label` and `rdma_flow_label_to_udp_sport`, worked out by hand."""
    assert wire.source_port(16, 16) == 0xC000 | 0x100
    # 0x1000 * 0x2000 = 0x2000000; ^ 0x20 (bits 20 up) = 0x2000020, 20 bits: 0x00020.
    assert wire.source_port(0x1000, 0x2000) == 0xC000 | 0x20
    # 0x300 * 0x300 = 0x90000; the two bits above 14 (0x90000 >> 14 = 0x24) come down.
    assert wire.source_port(0x300, 0x300) == 0xC000 | 0x24
