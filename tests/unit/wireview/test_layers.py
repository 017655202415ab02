"""Golden bytes of every packet type, and two codecs written apart that agree: hosts/mrc/wire.py and scapy layers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.compat import raw
from scapy.layers.inet import UDP
from scapy.packet import Raw

from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.wireview import layers
from mrc_testbed.testbed.wireview.names import OPCODES
from tests.examples import examples
from tests.vectors import VECTORS, Vector

u8, u16, u24, u32, u64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 24, 32, 64))
QUIET = {"opcode", "pkey", "tsr", "ftype", "sack_offset", "syndrome"}
"""Fields whose default is not 0: a vector gives them, or they are as they always are."""


def emitted(emit, *arguments) -> bytes:
    buffer = memoryview(bytearray(9000))
    return bytes(buffer[: emit(buffer, *arguments)])


def all_layers(packet) -> dict[str, dict]:
    found = {}
    while packet:
        found[type(packet).__name__] = dict(packet.fields)
        packet = packet.payload
    return found


def built(vector: Vector) -> bytes:
    packet = None
    for name, fields in vector.layers.items():
        layer = getattr(layers, name)(**fields)
        packet = layer if packet is None else packet / layer
    return raw(packet / layers.ICRC(icrc=0))


def test_every_opcode_has_a_vector():
    assert {vector.packet[0] for vector in VECTORS.values()} == set(OPCODES)
    assert len({vector.packet for vector in VECTORS.values()}) == len(VECTORS)


@pytest.mark.parametrize("name", VECTORS)
def test_wire_emits_and_accepts_the_golden_bytes(name):
    vector = VECTORS[name]
    if vector.emit is not None:
        emit, arguments = vector.emit
        assert emitted(emit, *arguments).hex() == vector.packet.hex()
    assert wire.check(memoryview(vector.packet), False) is None


@pytest.mark.parametrize("name", VECTORS)
def test_scapy_builds_the_golden_bytes(name):
    assert built(VECTORS[name]).hex() == VECTORS[name].packet.hex()


@pytest.mark.parametrize("name", VECTORS)
def test_scapy_finds_the_golden_fields(name):
    vector = VECTORS[name]
    found = all_layers(layers.BTH(vector.packet))
    assert list(found) == [*vector.layers, "ICRC"]
    for layer, fields in vector.layers.items():
        assert {key: found[layer][key] for key in fields} == fields
        others = {key: value for key, value in found[layer].items() if key not in fields and key not in QUIET}
        assert not any(value.strip(b"\0") if isinstance(value, bytes) else value for value in others.values()), others


def test_the_icrc_is_crc32_as_gzip_computes_it():
    # printf ... | gzip -c | tail -c8 of "write only" without its trailer says 96025db1, little-endian.
    fields = VECTORS["write only"].layers
    packet = layers.BTH(**fields["BTH"]) / layers.METH(**fields["METH"]) / layers.TSETH(**fields["TSETH"])
    sealed = raw(packet / layers.RETH(**fields["RETH"]) / layers.Data(data=b"abcd") / layers.ICRC())
    ours = bytearray(VECTORS["write only"].packet)
    bth.seal(memoryview(ours), len(ours))
    assert sealed == ours
    assert sealed[-4:].hex() == "b15d0296"
    assert wire.check(memoryview(sealed), True) is None


def test_scapy_fills_in_padding_and_icrc():
    packet = raw(
        layers.BTH(ts=1) / layers.METH() / layers.TSETH() / layers.RETH() / layers.Data(data=b"12345") / layers.ICRC()
    )
    assert packet[1] == 0x30
    assert len(packet) % 4 == 0
    assert wire.check(memoryview(packet), True) is None


def test_udp_port_4791_is_mrc():
    packet = UDP(raw(UDP(sport=0xC000) / layers.BTH(VECTORS["nack"].packet)))
    assert packet.dport == 4791
    assert packet[layers.NETH].reason == wire.NACK_TRIMMED_LASTHOP


@pytest.mark.parametrize("name", VECTORS)
def test_scapy_reads_every_truncation(name):
    whole = VECTORS[name].packet
    for size in range(len(whole)):
        packet = UDP(raw(UDP(sport=0xC000, dport=4791) / Raw(whole[:size])))
        assert raw(packet) == raw(UDP(raw(packet)))
        assert packet.show(dump=True)


def test_a_trimmed_packet_ends_after_its_headers():
    packet = layers.BTH(VECTORS["write only"].packet[:36])
    assert packet[layers.RETH].length == 4
    assert layers.Data not in packet


data_opcodes = st.sampled_from([*range(bth.WRITE_FIRST, wire.LAST_DATA_OPCODE + 1)])


@settings(max_examples=examples(50), deadline=None)
@given(data_opcodes, u24, u24, u16, u16, u16, u64, u32, u32, st.binary(max_size=60), u32)
def test_both_read_data_alike(opcode, qpn, psn, rqmsn, msn, stamp, address, rkey, length, payload, immediate):
    carried = immediate if opcode in bth.HAS_IMMEDIATE else None
    fields = (opcode, qpn, psn | wire.TIMESTAMP, rqmsn, msn, stamp, address, rkey, length)
    packet = layers.BTH(emitted(wire.emit_data, *fields, memoryview(payload), carried))
    reth, meth = packet[layers.RETH], packet[layers.METH]
    assert (packet.opcode, packet.dqpn, packet.psn, meth.rqmsn, meth.msn) == (opcode, qpn, psn, rqmsn, msn)
    assert (packet[layers.TSETH].timestamp, reth.address, reth.rkey, reth.length) == (stamp, address, rkey, length)
    assert packet[layers.Data].data == payload
    assert carried is None or packet[layers.ImmDt].immediate == immediate


@settings(max_examples=examples(50), deadline=None)
@given(
    qpn=u24, cack=u24, m=st.integers(0, 2), pr=st.booleans(), offset=st.integers(-32768, 32767),
    plane=st.integers(0, 15),
    uplink=u8, port=u16, ports=u8, mpr=u8, base=st.integers(-32768, 32767), bitmap=u64, stamp=u16, received=u24,
)  # fmt: skip
def test_wire_reads_sacks_that_scapy_built(
    qpn, cack, m, pr, offset, plane, uplink, port, ports, mpr, base, bitmap, stamp, received
):
    seth = layers.SETH(
        m=m, pr=pr, offset_or_probe=offset, ev_plane=plane, ev_uplink=uplink, ev_port=port, ports_down=ports, cack=cack,
        mpr=mpr, sack_offset=base, bitmap=bitmap,
    )  # fmt: skip
    packet = memoryview(
        raw(
            layers.BTH(opcode=0xDC, pad=0, dqpn=qpn, psn=cack)
            / seth
            / layers.CCState(timestamp=stamp, received=received)
            / layers.ICRC()
        )
    )
    assert wire.check(packet, True) is None
    sack = wire.parse_sack(packet)
    assert (sack.qpn, sack.bits_psn, sack.flags) == (qpn, cack, m << 5 | pr << 1)
    assert (sack.offset_or_probe, sack.entropy) == (offset & 0xFFFF, plane << 24 | uplink << 16 | port)
    assert sack.ports_cack == ports << 24 | cack
    assert (sack.mpr, sack.sack_offset, sack.bitmap, sack.timestamp) == (mpr, base, bitmap, stamp)
    assert sack.penalty_received == received


@settings(max_examples=examples(50), deadline=None)
@given(u24, u24, u8, st.integers(0, 15), u8, u16, u16)
def test_wire_reads_nacks_that_scapy_built(qpn, psn, reason, plane, uplink, port, stamp):
    neth = layers.NETH(
        reason=reason, ev_plane=plane, ev_uplink=uplink, ev_port=port, nack_psn=psn, timestamp=stamp, vendor=9
    )
    packet = memoryview(raw(layers.BTH(opcode=0xDD, pad=0, dqpn=qpn, psn=psn) / neth / layers.ICRC()))
    assert wire.check(packet, True) is None
    assert wire.parse_nack(packet) == (qpn, psn, reason, plane << 24 | uplink << 16 | port, stamp)
