"""The endpoints of all hosts, from the start of their processes until they may begin."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from mrc_testbed.hosts.rounds import answers_ns, last_round_ns
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.gateways import open_gateways
from mrc_testbed.testbed.runner.probing import Probing
from mrc_testbed.testbed.runner.setup import broken_paths, configuration, connect_qps, probe_round_ns, refuse_silence
from mrc_testbed.testbed.runner.team import SentRequests, Team
from mrc_testbed.testbed.runner.verbs import open_verbs
from mrc_testbed.testbed.runner.world import OnEvent, World
from mrc_testbed.testbed.scenario import Occurrence, Scenario
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.topos.plan import Plan

_WARM_UP_RTTS = 50
_MIN_WARM_UP_NS = 2_000_000_000
_WARM_UP_ROUNDS = 20
"""Of probes on every path, where slow ports need longer than that for them."""
_LOAD_S = 120


class Endpoints:
    """On the fabric that `world` has built. `team`: their daemons."""

    def __init__(
        self, world: World, scenario: Scenario, plan: Plan, job: JobPlan, recorder: Recorder, on_event: OnEvent
    ) -> None:
        self._world = world
        self._scenario = scenario
        self._plan = plan
        self._job = job
        self._round_ns = probe_round_ns(scenario, plan, job)
        self._warm_up_ns = max(
            plan.shape.least_ns(_MIN_WARM_UP_NS),
            _WARM_UP_RTTS * scenario.fabric.rtt_ns,
            _WARM_UP_ROUNDS * self._round_ns,
        )
        self._last_round_ns = last_round_ns(plan.shape.rtt_ns, scenario.swift, self._round_ns)
        self._cold: Sequence[Occurrence] = ()
        self._undisturbed_until_ns = 0
        self._warming: SentRequests
        self._loading: SentRequests
        self.team = Team(world.host_processes(scenario.host_names, recorder, on_event), world.loop)

    def open(self, denied: Mapping[str, list[dict[str, Any]]], plugins: Mapping[str, Any]) -> None:
        """Configure them, connect their QPs, and open the devices of programs. `denied`: the denylist of each host,
        `plugins`: more keys of each configuration. Raises RunError."""

        def configuration_of(host: str) -> dict[str, Any]:
            own = configuration(host, self._scenario, self._plan, self._job, self._world.options, denied.get(host, []))
            return {**own, **plugins}

        self.team.ask("configure", configuration_of)
        connect_qps(self.team, self._plan, self._job)
        open_gateways(self.team, self._scenario, self._world)
        open_verbs(self.team, self._scenario)

    def probe(self, probing: Probing) -> None:
        """Let all hosts probe for the mapper, from now on. Raises RunError."""
        self.team.ask("map", lambda host: probing.request(self._scenario, self._plan, host))

    def begin_warm_up(self, cold: Sequence[Occurrence]) -> None:
        """Let them probe every path, and give each its rank program meanwhile: probes wait for round trips, programs
        for a CPU. `cold`: the faults that broke paths before the start. Raises RunError."""
        self._cold = cold
        self._undisturbed_until_ns = self._world.loop.now_ns() + self._last_round_ns
        self._warming = self._send_warm_up()
        self._loading = self.team.send("load", self._program_of)

    def finish_warm_up(self) -> int | None:
        """Wait until every path has answered; the median of the smallest round trips, or None where all paths were
        broken. Raises RunError unless exactly the intact paths answer.

        Whatever the machine does meanwhile makes round trips longer. So if this is called, or programs are loaded, only
        after the last round of probes may have begun, there is one more."""
        self.team.answers(self._loading, _LOAD_S)
        disturbed = self._world.loop.now_ns() > self._undisturbed_until_ns
        answers = self._warmed_up(self._warming)
        if disturbed:
            answers = self._warmed_up(self._send_warm_up(rounds=1))
        smallest = [rtt for answer in answers.values() for rtt in answer["rtt_ns"].values()]
        return round(statistics.median(smallest)) if smallest else None

    def _send_warm_up(self, **more: int) -> SentRequests:
        broken = broken_paths(self._scenario, self._plan, self._job, self._cold)
        times = {"timeout_ns": self._warm_up_ns, "round_ns": self._round_ns}
        if self._world.ends_with_answers:
            times["last_ns"] = answers_ns(self._plan.shape.rtt_ns, self._scenario.swift, self._round_ns)
        return self.team.send("warm_up", lambda host: {**times, "broken": broken[host], **more})

    def _warmed_up(self, asked: SentRequests) -> dict[str, dict[str, Any]]:
        answers = self.team.answers(asked, 30 + self._warm_up_ns / 1e9)
        slowed = broken_paths(self._scenario, self._plan, self._job, self._cold, slowed=True)
        refuse_silence(answers, slowed, intact=not self._cold)
        return answers

    def _program_of(self, name: str) -> dict[str, Any]:
        host = self._plan.host_by_name[name].index
        return {
            "rank": self._job.rank_of(host),
            "data_seed": self._scenario.seed,
            "program": self._job.programs[host],
        }

    def start(self, at_ns: int, base_rtt_ns: int | None) -> None:
        """Begin all at once. Raises RunError."""
        base = {} if base_rtt_ns is None else {"base_rtt_ns": base_rtt_ns}
        self.team.ask("start", lambda _: {"at_ns": at_ns, **base})
