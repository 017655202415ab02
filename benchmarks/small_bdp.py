"""Shares of flows where planes hold few packets in a round trip, by rate, RTT, planes and payload.

    .venv/bin/python -m benchmarks.small_bdp [--seeds N] [--only packets,planes,rate,payload]

Virtual time, 100 round trips a run. A row is one fabric: its RTT is what makes a plane hold that number of full packets
in it. Shares are bytes over what max-min fairness gives the flow:

- permutation: 16 hosts in four groups send to one each and receive from one, and nothing is oversubscribed: the least
  and the greatest share, and the least one over that of the row with most packets;
- incast: three hosts send to one, beside a victim: the least and the greatest share;
- 2:1: four hosts of each group send through two T1s: the mean share, the least and the greatest;
- half-rate links: the permutation through eight T1s whose links have half the rate of ports, so nothing is
  oversubscribed, and those links hold half the packets: the least and the greatest share.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mrc_testbed.testbed.app.run import run_scenario
from mrc_testbed.testbed.checks.flows import steady_figures
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.expect import Window
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.topos.shape import HEADER_BYTES, PAYLOAD_BYTES

RTTS = 100
LEAST_MS = 1_500
"""Rates settle for 200 ms at least, and a share is told by 20 packets."""
MOST_PACKETS = 60.0
PERMUTATION = (
    "{pairs: [h0->h7, h1->h12, h2->h1, h3->h6, h4->h11, h5->h0, h6->h5, h7->h10, h8->h15, h9->h4, h10->h9,"
    " h11->h14, h12->h3, h13->h8, h14->h13, h15->h2], "
)
"""A permutation of a simulator's connection matrix."""
SCENARIO = """
name: small-bdp
world: virtual
seed: {seed}
fabric: {{planes: {planes}, {tiers}, port_rate: {rate}mbit, rtt: {rtt}us}}
endpoint: {{payload: {payload}B}}
workload: [{{{flows}message: 128KiB, for: {ms}ms}}}}]
"""


class Workload(NamedTuple):
    """Switches and hosts, and flows as a scenario has them, up to their time."""

    tiers: str
    flows: str


WORKLOADS = {
    "permutation": Workload("t0_groups: 4, t1: 4, hosts_per_t0: 4", f"write: {PERMUTATION}"),
    "incast": Workload(
        "t0_groups: 2, t1: 4, hosts_per_t0: 4", "incast: {to: h4, from: [h0, h1, h2], victims: [h3->h5], "
    ),
    "2:1": Workload("t0_groups: 2, t1: 2, hosts_per_t0: 4", "permutation: {"),
    "half": Workload("t0_groups: 4, t1: 8, hosts_per_t0: 4, t1_speed: 50%", f"write: {PERMUTATION}"),
}


class Fabric(NamedTuple):
    """A row: planes, Mb/s a port, bytes of payload a packet, full packets that a plane holds in one RTT."""

    planes: int
    rate_mbit: float
    payload: int
    packets: float

    @property
    def rtt_us(self) -> int:
        """The RTT in which it holds them."""
        return round(self.packets * (self.payload + HEADER_BYTES) * 8 / self.rate_mbit)

    def scenario(self, workload: Workload, seed: int) -> str:
        """A run of this workload, as text."""
        ms = max(RTTS * self.rtt_us // 1000, LEAST_MS)
        keys = {"planes": self.planes, "rate": self.rate_mbit, "rtt": self.rtt_us, "payload": self.payload}
        return SCENARIO.format(seed=seed, ms=ms, **keys, **workload._asdict())


PACKETS = (4, 5.5, 6, 7, 8, 11, 12, 15, 22, MOST_PACKETS)
TABLES: dict[str, list[Fabric]] = {
    "packets": [Fabric(planes, 12.5, PAYLOAD_BYTES, packets) for planes in (1, 2) for packets in PACKETS],
    "planes": [Fabric(planes, 12.5, PAYLOAD_BYTES, packets) for planes in (4, 8) for packets in (6, 15)],
    "rate": [Fabric(2, rate, PAYLOAD_BYTES, packets) for rate in (2, 25, 100) for packets in (6, 15)],
    "payload": [Fabric(2, 12.5, payload, held) for payload in (512, 1024, 2048) for held in (6, 15, MOST_PACKETS)],
}
"""What each table varies, and its rows."""


def shares(scenario: str) -> list[float]:
    """The share of each flow in a run. Raises SystemExit where there was no run."""
    with TemporaryDirectory() as out, open(os.devnull, "w", encoding="utf-8") as nowhere:
        outcome = run_scenario(load_scenario_text(scenario), Path(out), True, PatientConsole(file=nowhere))
        if outcome.folder is None:
            raise SystemExit(f"no run: {outcome.error}")
        figures = steady_figures(load_record(outcome.folder), Window())
    return [each.bytes / each.fair_bytes for each in figures.values()]


def measured(fabric: Fabric, seeds: Sequence[int]) -> dict[str, list[float]]:
    """The shares of all flows and seeds, by workload."""
    return {
        name: [share for seed in seeds for share in shares(fabric.scenario(workload, seed))]
        for name, workload in WORKLOADS.items()
    }


def rows(fabrics: Sequence[Fabric], seeds: Sequence[int]) -> Iterator[str]:
    """Lines of Markdown; each fabric beside the one of its kind with most packets."""
    largest: dict[Fabric, float] = {}
    for fabric in sorted(fabrics, key=lambda one: (one[:3], -one.packets)):
        found = measured(fabric, seeds)
        least = min(found["permutation"])
        beside = largest.setdefault(fabric._replace(packets=0), least)
        over = found["2:1"]
        cells = [
            f"{fabric.planes} | {fabric.rate_mbit:g} Mb/s | {fabric.rtt_us / 1000:.1f} ms | {fabric.payload} B",
            f"{fabric.packets:g}",
            _from_to(found["permutation"]),
            f"{least / beside:.2f}",
            _from_to(found["incast"]),
            f"{fmean(over):.2f}, {_from_to(over)}",
            _from_to(found["half"]),
        ]
        yield f"| {' | '.join(cells)} |"


def _from_to(found: Sequence[float]) -> str:
    return f"{min(found):.2f} to {max(found):.2f}"


def main() -> None:
    """Print the tables, as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default=",".join(TABLES), help="which tables")
    asked = parser.parse_args()
    for name in asked.only.split(","):
        print("| planes | port | RTT | payload | packets | permutation | ratio | incast | 2:1 | half-rate links |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for row in rows(TABLES[name], range(1, asked.seeds + 1)):
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
