"""Fault declarations: what is broken, when, and when it is whole again. All times count from the workload's start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator, Discriminator, Field, Tag

from testbed.checks.expect import did_you_mean
from testbed.scenario.fields import (
    FaultName,
    LaterStart,
    Model,
    Names,
    PositiveDuration,
    SomeHosts,
    Start,
    Whole,
    refuse,
)
from topos.plan import Plan

MAX_FLAPS = 10_000


class Outage(NamedTuple):
    """One stretch in which the targets are down, in ns from the workload's start."""

    down_ns: int
    up_ns: int


class Fault(Model, ABC):
    """What all kinds share. `name` is always set by the loader: the author's, or `<kind>-<n>`."""

    kind: ClassVar[str]

    at: Start = Field(description="when it begins, after the workload's start, or `cold-start`", examples=["6s"])
    name: FaultName = Field(default="", description="what expectations call it", examples=["reboot"])

    @property
    def at_ns(self) -> int:
        """When it begins, after the workload's start; 0 at cold start."""
        return self.at.ns

    @property
    @abstractmethod
    def targets(self) -> tuple[str, ...]:
        """Names of the links, switches or paths that it is about."""

    @property
    @abstractmethod
    def outages(self) -> tuple[Outage, ...]:
        """The cycles of this fault in order; every target breaks and heals together in each."""

    @property
    def end_ns(self) -> int:
        """When the last cycle heals."""
        return self.outages[-1].up_ns

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """Names of all links that carry nothing while this fault is on; the targets must exist in `plan`."""
        return self.targets


class LinkDown(Fault):
    """One or more links go down together and come back after `for`."""

    kind: ClassVar[str] = "link-down"

    links: Names = Field(alias="link-down", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    for_ns: PositiveDuration = Field(alias="for", description="how long it stays down", examples=["4s"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The links."""
        return self.links

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One."""
        return (Outage(self.at_ns, self.at_ns + self.for_ns),)


class LinkFlap(Fault):
    """One or more links go down and up together, `count` times, one cycle every `period`."""

    kind: ClassVar[str] = "link-flap"

    links: Names = Field(alias="link-flap", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    period_ns: PositiveDuration = Field(alias="period", description="from one fall to the next", examples=["2s"])
    count: Whole = Field(ge=1, le=MAX_FLAPS, description="how many times it falls", examples=[3])
    duty: float = Field(default=0.5, strict=True, gt=0, lt=1, description="share of a period it is down")

    @property
    def targets(self) -> tuple[str, ...]:
        """The links."""
        return self.links

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One a period."""
        down_ns = round(self.period_ns * self.duty)
        starts = (self.at_ns + cycle * self.period_ns for cycle in range(self.count))
        return tuple(Outage(start, start + down_ns) for start in starts)


class SwitchReboot(Fault):
    """A switch loses ports and table, boots for `boot`, and comes back with its static table."""

    kind: ClassVar[str] = "switch-reboot"

    switches: Names = Field(alias="switch-reboot", description="the switch or switches", examples=["p0-t1-2"])
    boot_ns: PositiveDuration = Field(alias="boot", description="from ports down to ports up", examples=["3s"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The switches."""
        return self.switches

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One."""
        return (Outage(self.at_ns, self.at_ns + self.boot_ns),)

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """Every link with an end on one of the switches."""
        found = {link.name: None for name in self.switches for link in plan.links_of(name)}
        return tuple(found)


class Deny(Fault):
    """Paths are put on the denylist of the endpoints and taken off again after `for`, as a controller would."""

    kind: ClassVar[str] = "deny"

    at: LaterStart = Field(description="when it begins, after the workload's start", examples=["6s"])
    paths: Names = Field(alias="deny", description="planes, or uplinks by their T1", examples=["[p1, p0-t1-2]"])
    for_ns: PositiveDuration = Field(alias="for", description="how long they stay denied", examples=["4s"])
    hosts: SomeHosts = Field(default=(), description="`all`, or the hosts that do not use them", examples=["[h0, h4]"])

    @property
    def targets(self) -> tuple[str, ...]:
        """The paths."""
        return self.paths

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One."""
        return (Outage(self.at_ns, self.at_ns + self.for_ns),)

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """None: whoever is told to leave a path loses nothing on it."""
        return ()


KINDS: dict[str, type[Fault]] = {model.kind: model for model in (LinkDown, LinkFlap, SwitchReboot, Deny)}
"""The kinds of this version by their key."""
LATER_KINDS = (
    *("port-flap", "transceiver-flap", "switch-silent", "link-loss", "ev-loss", "plane-loss"),
    *("corrupt", "link-rate", "one-way", "chaos"),
)
"""Kinds that the design names and this version does not have."""


def kind_of(raw: Any) -> str | None:
    """The key in `raw` that names a fault kind of this version; the kind of a Fault."""
    if isinstance(raw, Fault):
        return raw.kind
    return next((key for key in raw if key in KINDS), None) if isinstance(raw, dict) else None


def _one_kind(raw: Any) -> Any:
    available = ", ".join(KINDS)
    if not isinstance(raw, dict):
        raise refuse("must be a mapping such as {at: 6s, link-down: p0-t0-0:p0-t1-2, for: 4s}")
    kinds = [key for key in raw if key in KINDS]
    for key in raw:
        if key in LATER_KINDS:
            message = f"fault kind {key} is not available in this version; available: {available}"
            raise refuse(message, key=key)
    if len(kinds) > 1:
        raise refuse(f"has two kinds, {kinds[0]} and {kinds[1]}; write two entries", key=kinds[1])
    if not kinds:
        raise _without_kind(raw, available)
    return raw


def _without_kind(raw: dict[str, Any], available: str) -> Exception:
    ordinary = {field.alias or name for model in KINDS.values() for name, field in model.model_fields.items()}
    for key in raw:
        hint = did_you_mean(key, KINDS)
        if key not in ordinary and hint:
            return refuse(f"unknown fault kind {key!r}{hint}", key=key)
    return refuse(f"says nothing about what breaks; add one of {available}")


AnyFault = Annotated[
    Annotated[LinkDown, Tag("link-down")]
    | Annotated[LinkFlap, Tag("link-flap")]
    | Annotated[SwitchReboot, Tag("switch-reboot")]
    | Annotated[Deny, Tag("deny")],
    Discriminator(kind_of),
    BeforeValidator(_one_kind),
]
