"""Seven hosts begin to write to one that is busy: who waits for a timer, whose path is blamed, who is starved.

    PYTHONPATH=. .venv/bin/python -m tests.sim.incasts [SEEDS [US_A_PACKET]]

Fig. 18c in the simulator: 4 planes of 8 T1, T = 20 ms, starts spread over 7 ms, a bystander beside it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from random import Random

from tests.sim import simnet
from tests.sim.simnet import MS, Net, T
from tests.sim.streams import Stream

SENDERS, RECEIVER = range(7), 8
PEERS = {sender: [RECEIVER] for sender in SENDERS} | {7: [9], 8: list(range(8)), 9: [7]}
SPREAD_NS = 7 * MS
MESSAGE_BYTES = 8 * 4096
QUEUED = 24
WINDOW_T = 5
"""T over which a starved sender has less than half its share."""


@dataclass
class Incast:
    """What came of one. `starved_t`: the longest time that a sender was, T."""

    timeouts: int
    evs_retired: int
    starved_t: int


def fabric(seed: int) -> Net:
    """Sixteen hosts that have measured the idle fabric, as warm-up has it."""
    net = Net(hosts=16, switches=True, uplinks=8, seed=seed)
    for host, endpoint in net.hosts.items():
        for peer in PEERS.get(host, ()):
            endpoint.probe_paths(peer, net.now)
    net.run(within=4 * T, must=False)
    known = (peer.timing.smallest_rtt_ns for endpoint in net.hosts.values() for peer in endpoint._peers.values())
    base_ns = min(rtt_ns for rtt_ns in known if rtt_ns)
    for endpoint in net.hosts.values():
        endpoint.agree_on_base_rtt(base_ns)
    return net


def incast(seed: int, busy_us: int, length_t: int = 100) -> Incast:
    """One of them."""
    net = fabric(seed)
    net.busy_ns = {RECEIVER: busy_us * 1000}
    begin_ns, random = net.now, Random(seed * 7919)
    order = list(SENDERS)
    random.shuffle(order)
    starts = sorted((int(random.random() * SPREAD_NS), sender) for sender in order)
    flows = {}
    for at_ns, sender in starts:
        net.run(within=max(0, begin_ns + at_ns - net.now), must=False)
        flows[sender] = Stream(net, sender, RECEIVER, size=MESSAGE_BYTES)
        for _ in range(QUEUED - 2):
            flows[sender]._post()
    net.run(within=max(0, begin_ns + SPREAD_NS - net.now), must=False)
    shares = [_shares(net, flows) for _ in range(length_t)]
    counters = [net.counters(host) for host in SENDERS]
    starved = max(_starved_t([each[sender] for each in shares]) for sender in SENDERS)
    return Incast(sum(each["timeouts"] for each in counters), sum(each["evs_retired"] for each in counters), starved)


def _shares(net: Net, flows: dict[int, Stream]) -> dict[int, float]:
    """Of the fair share, by sender, over one T."""
    for flow in flows.values():
        flow.mark()
    net.run(within=T, must=False)
    return {sender: flow.share() * len(flows) for sender, flow in flows.items()}


def _starved_t(shares: list[float]) -> int:
    longest = now = 0
    for begin in range(len(shares) - WINDOW_T + 1):
        now = now + 1 if sum(shares[begin : begin + WINDOW_T]) < WINDOW_T / 2 else 0
        longest = max(longest, now)
    return longest + WINDOW_T - 1 if longest else 0


def main() -> None:
    """A line for all seeds."""
    seeds, busy_us = (int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((1, 60), (2, 80)))
    simnet.MAX_STEPS = 10**9
    found = [incast(seed, busy_us) for seed in range(1, seeds + 1)]
    timeouts, retired = sum(each.timeouts for each in found), sum(each.evs_retired for each in found)
    starved = sorted(each.starved_t for each in found)
    long = sum(each > 20 for each in starved)
    print(f"{seeds} incasts, {busy_us} us a packet: {timeouts} timeouts, {retired} EVs retired, ", end="")  # noqa: T201
    print(f"starved over 20 T in {long}, median {starved[seeds // 2]} T, longest {starved[-1]} T")  # noqa: T201


if __name__ == "__main__":
    main()
