"""EV, inner address, uSID and outer address are inverse to each other over the whole range they can number."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.topos import usid
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.graph import SwitchPlace
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape
from tests.examples import examples

unhurried = settings(deadline=None, max_examples=examples(40))
planes = st.integers(0, 15)
indexes = st.integers(0, 255)
hosts = st.integers(0, 0xFFFF)
path_ids = st.builds(usid.PathId, planes, indexes)
t0s = st.builds(SwitchPlace, st.just(0), indexes)
middles = st.lists(st.builds(SwitchPlace, st.integers(0, 3), indexes), max_size=3)
ways = t0s.map(lambda one: (one,)) | st.tuples(t0s, middles, t0s).map(lambda ends: (ends[0], *ends[1], ends[2]))
segments = st.builds(usid.Segments, planes, ways, indexes)


@given(path_ids, st.integers(0, 0xFFFF))
def test_ev_and_path_are_inverse(path: usid.PathId, port: int) -> None:
    value = usid.ev(path, port)
    assert value < 1 << 28
    assert value >> 16 == path.flow_label
    assert usid.split_ev(value) == (path, port)


@given(st.integers(0, (1 << 28) - 1).filter(lambda value: value >> 28 == 0))
def test_every_version_0_ev_is_a_path(value: int) -> None:
    path, port = usid.split_ev(value)
    assert usid.ev(path, port) == value


@given(st.integers(1 << 28, (1 << 32) - 1))
def test_an_ev_of_another_version_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="version"):
        usid.split_ev(value)


@given(hosts, path_ids)
def test_inner_address_and_path_are_inverse(host: int, path: usid.PathId) -> None:
    assert usid.split_inner(usid.inner_address(host, path)) == (host, path)


@given(hosts, path_ids)
def test_inner_address_reads_as_documented(host: int, path: usid.PathId) -> None:
    written = f"fd00:0:0:{host:x}:0:{path.plane:x}:0:{path.uplink:x}"
    assert IPv6Address(written) == IPv6Address(usid.inner_address(host, path))


@given(hosts)
def test_plain_address_is_the_hosts_but_no_ev_address(host: int) -> None:
    address = usid.plain_address(host)
    prefix = usid.host_prefix(host).removesuffix("/64")
    assert int(IPv6Address(address)) >> 64 == int(IPv6Address(prefix)) >> 64
    with pytest.raises(ValueError, match="not an EV address"):
        usid.split_inner(address)


@given(segments)
def test_outer_address_and_segments_are_inverse(path: usid.Segments) -> None:
    assert usid.split_outer(usid.outer_address(path)) == path


@given(st.sampled_from((usid.TIER_T0, usid.TIER_T0 + 3, usid.TIER_HOST)), planes, indexes)
def test_usid_and_its_parts_are_inverse(tier: int, plane: int, index: int) -> None:
    value = usid.usid(tier, plane, index)
    assert 0 < value < 1 << 16
    assert usid.split_usid(value) == (tier, plane, index)
    assert usid.locator(value) == f"fcbb:bb00:{value:x}::/48"


@given(st.lists(st.integers(1, 0xFFFF), max_size=6))
def test_container_holds_its_uids_in_order(uids: list[int]) -> None:
    assert usid.split_container(usid.container(uids)) == uids


@pytest.mark.parametrize("address", ["fcbb:bb01:1000:d000::", "fd00::1", "::"])
def test_an_address_outside_the_block_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not in the uSID block"):
        usid.split_container(address)


@pytest.mark.parametrize(
    "address",
    [
        "fcbb:bb00::",  # empty list
        "fcbb:bb00:1000::",  # a switch last: the kernel would lose the packet
        "fcbb:bb00:1000:d100::",  # two planes
        "fcbb:bb00:1000:2000:d000::",  # T1 straight to a host
        "fcbb:bb00:1000:2000:1001:d000:d000::",  # something after the host
    ],
)
def test_an_address_that_is_no_path_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        usid.split_outer(address)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: usid.usid(usid.TIER_T0, 16, 0),
        lambda: usid.usid(usid.TIER_T0, 0, 256),
        lambda: usid.usid(16, 0, 0),
        lambda: usid.usid(1, 0, -1),
        lambda: usid.PathId(16, 0),
        lambda: usid.PathId(0, 256),
        lambda: usid.ev(usid.PathId(0, 0), 1 << 16),
        lambda: usid.inner_address(1 << 16, usid.PathId(0, 0)),
    ],
)
def test_a_number_too_wide_is_refused_instead_of_becoming_another(broken: object) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        broken()  # type: ignore[operator]


def test_a_seventh_usid_is_refused() -> None:
    with pytest.raises(ValueError, match="holds 6 uSIDs"):
        usid.container([0x1000] * 7)


shapes = st.builds(
    clos2_shape,
    st.integers(1, 16),
    st.sampled_from((1, 2, 3, 255, 256)),
    st.sampled_from((1, 2, 255, 256)),
    st.sampled_from((2, 3)),
    st.just(25_000_000),
    st.just(20_000_000),
).filter(lambda shape: shape.links < 10_000)


@unhurried
@given(shapes, st.data())
def test_every_path_of_a_plan_can_be_read_back(shape: Shape, data: st.DataObject) -> None:
    plan = build_plan(shape)
    src, dst = (data.draw(st.sampled_from(plan.hosts)) for _ in range(2))
    for path in plan.paths(src, dst):
        assert usid.split_ev(usid.ev(path.id, src.udp_port)) == (path.id, src.udp_port)
        assert usid.split_inner(path.inner) == (dst.index, path.id)
        first, last = SwitchPlace(0, src.group), SwitchPlace(0, dst.group)
        way = (first, SwitchPlace(1, path.id.uplink), last) if first != last else (first,)
        assert path.way == way
        expected = usid.Segments(path.id.plane, way, dst.downlink)
        assert usid.split_outer(path.outer) == expected
