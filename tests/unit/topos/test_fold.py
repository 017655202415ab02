"""All planes on one: what folding does to shapes and names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.fold import fold, fold_all, folded
from mrc_testbed.topos.graph import ShapeError
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import Shape

shapes = st.builds(
    clos2_shape,
    planes=st.integers(1, 6),
    t0_groups=st.integers(1, 3),
    t1=st.integers(1, 4),
    hosts_per_t0=st.integers(2, 4),
    port_rate_bps=st.sampled_from([100_000, 12_500_000, 25_000_000]),
    rtt_ns=st.just(40_000_000),
)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("p2-t1-0", "p0-t1-0"),
        ("p15-t0-255", "p0-t0-255"),
        ("h3:p1-t0-0", "h3:p0-t0-0"),
        ("p3-t0-1:p3-t1-2", "p0-t0-1:p0-t1-2"),
        ("p1", "p0"),
        ("h3", "h3"),
        ("h3->h4", "h3->h4"),
        ("port-flap", "port-flap"),
        ("p1x", "p1x"),
    ],
)
def test_a_name_keeps_everything_but_its_plane(name: str, there: str) -> None:
    assert fold(name) == there


@given(shapes)
def test_every_name_of_a_fabric_folds_onto_all_names_of_the_folded_one(shape: Shape) -> None:
    written, there = build_plan(shape), build_plan(folded(shape))
    assert set(fold_all(written.node_names)) == set(there.node_names)
    assert fold_all(link.name for link in written.links) == tuple(link.name for link in there.links)


@given(shapes)
def test_hosts_keep_their_rate_and_packets_their_size(shape: Shape) -> None:
    there = folded(shape)
    assert there.planes == 1
    assert there.fabric_pps == pytest.approx(shape.fabric_pps)
    assert (there.hosts, there.family) == (shape.hosts, shape.family)
    assert folded(there) == there


def test_a_port_has_the_rate_of_all_planes_though_no_single_one_may() -> None:
    assert folded(clos2_shape(4, 2, 2, 2, 250_000_000_000, 0)).port_rate_bps == 10**12
    with pytest.raises(ShapeError, match="port_rate"):
        clos2_shape(4, 2, 2, 2, 10**12, 0)
