"""Damaged packets may stop a transfer, but never raise, and never touch a byte outside the region."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.sim.simnet import Net, QpError, T, pattern

damage = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 55), st.integers(1, 255), st.sampled_from(["flip", "cut", "repeat"])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=examples(80), deadline=None)
@given(damage, st.integers(0, 1 << 20))
def test_damaged_packets_never_raise(changes, seed):
    net = Net(planes=2, uplinks=2, seed=seed, linear_tries=2, exponential_tries=1)
    flow = net.join(region_bytes=1 << 19)
    plan = {}
    for turn, at, flip, how in changes:
        plan.setdefault(turn, []).append((at, flip, how))
    turn = 0

    def spoil(src, token, traffic_class, packet):
        nonlocal turn
        turn += 1
        for at, flip, how in plan.get(turn, ()):
            bad = bytearray(packet)
            if how == "flip":
                bad[at % len(bad)] ^= flip
            elif how == "cut":
                del bad[at:]
            dst, plane, uplink = token
            label = plane << 8 | uplink
            net.hosts[dst].handle_datagram(memoryview(bad), src, label, 0xC000, traffic_class, net.now, net.now)
        return turn not in plan

    net.taps.append(spoil)
    for host in (0, 1):
        for i in range(3):
            flow.write(pattern(40 * 4096, i), offset=i * 40 * 4096, wr_id=i, immediate=i, source=host)
    net.run(lambda: all(net.events_of(QpError, h) or len(net.completed(h)) == 3 for h in (0, 1)), within=400 * T)
    assert net.counters(0)["data_on_bad_ev"] == 0
