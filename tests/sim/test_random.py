"""Whatever the network does to single packets and paths: every byte arrives, once, in its place, in bounded time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.sim.simnet import MS, ImmediateDelivered, Net, T, pattern

PATHS = [(p, u) for p in range(2) for u in range(3)]

networks = st.fixed_dictionaries(
    {
        "loss": st.sampled_from([0.0, 0.0, 0.002, 0.01, 0.05]),
        "duplicate": st.sampled_from([0.0, 0.05]),
        "jitter_ns": st.integers(0, 6 * MS),
        "dead": st.sets(st.sampled_from(PATHS), max_size=len(PATHS) - 1),
        "dead_at": st.integers(0, 8),
        "healed_after": st.one_of(st.none(), st.integers(1, 30)),
        "seed": st.integers(0, 1 << 30),
        "psn": st.sampled_from([0, (1 << 24) - 40, None]),
        "one_way": st.booleans(),
        "late_plane_ns": st.sampled_from([0, 0, 15 * MS]),
        "sizes": st.lists(st.sampled_from([0, 1, 5000, 40_000, 100_000, 700_000]), min_size=1, max_size=8),
    }
)


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(networks)
def test_every_byte_arrives_while_one_path_lives(story):
    net = Net(planes=2, uplinks=3, seed=story["seed"])
    net.worsen(loss=story["loss"], duplicate=story["duplicate"], jitter_ns=story["jitter_ns"])
    net.worsen(plane=1, delay_ns=T // 2 + story["late_plane_ns"])
    flow = net.join(region_bytes=8 << 20, psn_a=story["psn"])
    expected = bytearray(8 << 20)
    at = 0
    for i, size in enumerate(story["sizes"]):
        data = pattern(size, i)
        flow.write(data, offset=at, wr_id=i, immediate=i)
        expected[at : at + size] = data
        at += size
    count = len(story["sizes"])
    net.run(within=story["dead_at"] * T, must=False)
    for plane, uplink in story["dead"]:
        net.cut(plane=plane, uplink=uplink, src=0 if story["one_way"] else None)
    if story["healed_after"] is not None:
        net.run(within=story["healed_after"] * T, must=False)
        net.heal()
    net.run(lambda: len(net.completed()) == count, within=500 * T)
    assert flow.region() == expected
    assert [e.wr_id for e in net.completed()] == list(range(count))
    assert [e.immediate for e in net.events_of(ImmediateDelivered, 1)] == list(range(count))
    assert net.counters()["data_on_bad_ev"] == 0
    assert net.counters()["qp_errors"] == 0
    sent = net.counters()["data_sent"]
    net.run(within=20 * T, must=False)
    assert net.counters()["data_sent"] == sent
