"""Which jobs and flows of a run go on where a failed QP has ended another."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.runner.programs import RunningPrograms
from mrc_testbed.testbed.scenario import Scenario


class GoingOn:
    """Jobs and flows by name, each with what it still has to do: ranks with steps left, QPs with messages left. A
    failed QP ends the job or the flow that it belongs to, and no other."""

    def __init__(self, scenario: Scenario) -> None:
        self._workload, self._shape = scenario.job, scenario.shape()
        programs = self._workload.programs
        self._programs = {job.name for job in programs}
        self._hear = {job.name for job in programs if job.entry.verbs}
        flows = self._workload.flows.flows if self._workload.flows else ()
        self._left = {flow.name: set(flow.qp_names()) for flow in flows}
        self._last: dict[str, tuple[str, int]] = {}
        for job in self._workload.jobs:
            if job.name not in self._programs:
                self._left[job.name] = set(job.host_names(self._shape))
                self._last |= dict.fromkeys(self._left[job.name], (job.name, job.entry.total_steps - 1))
        self.dead: set[str] = set()
        """Names of those that a failed QP has ended."""

    def take(self, host: str, event: dict[str, Any]) -> None:
        """Note the last step of a rank and the last message of a QP."""
        if event["event"] == "step" and host in self._last:
            job, last = self._last[host]
            if event["step"] == last:
                self._done(job, host)
        elif event["event"] == "received" and event["last"]:
            self._done(event["qp"].rpartition("/")[0], event["qp"])

    def _done(self, name: str, part: str) -> None:
        left = self._left.get(name, set())
        left.discard(part)
        if not left:
            self._left.pop(name, None)

    def hears(self, host: str, event: dict[str, Any]) -> bool:
        """Whether the QP that failed is of a program with verbs, which gets its error and goes on as it likes."""
        owner = self._owner(host, event)
        return owner in self._hear if owner else bool(self._hear)

    def end_by(self, host: str, event: dict[str, Any]) -> bool:
        """A QP failed: what it belongs to ends, or all where that is not known. True if that went on before."""
        owner, known = self._owner(host, event), len(self.dead)
        self.dead |= {owner} if owner else {*self._left, *self._programs}
        for name in self.dead:
            self._left.pop(name, None)
        return len(self.dead) > known

    def _owner(self, host: str, event: dict[str, Any]) -> str:
        return self._workload.owner_of(self._shape, event["qp"], host, event["peer"])

    def alone(self, programs: RunningPrograms | None) -> bool:
        """Nothing goes on besides what a failed QP has ended."""
        return not self._left and (programs is None or self.dead.issuperset(programs.running_jobs()))

    def waiting(self) -> list[str]:
        """The ranks with steps left, and the receivers of flows with messages left."""
        parts = (part for left in self._left.values() for part in left)
        return sorted({part.rpartition("/")[0].rpartition("->")[2] if "->" in part else part for part in parts})
