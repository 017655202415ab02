"""What is known of a run at a moment, as JSON types, and its readings. Pure.

A run in progress fills a `RunSeries` by its events (`testbed/live/series_feed.py`), a folder by its files
(`testbed/app/recorded_series.py`). Its document is small enough to be sent once a second; the server that is scraped
makes the readings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mrc_testbed.testbed.checks.result import Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.metrics.registry import FIDELITY_STATES, RUN_PHASES
from mrc_testbed.topos.plan import Plan

BUCKETS = 14
"""Of a histogram, each twice as long as the one before; the first ends at T."""
MOST_STALLED = 200
_HITS = 5
"""Numbers of a row of ports.csv."""


class DurationCounts:
    """A histogram of durations."""

    def __init__(self, first_ns: int) -> None:
        self._bounds_ns = [max(first_ns, 1) << number for number in range(BUCKETS)]
        self._counts = [0] * (BUCKETS + 1)
        self._sum_ns = 0

    def add(self, duration_ns: int) -> None:
        """One more."""
        at = next((number for number, bound in enumerate(self._bounds_ns) if duration_ns <= bound), BUCKETS)
        self._counts[at] += 1
        self._sum_ns += duration_ns

    def document(self) -> dict[str, Any]:
        """As JSON types: upper bounds in ns, counts of each bucket and of what is above them, and the sum."""
        return {"bounds_ns": list(self._bounds_ns), "counts": list(self._counts), "sum_ns": self._sum_ns}


class RunSeries:
    """Takes what happens in a run, and gives it as one document."""

    def __init__(self, plan: Plan, info: Mapping[str, str], counts_packets: bool) -> None:
        """`info`: the labels of `mrc_run`, all of them; `counts_packets`: switch ports run the port program, so what
        they have not counted is 0."""
        self._rtt_ns = plan.shape.rtt_ns
        self._info = dict(info)
        self._faults: dict[str, tuple[str, str]] = {}
        self._active: dict[str, int] = {}
        self._cycles: dict[str, int] = {}
        self._steps: dict[str, DurationCounts] = {}
        self._messages: dict[str, DurationCounts] = {}
        self._delivered: dict[str, int] = {}
        self.start_ns: int | None = None
        self.phase = RUN_PHASES[0]
        self.counters: dict[str, Mapping[str, int]] = {}
        self.lateness: dict[str, Mapping[str, int]] = {}
        self.stalled: dict[str, Mapping[str, int]] = {}
        """By host and QP since when it has delivered nothing."""
        self.ports: dict[str, list[bool]] = {}
        self.evs: Mapping[str, Mapping[str, int]] = {}
        self.links: Sequence[Sequence[Any]] = ()
        """Rows as of samples.csv, without their time."""
        switches = plan.switches if counts_packets else ()
        self.hits: dict[tuple[str, str], Sequence[int]] = {
            (switch.name, own.name): (0,) * _HITS for switch in switches for own, _ in plan.ports[switch.name]
        }
        """Rows as of ports.csv, without time and place."""
        self.finals: dict[str, Any] = {}

    def fault(self, name: str, kind: str, targets: str, begins: bool) -> None:
        """A fault was injected or healed."""
        known_kind, known_targets = self._faults.get(name, (kind, ""))
        self._faults[name] = known_kind, known_targets or targets
        self._active[name] = max(0, self._active.get(name, 0) + (1 if begins else -1))
        self._cycles[name] = self._cycles.get(name, 0) + begins

    def step(self, job: str, duration_ns: int) -> None:
        """All ranks of a job have finished a step."""
        self._steps.setdefault(job, DurationCounts(self._rtt_ns)).add(duration_ns)

    def delivered(self, entry: str, count: int) -> None:
        """Bytes of flows of an entry were placed in memory."""
        self._delivered[entry] = self._delivered.get(entry, 0) + count

    def message(self, entry: str, duration_ns: int) -> None:
        """A message of a flow of an entry was acknowledged."""
        self._messages.setdefault(entry, DurationCounts(self._rtt_ns)).add(duration_ns)

    def document(self, now_ns: int) -> dict[str, Any]:
        """All that is known at a moment, as JSON types."""
        clock_ns = None if self.start_ns is None else max(0, now_ns - self.start_ns)
        return {
            "info": self._info,
            "phase": self.phase,
            "clock_ns": clock_ns,
            "faults": [
                [name, kind, targets, self._active[name], self._cycles[name]]
                for name, (kind, targets) in self._faults.items()
            ],
            "counters": self.counters,
            "lateness": self.lateness,
            "stalled": self._stalled(now_ns),
            "ports": self.ports,
            "evs": self.evs,
            "links": self.links,
            "hits": [[*port, *row] for port, row in self.hits.items()],
            "steps": {job: counts.document() for job, counts in self._steps.items()},
            "messages": {entry: counts.document() for entry, counts in self._messages.items()},
            "delivered": self._delivered,
            **self.finals,
        }

    def _stalled(self, now_ns: int) -> list[list[Any]]:
        """The longest first, at most 200."""
        since = sorted((since_ns, host, qp) for host, qps in self.stalled.items() for qp, since_ns in qps.items())
        return [[host, qp, now_ns - since_ns] for since_ns, host, qp in since[:MOST_STALLED]]


def port_labels(plan: Plan) -> dict[str, tuple[str, str, str]]:
    """By `NODE/PORT` its tier (empty for a host), plane and peer: what a server needs beside documents."""
    planes = {end: link.plane for link in plan.links for end in link.ends}
    tiers = {switch.name: str(switch.tier) for switch in plan.switches}
    return {
        f"{node}/{own.name}": (tiers.get(node, ""), str(planes[own]), peer.node)
        for node, ports in plan.ports.items()
        for own, peer in ports
    }


def final_document(verdict: Verdict | None) -> dict[str, Any]:
    """What a document has besides when a run has ended. None: it has no verdict."""
    if verdict is None:
        return {"phase": RUN_PHASES[-1]}
    passed = {Status.PASS: True, Status.FAIL: False}
    return {
        "phase": RUN_PHASES[-1],
        "verdict": verdict.status.value,
        "fidelity": FIDELITY_STATES[0] if verdict.fidelity.ok else FIDELITY_STATES[1],
        "checks": [[check.name, passed.get(check.status)] for check in verdict.checks],
    }
