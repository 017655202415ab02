"""The phases of a run, inside the sandbox: build, verify, warm up, barrier, run, heal, settle, tear down.

Nothing is judged here. However the phases end, the run folder then holds what was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import (
    ExitCode,
    MachineLateError,
    MissingCapability,
    RunError,
    ScenarioError,
    TestbedError,
    UnwrittenLimitError,
    UsageError,
    WorkloadError,
    lack_of,
)
from mrc_testbed.testbed.faults.inject import Injector
from mrc_testbed.testbed.faults.schedule import touched_nodes
from mrc_testbed.testbed.faults.target_system import TargetSystem
from mrc_testbed.testbed.interrupts import unwrapped
from mrc_testbed.testbed.rundir.lines import HistoryFields, Party
from mrc_testbed.testbed.rundir.planned import plan_document
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import PROGRAMS_FOLDER
from mrc_testbed.testbed.rundir.sizes import note_sizes
from mrc_testbed.testbed.rundir.tables import PLACED_BYTES
from mrc_testbed.testbed.runner.audience import Audience
from mrc_testbed.testbed.runner.called import CalledProgram
from mrc_testbed.testbed.runner.controller import CentralController, as_heard
from mrc_testbed.testbed.runner.denylist import Controller
from mrc_testbed.testbed.runner.endpoints import Endpoints
from mrc_testbed.testbed.runner.events import PhaseBegins
from mrc_testbed.testbed.runner.interactive import InteractiveFaults
from mrc_testbed.testbed.runner.mapper import LiveMapper
from mrc_testbed.testbed.runner.measure import Measurement
from mrc_testbed.testbed.runner.plugins import plugin_records, plugin_rows
from mrc_testbed.testbed.runner.probing import probing_of
from mrc_testbed.testbed.runner.program_files import program_records
from mrc_testbed.testbed.runner.program_spec import places_of, program_specs
from mrc_testbed.testbed.runner.programs import RunningPrograms
from mrc_testbed.testbed.runner.progress import Progress
from mrc_testbed.testbed.runner.team import Team, hinder
from mrc_testbed.testbed.runner.traces import trace_records
from mrc_testbed.testbed.runner.uplinks import uplinks_of
from mrc_testbed.testbed.runner.world import CaptureSet, ExecClients, World
from mrc_testbed.testbed.scenario import Occurrence, Scenario
from mrc_testbed.testbed.scenario.model.matrix import NAMED
from mrc_testbed.testbed.scenario.model.offered import PluginStuck
from mrc_testbed.testbed.scenario.model.transports import PathRoutes
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from mrc_testbed.testbed.switching.adaptive import adaptive_words
from mrc_testbed.testbed.switching.interface import FabricLike
from mrc_testbed.testbed.workloads.job import JobPlan
from mrc_testbed.topos.plan import Plan

_START_AFTER_NS = 200_000_000
"""Delay from the last answer to `start` until all programs begin together."""
_SETTLE_RTTS = 200
"""Time for probes to restore healed paths: the longest probe back-off plus the required successes."""
_MIN_SETTLE_NS = 1_000_000_000


@dataclass(frozen=True)
class RunJob:
    """The inputs of a run."""

    scenario: Scenario
    folder: Path
    world: World
    replays: Path | None = None
    """The run folder whose schedule is replayed."""
    audience: Audience | None = None
    """Displays the run and may request faults."""

    @property
    def interactive(self) -> bool:
        """True if faults may be requested during the run."""
        return self.audience is not None and self.audience.interactive


def as_built(scenario: Scenario, whole: Plan, job: JobPlan) -> Plan:
    """The plan of a run: with routes between those hosts that need them."""
    if scenario.fabric.routes is PathRoutes.ALL:
        return whole
    return whole.with_paths_between((qp.src, qp.dst) for qp in job.qps)


class Phases:
    """One run. `run_all` executes the phases in order and records begin and result of each."""

    def __init__(self, job: RunJob, recorder: Recorder, progress: Progress) -> None:
        self._job = job
        self._recorder = recorder
        self._progress = progress
        self._world = job.world
        self._loop = job.world.loop
        progress.attach(self._loop)
        whole = job.scenario.plan()
        self._cold = [occurrence for occurrence in job.scenario.occurrences if occurrence.cold]
        self._job_plan: JobPlan = job.scenario.job.plan_job(whole)
        self.plan: Plan = as_built(job.scenario, whole, self._job_plan)
        self._controller = Controller(job.scenario, self.plan, self._job_plan)
        self._probing = probing_of(job.scenario, self.plan, job.world.most_pps(job.scenario))
        tiers = len(whole.shape.family.tiers)
        self._environment = {
            **job.world.facts(job.scenario),
            "transport": job.scenario.transport,
            "routing": job.scenario.routing,
            **{name: value for name in NAMED if (value := getattr(job.scenario, name))},
            **({"adaptive_routing": adaptive_words(job.world.options, tiers)} if job.scenario.adaptive else {}),
            **({"layout": job.scenario.layout_note} if job.scenario.layout_note else {}),
            "congestion_control": job.scenario.congestion_control,
            "ev_selection": job.scenario.endpoint.ev_selection,
            "scenario_file": job.scenario.file,
            "expect_lines": [job.scenario.line_of("expect", index) for index in range(len(job.scenario.expect))],
            "endpoint": job.scenario.endpoint.written(),
            **({"trimming": job.scenario.trimming.written()} if job.scenario.transport.can_be_trimmed else {}),
            **({"flow_bytes": PLACED_BYTES} if job.scenario.job.flows else {}),
            **plugin_records(job.scenario),
            **program_records(job.scenario, job.folder),
            **trace_records(job.scenario),
            **({"mapper": self._probing.record()} if self._probing else {}),
            "warnings": [
                *scenario_warnings(job.scenario),
                *job.world.warnings(job.scenario),
                *([self._probing.warning] if self._probing and self._probing.warning else []),
            ],
            **({"replays": str(job.replays)} if job.replays else {}),
            **({"interactive": True} if job.interactive else {}),
        }
        self.fabric: FabricLike
        self._endpoints: Endpoints
        self._team: Team
        self._injector: Injector
        self._measurement: Measurement
        self._programs: RunningPrograms
        self._exec: ExecClients | None = None
        self._called: CalledProgram | None = None
        self._captures: CaptureSet | None = None

    def run_all(self) -> None:
        """Execute all phases. Raises TestbedError for a failure; KeyboardInterrupt propagates."""
        try:
            self._run_all()
        finally:
            if self._captures:
                self._captures.finish()
            if self._called:
                self._called.end()

    def _run_all(self) -> None:
        self._write_plan()
        # What is built can carry probes at once, and stays as it is. Where switches choose, next hops may look dead for
        # a second.
        beside = not (self._cold or self.plan.learns or self.plan.switches_choose)
        with self._phase("build"):
            self.build()
            if beside:
                self.start_endpoints()
        if self.plan.learns:
            with self._phase("converge"):
                self.fabric.converge()
                self.fabric.count_route_updates()
        with self._phase("verify"):
            self.fabric.verify()
        if self._cold:
            with self._phase("cold start"):
                self._measurement.break_cold()
        with self._phase("warm up"):
            if not beside:
                self.start_endpoints()
            self.warm_up()
        with self._phase("barrier"):
            start_ns = self.barrier()
        failure = self._run_workload(start_ns)
        with self._phase("heal"):
            self._measurement.heal_all()
        with self._phase("settle"):
            self.settle()
        with self._phase("tear down"):
            self.tear_down()
        if failure is not None:
            raise failure

    def _run_workload(self, start_ns: int) -> WorkloadError | None:
        """Runs the workload. A failure is a result too: the fidelity figures are still collected."""
        try:
            with self._phase("run"):
                self._measurement.run(start_ns)
        except WorkloadError as error:
            return error
        finally:
            self._programs.close()
        return None

    def _write_schedule(self, occurrences: Iterable[Occurrence]) -> None:
        self._recorder.document("plan.json", plan_document(self.plan, occurrences))

    def _write_plan(self) -> None:
        self._write_schedule(self._job.scenario.occurrences)
        self._recorder.document("environment.json", self._environment)

    def build(self) -> None:
        """Build the fabric and its injector."""
        self.fabric = self._world.build(self.plan, partial(self._recorder.log, self._job.scenario.host_names[0]))
        touched = touched_nodes(self._job.scenario.occurrences, self.plan)
        self.fabric.prepare_faults(self.plan.switch_by_name if self._job.interactive else touched)
        self._captures = self._world.captures(self._job.scenario.captures, self._recorder)
        system = TargetSystem(
            self.fabric,
            lambda command, occurrence: self._controller.update(self._team, command, occurrence),
            lambda *burden: hinder(self._team, *burden),
        )
        self._injector = Injector(system)
        self._measurement = Measurement(
            *(self._job.scenario, self.fabric, self._loop, self._recorder, self._progress, self._injector),
            plain=not self._world.options.port_program,
        )
        scenario, recorder, on_event = self._job.scenario, self._recorder, self._measurement.on_event
        specs = program_specs(scenario, self._job.folder / PROGRAMS_FOLDER)
        self._programs = RunningPrograms(specs, self._loop, recorder, self._progress, on_event)
        self._measurement.programs = self._programs if specs else None
        if scenario.mapper:
            self._measurement.mapper = LiveMapper(
                *(scenario, scenario.mapper, self.plan, self._controller.pairs),
                self._probing.period_ns if self._probing else None,
                *(self._loop, recorder, self._progress.publish),
                lambda command, rows: self._controller.tell(self._team, command, rows),
            )
        if scenario.controller:
            command = scenario.controller.command
            self._called = self._called_program(command) if command else None
            self._measurement.controller = CentralController(
                *(scenario.controller.after_ns, self.plan, self._controller.pairs),
                *(self._loop, recorder, self._progress.publish),
                lambda command, rows: self._controller.tell(self._team, command, rows),
                self._called.ask if self._called else as_heard,
            )
        places = places_of(scenario, self._job.folder / PROGRAMS_FOLDER)
        self._exec = self._world.exec_server(places, self._programs.process_on, recorder)
        if self._job.audience:
            self._job.audience.serve(self._loop, self._interactive_faults() if self._job.interactive else None)

    def _called_program(self, command: Sequence[str]) -> CalledProgram:
        called = CalledProgram(command, self._job.folder / PROGRAMS_FOLDER)
        self._environment["programs_kept_by"] = called.kept_by
        return called

    def _interactive_faults(self) -> InteractiveFaults:
        scenario, program = self._job.scenario, self._world.options.port_program
        return InteractiveFaults(scenario, self.plan, program, self._measurement, self._injector, self._write_schedule)

    def start_endpoints(self) -> None:
        """Start daemons, connect QPs, begin to probe every path. Raises RunError."""
        scenario = self._job.scenario
        denied = self._controller.at_start()
        on_event = self._measurement.on_event
        self._endpoints = Endpoints(self._world, scenario, self.plan, self._job_plan, self._recorder, on_event)
        self._team = self._endpoints.team
        self._endpoints.open(denied, plugin_rows(scenario, self._job.folder))
        if self._probing:
            self._endpoints.probe(self._probing)
        self._endpoints.begin_warm_up(self._cold)

    def warm_up(self) -> None:
        """Wait for the probes of every path. Raises RunError unless exactly the intact paths answer."""
        base_rtt_ns = self._endpoints.finish_warm_up()
        if base_rtt_ns is not None:
            self._environment["base_rtt_ns"] = base_rtt_ns
        if not self._job.scenario.transport.has_paths:
            self._environment |= self._where_flows_fell(self._team)
        self._recorder.document("environment.json", self._environment)

    def _where_flows_fell(self, team: Team) -> dict[str, Any]:
        flows = {host: answer["flows"] for host, answer in team.ask("stats").items()}
        return uplinks_of(self.fabric, self._job_plan, flows, intact=not self._cold)

    def barrier(self) -> int:
        """Give all hosts the same start time. Returns it."""
        self._programs.prepare(self._world)
        self._measurement.watch_machine(self._world.watch_machine())
        start_ns = self._loop.now_ns() + self.plan.shape.least_ns(_START_AFTER_NS)
        if self._captures:
            self._captures.schedule(start_ns)
        self._endpoints.start(start_ns, self._environment.get("base_rtt_ns"))
        self._programs.start_at(start_ns)
        if self._loop.now_ns() > start_ns:
            raise MachineLateError(
                "the barrier came too late: the machine was too busy to start all ranks within 0.2 s"
            )
        return start_ns

    def settle(self) -> None:
        """Wait for healed paths, then compare the kernel with the plan again."""
        wait_ns = max(self.plan.shape.least_ns(_MIN_SETTLE_NS), _SETTLE_RTTS * self._job.scenario.fabric.rtt_ns)
        self._measurement.wait_for_paths(wait_ns)
        self._measurement.wait_for_routes()
        self._injector.verify_healed()
        self.fabric.verify()

    def tear_down(self) -> None:
        """Collect the final figures and stop the daemons. The namespaces end with this process."""
        if self._exec:
            self._exec.close()
        self._measurement.final_figures(self._team)
        self._team.stop()
        self._team.close()
        self._world.close()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self._progress.publish(PhaseBegins(name))
        self._recorder.history("invoke", op="phase", phase=name)
        try:
            yield
        except TestbedError as error:
            self._recorder.history("fail", op="phase", phase=name, error=str(error))
            raise
        except OSError as error:  # of this process itself: files, processes or memory have run out
            self._recorder.history("fail", op="phase", phase=name, error=str(error.strerror or error))
            raise RunError(f"{name}: {error.strerror or error}") from error
        self._recorder.history("ok", op="phase", phase=name)


def run_phases(job: RunJob, progress: Progress) -> int:
    """Run all phases; returns the exit status of the supervisor. The last history line holds the reason for an early
    end."""
    recorder = Recorder(job.folder, job.world.loop.now_ns, job.world.lines_at_once)
    try:
        with unwrapped(), job.scenario.offered.limited(job.folder):
            Phases(job, recorder, progress).run_all()
        return ExitCode.PASS
    except KeyboardInterrupt as stop:
        _record(recorder, "interrupt", f"interrupted by {str(stop) or 'SIGINT'}")
        return ExitCode.INTERRUPTED
    except UnwrittenLimitError as error:
        _record(recorder, "interrupt", str(error), {"who": Party.SCENARIO})
        return error.exit_code
    except WorkloadError as error:
        _record(recorder, "workload", str(error))
        return error.exit_code
    except MissingCapability as lacking:
        _record(recorder, "interrupt", lacking.what, {"fix": lacking.fix})
        return lacking.exit_code
    except TestbedError as error:
        _record(recorder, "interrupt", str(error), _blame(job, error))
        return error.exit_code
    except Exception as error:
        if lack := lack_of(error):
            _record(recorder, "interrupt", lack, {"machine": True})
            return ExitCode.INCONCLUSIVE
        blamed = job.scenario.offered.blame(error)
        if blamed is None:
            raise
        _record(recorder, "interrupt", f"plugin {blamed[1]}", {"who": Party.PROGRAM})
        return ExitCode.INCONCLUSIVE
    finally:
        progress.close()
        recorder.close()
        note_sizes(job.folder)


def _blame(job: RunJob, error: TestbedError) -> HistoryFields:
    """Who ended a run, where that is known; else it counts as the machine's."""
    if isinstance(error, PluginStuck) or job.scenario.offered.blamed_in(str(error)):
        return {"who": Party.PROGRAM}
    if isinstance(error, UsageError | ScenarioError):
        return {"who": Party.SCENARIO}
    if isinstance(error, MachineLateError):
        return {"late": True}
    return {"machine": True} if lack_of(error.__cause__) else {}


def _record(recorder: Recorder, op: str, reason: str, more: HistoryFields | None = None) -> None:
    try:
        fields: HistoryFields = {"op": op, "error": reason}
        fields.update(more or {})
        recorder.history("fail", **fields)
    except RunError as error:  # the disk is full: only the terminal shows the reason
        raise RunError(f"{reason}; {error}") from error
