"""Questions to switches as packets, and the answers that kernels send."""

from __future__ import annotations

from ipaddress import IPv6Address
from struct import pack, unpack_from

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.oam.packets import Heard, heard, packet_of
from mrc_testbed.testbed.oam.probes import HopSays, Probe
from mrc_testbed.topos import usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan

PLAN = build_plan(clos2_shape(2, 2, 2, 2, 10**8, 0)).answering()
H0, H3 = PLAN.hosts[0], PLAN.hosts[3]
PATH = PLAN.paths(H0, H3)[3]
ME = 0x1234


def passing(hops: int, number: int = 7) -> Probe:
    return Probe(H0, PATH.id.plane, PATH.way, hops, number, H3, PATH.id)


def asking(hops: int, number: int = 7) -> Probe:
    return Probe(H0, PATH.id.plane, PATH.way, hops, number)


def is_sealed(message: bytes, source: bytes, destination: bytes) -> bool:
    data = source + destination + pack(">II", len(message), 58) + message
    total = sum(unpack_from(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


@given(st.integers(1, 4), st.integers(0, 1 << 20))
def test_a_packet_of_the_path_has_its_lists_and_ends_where_it_should(hops: int, number: int) -> None:
    packet = packet_of(passing(hops, number), ME)
    assert packet[7] == hops
    assert str(IPv6Address(packet[24:40])) == PATH.outer
    assert usid.host_of_address(str(IPv6Address(packet[8:24]))) == 0
    inner = packet[40:]
    assert unpack_from(">I", inner)[0] & 0xFFFFF == PATH.id.flow_label == unpack_from(">I", packet)[0] & 0xFFFFF
    assert usid.split_inner(str(IPv6Address(inner[24:40]))) == (3, PATH.id)
    assert usid.split_inner(str(IPv6Address(inner[8:24]))) == (0, PATH.id)
    assert is_sealed(inner[40:], inner[8:24], inner[24:40])
    assert len(packet) == 40 + unpack_from(">H", packet, 4)[0] == 80 + unpack_from(">H", inner, 4)[0]
    assert 14 + len(packet) >= 14 + 40 + 40 + 8 + 12, "the port program reads that much"


def test_a_packet_for_a_switch_is_sealed_for_the_address_that_is_left_of_its_list() -> None:
    packet = packet_of(asking(2), ME)
    assert str(IPv6Address(packet[24:40])) == "fcbb:bb00:1100:2101::"
    assert is_sealed(packet[40:], packet[8:24], IPv6Address("fcbb:bb00:2101::").packed)
    assert not is_sealed(packet[40:], packet[8:24], packet[24:40])


def error(kind: int, code: int, quoted: bytes) -> bytes:
    return pack(">BBHI", kind, code, 0, 0) + quoted


@pytest.mark.parametrize(
    ("kind", "code", "meant"),
    [(3, 0, HopSays.HOPS_ENDED), (1, 0, HopSays.NO_ROUTE), (4, 1, HopSays.NOT_TAKEN), (2, 0, None)],
)
def test_errors_say_what_they_are_about_and_what_was_left(kind: int, code: int, meant: HopSays | None) -> None:
    for probe in (passing(1), asking(3)):
        packet = bytearray(packet_of(probe, ME))
        packet[24:40] = IPv6Address("fcbb:bb00:2101:1101:d101::").packed
        wanted = None if meant is None else Heard(meant, 7, (0x2101, 0x1101, 0xD101))
        assert heard(error(kind, code, bytes(packet)), ME) == wanted
        assert heard(error(kind, code, bytes(packet)), ME + 1) is None, "somebody else asked"


def test_a_reply_says_its_number() -> None:
    assert heard(pack(">BBHHH", 129, 0, 0, ME, 9) + bytes(56), ME) == Heard(HopSays.REPLY, 9)
    assert heard(pack(">BBHHH", 128, 0, 0, ME, 9), ME) is None, "a question of somebody"


@given(st.binary(max_size=120))
def test_no_message_is_too_short_or_too_odd(message: bytes) -> None:
    heard(message, ME)
    heard(error(3, 0, message), ME)
