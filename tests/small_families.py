"""Small planes of every family, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail

_FEW = st.integers(1, 3)

clos2 = st.builds(Clos2, _FEW, _FEW, st.integers(2, 3))
clos3 = st.builds(
    lambda pods, t0, t1, column, hosts: Clos3(pods, t0, t1, t1 * column, hosts),
    _FEW,
    _FEW,
    _FEW,
    _FEW,
    st.integers(2, 3),
)
rail = st.builds(
    lambda rails, nodes, spine, segments: Rail(rails, 2 * nodes * segments, spine, segments), _FEW, _FEW, _FEW, _FEW
)
every = clos2 | clos3 | rail
