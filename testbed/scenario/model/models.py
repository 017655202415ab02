"""The scenario as typed, frozen data. Field aliases are the keys of the YAML file; attributes carry their unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PrivateAttr

from mrc_testbed.testbed.expect import Expectation
from mrc_testbed.testbed.expect.metrics import program_metric
from mrc_testbed.testbed.expect.vocabulary import Metric
from mrc_testbed.testbed.scenario.faults import KINDS, AnyFault, Fault, Occurrence
from mrc_testbed.testbed.scenario.faults.occurrence import by_fault
from mrc_testbed.testbed.scenario.model.arrival_models import Arriving
from mrc_testbed.testbed.scenario.model.bgp import BgpSettings
from mrc_testbed.testbed.scenario.model.captures import Capture, LinkCapture, settle
from mrc_testbed.testbed.scenario.model.controller import EXAMPLE as CONTROLLER_EXAMPLE
from mrc_testbed.testbed.scenario.model.controller import ControllerSettings
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.expectations import ExpectLine, LinesOfCells
from mrc_testbed.testbed.scenario.model.fabric import FabricSettings
from mrc_testbed.testbed.scenario.model.folding import folded_denials, folded_occurrences, folding_note
from mrc_testbed.testbed.scenario.model.jobs import NamedJob
from mrc_testbed.testbed.scenario.model.mapper import EXAMPLE as MAPPER_EXAMPLE
from mrc_testbed.testbed.scenario.model.mapper import MapperSettings
from mrc_testbed.testbed.scenario.model.matrix import EXAMPLE, MatrixAxes
from mrc_testbed.testbed.scenario.model.offered import NOTHING, Offered
from mrc_testbed.testbed.scenario.model.paper import Paper
from mrc_testbed.testbed.scenario.model.presets import or_preset
from mrc_testbed.testbed.scenario.model.scale import ScaleFactor, ScaleWord, scaled_fields, scaled_occurrence
from mrc_testbed.testbed.scenario.model.transports import (
    EcmpSettings,
    RoutingWord,
    TransportWord,
    VirtualSettings,
    WorldKind,
    WorldWord,
)
from mrc_testbed.testbed.scenario.model.trimming import TrimSettings
from mrc_testbed.testbed.scenario.model.variants import CASES_EXAMPLE, Judged, Variants
from mrc_testbed.testbed.scenario.model.variants import EXAMPLE as VARIANTS_EXAMPLE
from mrc_testbed.testbed.scenario.model.workloads import FlowSet, Workload, WorkloadItem, workload_of
from mrc_testbed.testbed.scenario.text.beside import DataFile
from mrc_testbed.testbed.scenario.text.denylist import Denial
from mrc_testbed.testbed.scenario.text.fields import (
    MAX_QPS,
    Model,
    Name,
    PluginNames,
    Whole,
    given,
    refuse,
)
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration as Positive
from mrc_testbed.testbed.scenario.text.source import EffectiveText
from mrc_testbed.testbed.switching.classes import USUAL_MARKS, DscpMarks
from mrc_testbed.testbed.switching.thresholds import PauseThresholds, PortThresholds
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import FabricLayout, PortNeeds, program_need
from mrc_testbed.testbed.transports.roce import RoceSettings
from mrc_testbed.testbed.transports.tcp import TcpSettings
from mrc_testbed.topos.fold import fold_all, folded
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import Carries, Routing
from mrc_testbed.topos.shape import Shape

USUAL_SEED = 1


def some_work(items: tuple[WorkloadItem, ...]) -> tuple[WorkloadItem, ...]:
    """At least one entry."""
    # Checked after the entries, or a broken entry would also be reported as a missing one.
    if not items:
        raise refuse("must have at least one entry, such as `- train: {steps: 28, compute: 100ms, allreduce: 4MiB}`")
    return items


class Scenario(Model):
    """A fully checked scenario. Made by `load_scenario` only."""

    name: Name = Field(description="names the run folder", examples=["quickstart"])
    about: Annotated[str, Field(strict=True)] = Field(
        default="", description="what it shows", examples=["A T1 reboots."]
    )
    seed: Whole = Field(default=USUAL_SEED, ge=0, lt=1 << 63, description="decides every random choice", examples=[7])
    fabric: FabricSettings = Field(default_factory=FabricSettings, description="the network", examples=["{planes: 4}"])
    world: WorldWord = Field(
        default=WorldKind.KERNEL, description="this kernel, or computed in virtual time", examples=["virtual"]
    )
    scale: ScaleWord = Field(
        default=ScaleFactor(),
        description="how many times faster than written, in virtual time; real: ports of 100 Gb/s",
        examples=["real"],
        json_schema_extra={"default": 1},
    )
    virtual: VirtualSettings = Field(
        default_factory=VirtualSettings,
        description="used by world virtual only",
        examples=["{busy: 100us}", "{lateness: 0s}"],
    )
    transport: TransportWord = Field(
        default_factory=lambda: registry.USUAL,
        description="transport protocol of the hosts",
        examples=["roce"],
        json_schema_extra={"default": registry.USUAL.word},
    )
    given_routing: Annotated[RoutingWord | None, given("srv6")] = Field(
        default=None, alias="routing", description="how packets are forwarded", examples=["srv6"]
    )
    roce: RoceSettings = Field(
        default_factory=RoceSettings, description="used by transport roce only", examples=["{timeout: 16}"]
    )
    tcp: TcpSettings = Field(
        default_factory=TcpSettings, description="used by transport tcp only", examples=["{rto_min: 5ms}"]
    )
    ecmp: EcmpSettings = Field(
        default_factory=EcmpSettings,
        description="used by routing ecmp-static and bgp",
        examples=["{hash: independent}"],
    )
    bgp: BgpSettings = Field(
        default_factory=BgpSettings, description="used by routing bgp only", examples=["{routes: racks}"]
    )
    plugins: PluginNames = Field(
        default=(), description="Python files, or installed packages, that add to the testbed", examples=["[my_cc.py]"]
    )
    endpoint: EndpointSettings = Field(
        default_factory=EndpointSettings,
        description="the endpoints",
        examples=["{icrc: true}"],
        json_schema_extra=or_preset,
    )
    trimming: TrimSettings = Field(
        default_factory=TrimSettings,
        description="how switches trim packets of MRC",
        examples=["{size: 128B, dscp: 48, dscp_last_hop: 48}"],
    )
    mapper: Annotated[MapperSettings | None, given(MAPPER_EXAMPLE)] = Field(
        default=None, description="who looks from above for what is broken", examples=[MAPPER_EXAMPLE]
    )
    controller: Annotated[ControllerSettings | None, given(CONTROLLER_EXAMPLE)] = Field(
        default=None,
        description="a central authority that denies paths over links without carrier",
        examples=[CONTROLLER_EXAMPLE],
    )
    workload: Annotated[tuple[WorkloadItem, ...], AfterValidator(some_work)] = Field(
        description="what the hosts do",
        examples=["[{train: ...}]"],
        json_schema_extra={"minItems": 1},
    )
    faults: tuple[AnyFault, ...] = Field(default=(), description="what breaks, and when", examples=["[]"])
    capture: tuple[Capture, ...] = Field(
        default=(), description="which packets are kept", examples=["[{links: h0:*, around: all}]"]
    )
    given_expect: tuple[ExpectLine, ...] = Field(
        default=(), alias="expect", description="what must hold", examples=["[qp_errors == 0]"]
    )
    qps: Annotated[Whole | None, Field(ge=1, le=MAX_QPS), given("16")] = Field(
        default=None, description="of each flow and collective, in place of their own", examples=[16]
    )
    given_time_limit_ns: Annotated[Positive | None, given("2min")] = Field(
        default=None, alias="time_limit", description="the run is ended after this", examples=["2min"]
    )
    paper: Annotated[Paper | None, given('{figure: "14", reports: no loss, shows: [0]}')] = Field(
        default=None, description="the figure of a paper that it repeats", examples=['{figure: "14"}']
    )
    matrix: Annotated[MatrixAxes | None, given(EXAMPLE)] = Field(
        default=None, description="the same for each combination of these values", examples=[EXAMPLE]
    )
    variants: Annotated[Variants | None, given(VARIANTS_EXAMPLE)] = Field(
        default=None,
        description="the same in named forms; each changes some keys",
        examples=[VARIANTS_EXAMPLE],
    )
    variant: Annotated[Name | None, given("roce-16")] = Field(
        default=None, description="in the folder of a run: which of the variants it is", examples=["roce-16"]
    )
    cases: Annotated[Variants | None, given(CASES_EXAMPLE)] = Field(
        default=None,
        description="the same in named situations, such as faults; each changes some keys",
        examples=[CASES_EXAMPLE],
    )
    case: Annotated[Name | None, given("near-cut")] = Field(
        default=None, description="in the folder of a run: which of the cases it is", examples=["near-cut"]
    )
    judge: Judged = Field(
        default=(), description="variants or transports whose verdicts count; left out: the file's own transport"
    )
    _effective: EffectiveText | None = PrivateAttr(default=None)
    _offered: Offered = PrivateAttr(default=NOTHING)
    _recorded: tuple[Occurrence, ...] | None = PrivateAttr(default=None)
    _left_out: tuple[str, ...] = PrivateAttr(default=())
    _speed: int = PrivateAttr(default=1)
    _written: Scenario | None = PrivateAttr(default=None)

    @property
    def speed(self) -> int:
        """How many times faster than written all its numbers are: times are shorter by it, and rates higher."""
        return self._speed

    @property
    def swift(self) -> int:
        """How many times faster than daemons its hosts are. In virtual time no machine has to be as fast."""
        return self.shape().swift if self.world is WorldKind.VIRTUAL else self.speed

    def at_scale(self) -> Scenario:
        """The same as it will be run, if it is not yet: times and rates as `scale` wants them."""
        speed = self.scale.speed(self.as_written.fabric.port_rate_bps)
        if speed == self._speed:
            return self
        copy = self.model_copy()
        copy.__dict__ = scaled_fields(self, speed)  # without what properties have cached
        copy._speed, copy._written = speed, self
        copy._recorded = tuple(scaled_occurrence(occurrence, speed) for occurrence in self.occurrences)
        return copy

    @property
    def as_written(self) -> Scenario:
        """The same before it was brought to its scale: faults can be settled again, and keys compared."""
        return self._written or self

    @property
    def offered(self) -> Offered:
        """The names that its plugins offer."""
        return self._offered

    @property
    def left_out(self) -> tuple[str, ...]:
        """Lines about variants that its world cannot run, and about what no variant has of its file."""
        return self._left_out

    def note_left_out(self, lines: tuple[str, ...]) -> None:
        """Lines about variants beside it that its world cannot run, and about what no variant has of its file."""
        self._left_out = lines

    @property
    def fault_kinds(self) -> Mapping[str, type[Fault]]:
        """The kinds of faults that it can have: ours, and those of its plugins."""
        return {**KINDS, **self._offered.named("fault")}

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics that its texts can name besides ours: those of its plugins, and what its programs print."""
        printed = (program_metric(name) for one in self.job.programs for name in one.figures)
        return {**self._offered.named("metric"), **{metric.name: metric for metric in printed}}

    @property
    def layout(self) -> FabricLayout:
        """How the planes are built: as written, or what is usual for the transport."""
        return self.fabric.layout(self.transport)

    @property
    def folds(self) -> bool:
        """True if all planes are laid on one; names of the file are then folded too."""
        return self.layout is FabricLayout.FOLDED

    def written_shape(self) -> Shape:
        """The shape as the file has it, which its names are of."""
        payload, headers = self.transport.full_packet(self.endpoint.payload_bytes, self.own)
        shape = replace(self.fabric.shape(self.speed), payload_bytes=payload, header_bytes=headers)
        open_messages = self.endpoint.max_wimm if self.transport.has_paths else 0
        return replace(shape, cut_bytes=self.transport.cut_bytes(self.own), open_messages=open_messages)

    def shape(self) -> Shape:
        """The shape of the fabric that is built, and the packets that the endpoints send through it."""
        return folded(self.written_shape()) if self.folds else self.written_shape()

    @property
    def layout_note(self) -> str:
        """What folding did to planes and names, in one line; empty for a fabric as written."""
        return folding_note(self.written_shape()) if self.folds else ""

    @property
    def routing(self) -> Routing:
        """How packets are forwarded: as written, or what is usual for the transport."""
        return self.given_routing or self.transport.usual_routing

    def plan(self, prompt: bool = False) -> Plan:
        """The fabric that is built, as data; `prompt`: for somebody who tries commands on it."""
        shape = self.shape()
        plan = build_plan(shape, *self._forwarding)
        return plan.answering() if self.fabric.answers(shape, prompt) else plan

    def written_plan(self) -> Plan:
        """The fabric as the file has it: targets are named and drawn there."""
        return build_plan(self.written_shape(), *self._forwarding)

    @property
    def _forwarding(self) -> tuple[Routing, bool, Carries]:
        return self.routing, self.transport.names_paths, Carries(self.bgp.carries)

    @property
    def hash_seed(self) -> int:
        """The (first) seed of the hash by which switches choose: as written, or that of the scenario."""
        return self.seed if self.ecmp.seed is None else self.ecmp.seed

    @property
    def adaptive(self) -> bool:
        """True where switches choose packet by packet, by what waits in their queues."""
        return self.ecmp.choose == "adaptive" and self.routing is not Routing.SRV6

    @property
    def hosts_hash(self) -> bool:
        """True where hosts choose a port by the hash by which switches choose a next hop."""
        return self.ecmp.hosts == "hashed" and not self.transport.has_paths

    @property
    def denylist(self) -> tuple[Denial, ...]:
        """`endpoint.denylist` in names of the fabric that is built; none for a transport without paths to deny."""
        if not self.transport.names_paths:
            return ()
        denials = self.endpoint.denylist
        return folded_denials(denials) if self.folds else denials

    @property
    def own(self) -> Any:
        """The settings of its transport: the group of keys that is its own."""
        return getattr(self, self.transport.group)

    @property
    def port_needs(self) -> PortNeeds:
        """What the transport asks of switch ports."""
        return self.transport.needs(self.own)

    @property
    def congestion_control(self) -> str:
        """That of the transport."""
        return str(self.own.congestion_control)

    def port_thresholds(self) -> PortThresholds:
        """The levels of switch ports: of `fabric.switch`, and what the transport asks for."""
        levels, least = self.fabric.switch.thresholds(), self.port_needs.drop
        return levels if least is None else replace(levels, drop=max(levels.drop, least))

    @property
    def dscp_marks(self) -> DscpMarks:
        """By which DSCPs switches tell packets apart: those of `endpoint` where it is the transport's own."""
        return self.endpoint.dscp.marks() if self.transport.has_paths else USUAL_MARKS

    def pause_thresholds(self) -> PauseThresholds | None:
        """The levels of lossless ports; None where ports do not pause each other."""
        return self.port_needs.pause

    @cached_property
    def job(self) -> Workload:
        """The workload of all entries."""
        steps = [item.steps for item in self.workload if item.steps]
        flows = [item.flows for item in self.workload if item.flows]
        return workload_of(steps, flows, self.shape(), self.seed)

    @property
    def jobs(self) -> tuple[NamedJob, ...]:
        """The jobs of steps, in the order of the file."""
        return self.job.jobs

    @property
    def flows(self) -> FlowSet:
        """The flows. Raises ValueError if the workload has none."""
        if self.job.flows is None:
            raise ValueError("the workload has no flows")
        return self.job.flows

    @property
    def data_files(self) -> Mapping[str, DataFile]:
        """The data files that its workload reads, by the names of their copies."""
        found = [item.flows.data for item in self.workload if isinstance(item.flows, Arriving)]
        found += [item.graph.data for item in self.workload if item.graph]
        return {data.copy_name: data for data in found if data}

    @property
    def host_names(self) -> tuple[str, ...]:
        """The hosts that take part in the workload: those of jobs of steps by rank, then others by number."""
        return self.job.host_names(self.shape())

    @property
    def ranks(self) -> tuple[str, ...]:
        """The hosts of the jobs of steps, by rank; none without such a job."""
        return self.job.ranks(self.shape())

    @property
    def estimate_ns(self) -> int:
        """Duration of the workload without faults."""
        return self.job.estimate_ns(self.shape())

    @property
    def expected_ns(self) -> int:
        """Expected duration: the clean workload, or until the last heal if that is later."""
        return max(self.estimate_ns, self.last_heal_ns)

    @property
    def time_limit_ns(self) -> int:
        """Time limit of the workload: as written, or `default_time_limit_ns` of the estimate and the last heal."""
        return self.given_time_limit_ns or default_time_limit_ns(self.estimate_ns, self.last_heal_ns, self.speed)

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every occurrence of every fault, with patterns and random choices resolved: the only schedule that a run
        uses."""
        return self._settled if self._recorded is None else self._recorded

    @cached_property
    def _settled(self) -> tuple[Occurrence, ...]:
        return self._in_fabric(self.written_occurrences(self.seed))

    def written_occurrences(self, seed: int) -> tuple[Occurrence, ...]:
        """What `faults` come to with a seed, in names of the file. Raises UnsettledError."""
        plan = self.written_plan()
        return by_fault(one for fault in self.faults for one in fault.occurrences(plan, seed))

    def _in_fabric(self, occurrences: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
        """The same in names of the fabric that is built."""
        if not self.folds:
            return tuple(occurrences)
        of_each = groupby(occurrences, key=lambda one: one.fault)
        return tuple(one for _, each in of_each for one in folded_occurrences(each, self.fabric.planes))

    def with_occurrences(self, occurrences: Iterable[Occurrence]) -> Scenario:
        """The same with a recorded schedule, whatever `faults` would resolve to now."""
        copy = self.model_copy()
        copy._recorded = tuple(occurrences)
        return copy

    def tried(self, seed: int, occurrences: Iterable[Occurrence]) -> Scenario:
        """The same with another seed and this schedule, which has the names of the file."""
        copy = self.model_copy(update={"seed": seed})
        copy._recorded = self._in_fabric(by_fault(occurrences))
        return copy

    @property
    def captures(self) -> tuple[LinkCapture, ...]:
        """The resolved captures of each link, around the occurrences of the schedule or all the time."""
        if not self.capture:
            return ()
        plan, naming = self.written_plan(), fold_all if self.folds else tuple
        return settle(self.capture, self.occurrences, self.time_limit_ns, plan, self.seed, naming)

    @property
    def last_heal_ns(self) -> int:
        """Heal of the last fault, 0 without faults."""
        return max((occurrence.end_ns for occurrence in self.occurrences), default=0)

    @property
    def needs_port_program(self) -> str:
        """What requires the port program; empty if nothing does."""
        occurrence = next(
            (occurrence for occurrence in self.occurrences if occurrence.model.effect.needs_program), None
        )
        if occurrence:
            return f"fault {occurrence.fault!r} ({occurrence.kind})"
        by_transport = program_need(self.transport, self.routing, self.own, self.ecmp.repath, self.adaptive)
        if by_transport or self.fabric.switch.use == "program":
            return by_transport or "`fabric.switch` as written"
        return "`trimming` as written" if self.transport.can_be_trimmed and self.trimming.changed() else ""

    @cached_property
    def expect(self) -> tuple[Expectation, ...]:
        """What must hold, one expectation for each line of the file; of a line for other cells it is `elsewhere`."""
        return tuple(
            line.of(self.variant, self.transport) if isinstance(line, LinesOfCells) else line
            for line in self.given_expect
        )

    @property
    def judged(self) -> bool:
        """Whether its expectations decide; else the run is a measurement, beside runs that they are written for."""
        return not self.judge or self.variant in self.judge or self.transport in self.judge

    def line_of(self, *path: str | int) -> int | None:
        """Line of a key in the file, as in `line_of("expect", 2)`; None if it came from the command line."""
        return self._effective.line_of(path) if self._effective else None

    @property
    def file(self) -> str:
        """The file that it was loaded from, as it was named; empty where it was not."""
        return self._effective.source.file if self._effective else ""

    def dump_yaml(self) -> str:
        """The scenario as run: the file with its comments and the command line's changes."""
        if self._effective is None:
            raise ValueError("only a loaded scenario has a text")
        return self._effective.text


def default_time_limit_ns(estimate: int, last_heal_ns: int, speed: int = 1) -> int:
    """Three times the clean duration after the last fault, and a minute for a slow machine."""
    return 3 * estimate + last_heal_ns + 60 * 10**9 // speed
