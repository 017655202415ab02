"""The group `bgp`: timers of BGP and BFD between switches, what is carried and announced, and what BFD costs.

Sources of the defaults: FRR's profile `datacenter` (3 s and 9 s), FRR's BFD (three times 300 ms, both ways).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from mrc_testbed.testbed.scenario.text.fields import Model, Whole, refuse
from mrc_testbed.testbed.scenario.text.fields import PositiveDuration as Positive
from mrc_testbed.topos.shape import Shape

SECOND_NS = 1_000_000_000
_MS_NS = 1_000_000
LEAST_HOLD_NS = 3 * SECOND_NS
"""RFC 4271, 4.2."""
MOST_HOLD_NS = 65_535 * SECOND_NS
LEAST_BFD_NS, MOST_BFD_NS = 50 * _MS_NS, 60_000 * _MS_NS
"""What FRR takes."""
BFD_PACKET_S = 0.00055
"""CPU time of a BFD packet from one daemon to the other: 18 % of a core with 8 links at 50 ms (docs/routing.md)."""
MOST_OF_A_CORE = 0.4
"""What BFD may take of the machine that the run itself needs."""


class HoldTimers(Model):
    """How long a silent neighbour is believed."""

    keepalive_ns: Positive = Field(
        default=3 * SECOND_NS,
        alias="keepalive",
        description="time between two signs of life to each neighbour, whole seconds",
        examples=["1s"],
        json_schema_extra={"default": "3s"},
    )
    hold_ns: Positive = Field(
        default=9 * SECOND_NS,
        alias="hold",
        description="silence after which a neighbour is dead, whole seconds, at least 3 keepalives",
        examples=["3s"],
        json_schema_extra={"default": "9s"},
    )

    @field_validator("keepalive_ns", "hold_ns")
    @classmethod
    def _whole_seconds(cls, value: int) -> int:
        if value % SECOND_NS:
            raise refuse("BGP has whole seconds here, such as 3s")
        return value

    @model_validator(mode="after")
    def _in_proportion(self) -> HoldTimers:
        if not LEAST_HOLD_NS <= self.hold_ns <= MOST_HOLD_NS:
            raise refuse("must be from 3s to 65535s, such as 9s", below="hold")
        if self.hold_ns < 3 * self.keepalive_ns:
            raise refuse("must be at least three times `keepalive`, or one late packet ends a session", below="hold")
        return self


class BfdTimers(Model):
    """Bidirectional forwarding detection on every link between switches."""

    interval_ns: Positive = Field(
        default=300 * _MS_NS,
        alias="interval",
        description="time between two packets each way, whole milliseconds",
        examples=["100ms"],
        json_schema_extra={"default": "300ms"},
    )
    multiplier: Whole = Field(default=3, ge=2, le=255, description="how many in a row must be missing", examples=[3])

    @field_validator("interval_ns")
    @classmethod
    def _whole_ms(cls, value: int) -> int:
        if value % _MS_NS or not LEAST_BFD_NS <= value <= MOST_BFD_NS:
            raise refuse("must be from 50ms to 1min in whole milliseconds, such as 300ms")
        return value


def _or_off(value: object) -> object:
    if value is None:
        raise refuse("has no value; write `off`, or {interval: 300ms, multiplier: 3}")
    if value in ("off", False):
        return None
    if not isinstance(value, dict | BfdTimers):
        raise refuse("must be `off` or a mapping such as {interval: 300ms, multiplier: 3}")
    return value


def _off_in_schema(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"const": "off"} if kind == {"type": "null"} else kind for kind in schema["anyOf"]]
    schema["default"] = "off"


class BgpSettings(Model):
    """BGP between switches."""

    hold: HoldTimers = Field(
        default_factory=HoldTimers, description="hold timers", examples=["{keepalive: 1s, hold: 3s}"]
    )
    bfd: Annotated[BfdTimers | None, BeforeValidator(_or_off)] = Field(
        default=None,
        description="finds silent links faster than hold timers",
        examples=["{interval: 300ms, multiplier: 3}"],
        json_schema_extra=_off_in_schema,
    )
    routes: Literal["hosts", "racks"] = Field(
        default="hosts", description="what a T0 announces: each host, or its group", examples=["racks"]
    )
    carries: Literal["hosts", "locators"] = Field(
        default="hosts",
        description="routes to hosts' plain addresses, or to the uSIDs of switches (transport mrc)",
        examples=["locators"],
    )
    t1_as: Literal["one", "each"] = Field(
        default="one",
        description="autonomous systems above T0s: one for a pod's T1s and one for all T2s, so no detours, or one each",
        examples=["each"],
    )


def bfd_share(shape: Shape, interval_ns: int) -> float:
    """What BFD on all links between switches takes of a core: each sends a packet each way an interval."""
    return 2 * shape.planes * shape.family.cable_count * BFD_PACKET_S * SECOND_NS / interval_ns


def least_interval_ns(shape: Shape) -> int:
    """The shortest interval that is not refused, in whole steps of 10 ms."""
    steps = bfd_share(shape, 10 * _MS_NS) / MOST_OF_A_CORE
    return max(LEAST_BFD_NS, math.ceil(steps) * 10 * _MS_NS)
