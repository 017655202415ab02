"""The table of simulated results: what loss, dead paths and planes cost.

    PYTHONPATH=. .venv/bin/python -m tests.sim.results > tests/sim/results.txt

Deterministic, so that a change of behaviour shows as a diff of results.txt (`test_results.py` compares).
"""

from __future__ import annotations

from tests.sim.simnet import RATE, Net, T, pattern

PACKETS = 400
WRITES = 4
SIZE = 4096
SEEDS = (1, 2, 3)


def story(planes=4, loss=0.0, dead=0, seed=1, **config):
    """Four writes of 400 packets; returns (goodput share of line rate, worst completion in T, counters)."""
    net = Net(planes=planes, seed=seed, **config)
    net.worsen(loss=loss)
    flow = net.join()
    net.run(within=2 * T, must=False)
    for i in range(dead):
        net.cut(plane=i % planes, uplink=i // planes)
    data = pattern(PACKETS * SIZE)
    worst = begun = net.now
    longest = 0
    for i in range(WRITES):
        posted = net.now
        flow.write(data, wr_id=i)
        net.run(lambda n=i: len(net.completed()) > n, within=3000 * T)
        longest = max(longest, net.now - posted)
    worst = net.now - begun
    assert flow.region()[: len(data)] == data
    share = WRITES * len(data) * 8 * 1e9 / worst / (planes * RATE)
    return share, longest / T, net.counters()


def row(name, **settings):
    """One line: medians of goodput and losses, worst completion over the seeds."""
    runs = sorted((story(seed=seed, **settings) for seed in SEEDS), key=lambda run: run[0])
    share = runs[len(runs) // 2][0]
    slowest = max(run[1] for run in runs)
    middle = runs[len(runs) // 2][2]
    bad = sum(run[2]["data_on_bad_ev"] + run[2]["qp_errors"] for run in runs)
    counts = f"{middle['retransmitted']:7d} {middle['evs_retired']:8d} {middle['floor_held']:6d} {bad:6d}"
    return f"{name:34} {100 * share:8.1f} {slowest:10.1f} {counts}"


def table():
    """All of it."""
    ideal = PACKETS * (SIZE + 142) * 8e9 / (4 * RATE) / T
    lines = [
        f"4 writes of {PACKETS} x {SIZE} B in a row, {RATE / 1e6:g} Mb/s a port, T = {T / 1e6:g} ms, 4 uplinks,",
        f"seeds {SEEDS}. At line rate a write over 4 planes takes {ideal:.1f} T, and completes 1 T later.",
        "goodput: payload, % of the ports' rate, median; worst: slowest write, T; the rest: median run;",
        "wrong: data on a bad EV and QP errors, all runs.",
        "",
        f"{'':34} {'goodput':>8} {'worst':>10} {'resent':>7} {'retired':>8} {'floor':>6} {'wrong':>6}",
    ]
    lines += [row(f"loss {loss:g} %", loss=loss / 100) for loss in (0, 0.1, 1, 5)]
    lines += [row(f"loss {loss:g} %, fixed window", loss=loss / 100, congestion_control="fixed") for loss in (1, 5)]
    lines += [row(f"dead paths {dead} of 16", dead=dead) for dead in (1, 4)]
    lines += [row(f"loss {loss:g} %, dead paths 4", loss=loss / 100, dead=4) for loss in (0.1, 1)]
    lines += [row(f"planes {planes}", planes=planes) for planes in (1, 2, 8)]
    lines += [row(f"planes {planes}, loss 1 %", planes=planes, loss=0.01) for planes in (1, 2, 8)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201
