"""The scenario as typed, frozen data. Field aliases are the keys of the YAML file; attributes carry their unit."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from hosts.core.config import DEFAULT_ALGORITHM
from testbed.scenario.denylist import DenialEntry
from testbed.scenario.expectations import ExpectLine
from testbed.scenario.faults import AnyFault, Changes
from testbed.scenario.fields import Algorithm, Duration, Model, Name, Rate, Switchable, Whole, refuse
from testbed.scenario.fields import PositiveDuration as Positive
from testbed.scenario.source import AsRun
from testbed.scenario.switch_ports import Switch, SwitchPorts
from testbed.scenario.workloads import FlowSet, Train, WorkloadItem, flow_set
from topos.shape import Shape

MAX_ALLREDUCE_BYTES = 1 << 30
"""Every host registers memory of this order."""


class Fabric(Model):
    """The shape of the fabric; what is left out is as in the quickstart."""

    planes: Whole = Field(default=4, description="independent planes; a host has a port in each", examples=[4])
    t0_groups: Whole = Field(default=2, description="T0 switches of a plane", examples=[2])
    t1: Whole = Field(default=4, description="T1 switches of a plane", examples=[4])
    hosts_per_t0: Whole = Field(default=4, description="hosts below each T0", examples=[4])
    port_rate_bps: Rate = Field(default=25_000_000, alias="port_rate", description="of each link", examples=["25mbit"])
    rtt_ns: Duration = Field(default=20_000_000, alias="rtt", description="T, without serialisation", examples=["20ms"])
    switch: Switch = Field(
        default=SwitchPorts(use="auto"),
        description="what queues at switch ports",
        examples=["auto"],
        json_schema_extra={"default": "auto"},
    )

    def shape(self) -> Shape:
        """The same as a topology shape. Raises ShapeError when no such fabric can be numbered."""
        return Shape(self.planes, self.t0_groups, self.t1, self.hosts_per_t0, self.port_rate_bps, self.rtt_ns)


class Endpoint(Model):
    """Settings of the MRC endpoints."""

    ev_active: Whole = Field(default=128, ge=1, le=4096, description="EVs in rotation per peer", examples=[128])
    icrc: Switchable = Field(
        default=False, description="compute and verify the ICRC of every packet", examples=["true"]
    )
    congestion_control: Algorithm = Field(
        default=DEFAULT_ALGORITHM, description="how many bytes a QP may have under way", examples=[DEFAULT_ALGORITHM]
    )
    denylist: tuple[DenialEntry, ...] = Field(
        default=(), description="paths that carry no data in the whole run", examples=["[p1, p0-t1-2]"]
    )


def _one_job(items: tuple[WorkloadItem, ...]) -> tuple[WorkloadItem, ...]:
    # Checked after the entries, or a broken entry would also be reported as a missing one.
    if not items:
        raise refuse("must have at least one entry, such as `- train: {steps: 28, compute: 100ms, allreduce: 4MiB}`")
    if len(items) > 1 and any(item.train for item in items):
        raise refuse(f"can have one `train` entry and nothing else, or only entries of flows; got {len(items)} entries")
    return items


class Scenario(Model):
    """A scenario that has been checked as a whole. Made by `load_scenario` only."""

    name: Name = Field(description="names the run folder", examples=["quickstart"])
    about: Annotated[str, Field(strict=True)] = Field(
        default="", description="what it shows", examples=["A T1 reboots."]
    )
    seed: Whole = Field(default=1, ge=0, lt=1 << 63, description="decides every random choice", examples=[7])
    fabric: Fabric = Field(default_factory=Fabric, description="the network", examples=["{planes: 4}"])
    transport: Literal["mrc"] = Field(default="mrc", description="what the hosts speak", examples=["mrc"])
    routing: Literal["srv6"] = Field(default="srv6", description="how packets find their way", examples=["srv6"])
    endpoint: Endpoint = Field(default_factory=Endpoint, description="the endpoints", examples=["{icrc: true}"])
    workload: Annotated[tuple[WorkloadItem, ...], AfterValidator(_one_job)] = Field(
        description="what the hosts do",
        examples=["[{train: ...}]"],
        json_schema_extra={"minItems": 1},
    )
    faults: tuple[AnyFault, ...] = Field(default=(), description="what breaks, and when", examples=["[]"])
    expect: tuple[ExpectLine, ...] = Field(default=(), description="what must hold", examples=["[qp_errors == 0]"])
    given_time_limit_ns: Positive | None = Field(
        default=None, alias="time_limit", description="the run is ended after this", examples=["2min"]
    )
    _as_run: AsRun | None = PrivateAttr(default=None)

    def shape(self) -> Shape:
        """The shape of the fabric."""
        return self.fabric.shape()

    @cached_property
    def job(self) -> Train | FlowSet:
        """What all entries of `workload` come down to."""
        return self.workload[0].train or flow_set([item.flows for item in self.workload if item.flows], self.shape())

    @property
    def train(self) -> Train:
        """The training job. Raises ValueError where the workload is one of flows."""
        if not isinstance(self.job, Train):
            raise ValueError("the workload is not a training job")
        return self.job

    @property
    def flows(self) -> FlowSet:
        """The flows. Raises ValueError where the workload is a training job."""
        if not isinstance(self.job, FlowSet):
            raise ValueError("the workload is a training job")
        return self.job

    @property
    def host_names(self) -> tuple[str, ...]:
        """The hosts that take part in the workload: of a training in ring order, else by number."""
        return self.job.host_names(self.shape())

    @property
    def estimate_ns(self) -> int:
        """How long the workload takes when nothing breaks."""
        return self.job.estimate_ns(self.shape())

    @property
    def time_limit_ns(self) -> int:
        """When the workload is given up: as written, or `default_time_limit_ns` of the estimate and the last heal."""
        return self.given_time_limit_ns or default_time_limit_ns(self.estimate_ns, self.last_heal_ns)

    @property
    def last_heal_ns(self) -> int:
        """When the last fault has healed, 0 without faults."""
        return max((fault.end_ns for fault in self.faults), default=0)

    @property
    def needs_port_program(self) -> str:
        """What cannot be had without the port program; empty when nothing."""
        fault = next((fault for fault in self.faults if fault.changes is Changes.RULES), None)
        if fault:
            return f"fault {fault.name!r} ({fault.kind})"
        return "`fabric.switch` as written" if self.fabric.switch.use == "program" else ""

    def line_of(self, *path: str | int) -> int | None:
        """Line of a key in the file, as in `line_of("expect", 2)`; None when it came from the command line."""
        return self._as_run.line_of(path) if self._as_run else None

    def dump_yaml(self) -> str:
        """The scenario as run: the file with its comments, the command line's changes applied."""
        if self._as_run is None:
            raise ValueError("only a loaded scenario has a text")
        return self._as_run.text


def default_time_limit_ns(estimate: int, last_heal_ns: int) -> int:
    """Three times the clean duration after the last fault, and a minute for a slow machine."""
    return 3 * estimate + last_heal_ns + 60 * 10**9
