"""What a flow keeps when only the timer finds lost retransmissions, beside the closed form (P1 Fig. 16, 1 %).

    PYTHONPATH=. .venv/bin/python -m tests.sim.closed_form [LENGTH_T]

A retransmission is lost with probability p^2 a packet. The sender goes on until the PSN range is full, W after the hole
arose, and then waits until the timer, R after the retransmission: share = 1 / (1 + p^2 n (R - W)), times in T, with n
packets a T.
"""

from __future__ import annotations

import sys

from mrc_testbed.hosts.mrc.config import MPR_UNIT
from tests.sim import simnet
from tests.sim.simnet import RATE, Net, T
from tests.sim.streams import Stream

UNIT_NS = 1024
PACKET_BITS = (4096 + 142) * 8
PACKETS_A_T = 4 * RATE * T / 1e9 / PACKET_BITS
WARM_UP_T = 20


def expected(loss: float, timeout: int, mpr: int = 8) -> float:
    """The closed form, of what the same flow keeps when lost retransmissions are inferred."""
    waited_t = (UNIT_NS << timeout) / T - mpr * MPR_UNIT / PACKETS_A_T
    return 1 / (1 + loss**2 * PACKETS_A_T * waited_t)


def kept(loss: float, length_t: int, seed: int = 1, **config) -> float:
    """Goodput of one endless flow over four planes that lose `loss` of its packets, of line rate."""
    net = Net(seed=seed, exponential_tries=25, **config)
    net.worsen(loss=loss)
    flow = Stream(net, 0, 1)
    net.run(within=WARM_UP_T * T, must=False)
    flow.mark()
    net.run(within=length_t * T, must=False)
    return flow.share()


def main() -> None:
    """A line for each loss and timer."""
    length_t = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    simnet.MAX_STEPS = 10**9
    for loss in (0.001, 0.01):
        inferring = kept(loss, length_t)
        print(f"{loss:.1%} lost, lost retransmissions inferred: {inferring:.3f} of line rate", flush=True)  # noqa: T201
        for timeout in (20, 21, 22, 23):
            found = kept(loss, length_t, reinfer=False, timeout=timeout) / inferring
            told = f"{loss:.1%} lost, timer {(UNIT_NS << timeout) / T:.0f} T: {found:.2f} of that,"
            print(f"{told} closed form {expected(loss, timeout):.2f}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
