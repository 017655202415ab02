"""A shape is within the limits or says which one it breaks."""

from __future__ import annotations

import pytest

from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.graph import ShapeError
from mrc_testbed.topos.shape import Shape

QUICKSTART = {
    "planes": 4,
    "t0_groups": 2,
    "t1": 4,
    "hosts_per_t0": 4,
    "port_rate_bps": 25_000_000,
    "rtt_ns": 20_000_000,
}


def shape(**changes: int) -> Shape:
    return clos2_shape(**(QUICKSTART | changes))


def test_quickstart_counts() -> None:
    quickstart = shape()
    assert (quickstart.hosts, quickstart.switches, quickstart.links) == (8, 24, 64)
    assert quickstart.port_pps == pytest.approx(737.4, abs=0.1)
    assert quickstart.fabric_pps == pytest.approx(23_596, abs=1)
    assert quickstart.plane_bdp_packets == pytest.approx(14.75, abs=0.01)


@pytest.mark.parametrize(
    ("key", "value", "field", "limit"),
    [
        ("planes", 0, "planes", "0 is outside 1..16"),
        ("planes", 17, "planes", "17 is outside 1..16"),
        ("t0_groups", 0, "t0_groups", "0 is outside 1..256"),
        ("t0_groups", 257, "t0_groups", "257 is outside 1..256"),
        ("t1", -1, "t1", "-1 is outside 0..256"),
        ("t1", 257, "t1", "257 is outside 0..256"),
        ("t1", 0, "t1", "at least 1"),
        ("hosts_per_t0", 0, "hosts_per_t0", "0 is outside 1..256"),
        ("hosts_per_t0", 257, "hosts_per_t0", "257 is outside 1..256"),
        ("port_rate_bps", 99_000, "port_rate", "99 kb/s is outside 100 kb/s..800 Gb/s"),
        ("port_rate_bps", 800_000_000_001, "port_rate", "is outside"),
        ("rtt_ns", -1, "rtt", "-1 ns is outside 0 ns..10 s"),
        ("rtt_ns", 10_000_000_001, "rtt", "is outside"),
    ],
)
def test_a_broken_limit_is_named(key: str, value: int, field: str, limit: str) -> None:
    with pytest.raises(ShapeError) as caught:
        shape(**{key: value})
    assert caught.value.field == field
    assert limit in caught.value.limit
    assert str(caught.value).startswith(f"{field}: ")


def test_a_single_host_is_no_fabric() -> None:
    with pytest.raises(ShapeError) as caught:
        shape(t0_groups=1, hosts_per_t0=1)
    assert caught.value.field == "hosts_per_t0"


@pytest.mark.parametrize(
    "edge",
    [
        {"planes": 16, "t0_groups": 256, "t1": 256, "hosts_per_t0": 256},
        {"planes": 1, "t0_groups": 1, "t1": 0, "hosts_per_t0": 2},
        {"port_rate_bps": 100_000, "rtt_ns": 0},
        {"port_rate_bps": 100_000_000_000, "rtt_ns": 10_000_000_000},
    ],
)
def test_the_limits_themselves_are_allowed(edge: dict[str, int]) -> None:
    assert shape(**edge).hosts >= 2
