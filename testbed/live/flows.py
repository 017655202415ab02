"""Total rate of all flows, and their fair-share total. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.workloads.fairness import max_min_shares
from mrc_testbed.testbed.workloads.flows import flow_of

_RATE_OVER_NS = 1_000_000_000
_HEARD_NS = 200_000_000
"""By then every host has reported its received data. Both are shorter where the network is faster than usual."""


class FlowRates:
    """Takes `received` events; ignores flows that only measure latency."""

    def __init__(self, scenario: Scenario) -> None:
        flows = scenario.job.flows.flows if scenario.job.flows else ()
        self._shape = scenario.shape()
        self._over_ns, self._heard_ns = map(self._shape.least_ns, (_RATE_OVER_NS, _HEARD_NS))
        self._flows = {flow.name: flow for flow in flows if flow.greedy}
        self._open = {name: set(flow.qp_names()) for name, flow in self._flows.items()}
        self._received: deque[tuple[int, int]] = deque()
        self._shares: dict[frozenset[str], int] = {}
        self._start_ns: int | None = None

    def begin(self, start_ns: int) -> None:
        """Set when the workload begins."""
        self._start_ns = start_ns

    def received(self, event: Mapping[str, Any]) -> None:
        """Add what a QP delivered in a tenth of a second."""
        flow = flow_of(event["qp"])
        if flow in self._flows:
            self._received.append((event["end_ns"], event["bytes"]))
            if event["last"]:
                self._open[flow].discard(event["qp"])

    def rates(self, now_ns: int) -> dict[str, int] | None:
        """`rate_bps` over the last fully reported second, which is shorter on a faster network, and `of_bps`: the total
        fair share of the active flows without faults.

        None without a greedy flow.
        """
        if not self._flows or self._start_ns is None:
            return None
        until_ns = now_ns - self._heard_ns
        while self._received and self._received[0][0] <= until_ns - self._over_ns:
            self._received.popleft()
        moved = sum(count for end_ns, count in self._received if end_ns <= until_ns)
        over_ns = min(self._over_ns, until_ns - self._start_ns)
        rate = round(moved * 8e9 / over_ns) if over_ns > 0 else 0
        return {"rate_bps": rate, "of_bps": self._fair(now_ns - self._start_ns)}

    def _fair(self, passed_ns: int) -> int:
        going = frozenset(
            name
            for name, flow in self._flows.items()
            if flow.start_ns <= passed_ns and (flow.stop_ns or passed_ns + 1) > passed_ns and self._open[name]
        )
        if going not in self._shares:
            demands = {name: self._flows[name].demand for name in sorted(going)}
            self._shares[going] = round(sum(max_min_shares(self._shape, demands).values()) * 8)
        return self._shares[going]
