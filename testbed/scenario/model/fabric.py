"""`fabric` of a scenario: planes of a family, the rate of ports, the round trip, and what switch ports do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from mrc_testbed.testbed.scenario.model.families import (
    FLAT,
    FamilyChoice,
    family_choice,
    family_key_field,
    family_with,
    keys_of,
    topology,
)
from mrc_testbed.testbed.scenario.model.switch_ports import SwitchEntry, SwitchPorts
from mrc_testbed.testbed.scenario.model.transports import Layout, PathRoutes, RoutesWord
from mrc_testbed.testbed.scenario.text.fields import Duration, Model, Rate, Shares, Whole, given, refuse
from mrc_testbed.testbed.transports.base import FabricLayout, Transport
from mrc_testbed.topos.budget import STANDARD_RATE_BPS, STANDARD_RTT_NS
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.registry import FAMILIES
from mrc_testbed.topos.graph import Family
from mrc_testbed.topos.shape import Shape

MOST_ROUTES_BACK = 2048
"""Hosts times switches of a fabric whose switches answer unasked for."""
_EXAMPLE = "{clos3: {pods: 2, t0: 2, t1: 2, t2: 4, hosts_per_t0: 2}}"


class FabricSettings(Model):
    """The shape of the fabric; defaults are the standard size, which two cores just carry."""

    families: ClassVar[Mapping[str, type[Family]]] = FAMILIES
    """Those that `family` can name."""

    planes: Whole = Field(default=4, description="independent planes; a host has a port in each", examples=[4])
    given_family: Annotated[family_choice(FAMILIES) | None, given(_EXAMPLE)] = Field(  # type: ignore[valid-type]
        default=None,
        alias="family",
        description=f"how a plane is wired, where not as {FLAT.word}, whose keys are beside it",
        examples=[_EXAMPLE],
    )
    t0_groups: Whole = family_key_field(Clos2, "t0_groups", default=2)
    t1: Whole = family_key_field(Clos2, "t1", default=4)
    hosts_per_t0: Whole = family_key_field(Clos2, "hosts_per_t0", default=4)
    t1_speed: Shares = family_key_field(Clos2, "t1_speed")
    port_rate_bps: Rate = Field(
        default=STANDARD_RATE_BPS,
        alias="port_rate",
        description="of each port of a host, and of links whose speed is no share of it",
        examples=["25mbit"],
    )
    rtt_ns: Duration = Field(
        default=STANDARD_RTT_NS, alias="rtt", description="T, without serialisation", examples=["20ms"]
    )
    switch: SwitchEntry = Field(
        default=SwitchPorts(use="auto"),
        description="queueing at switch ports",
        examples=["auto"],
        json_schema_extra={"default": "auto"},
    )
    given_layout: Annotated[Layout | None, given("folded")] = Field(
        default=None, alias="layout", description="planes as written, or all on one", examples=["folded"]
    )
    routes: RoutesWord = Field(
        default=PathRoutes.TALKING, description="hosts that have routes to each other", examples=["all"]
    )
    oam: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="switches have addresses and routes to hosts, and answer `ping` and `trace`",
        examples=["always"],
    )

    def layout(self, transport: Transport) -> FabricLayout:
        """As written, or what is usual for the transport."""
        return self.given_layout or transport.layout

    @model_validator(mode="before")
    @classmethod
    def _of_one_family(cls, raw: Any) -> Any:
        """No keys of other families beside those of `fabric`."""
        ours = {field.alias or name for name, field in cls.model_fields.items()}
        for key in raw if isinstance(raw, dict) else ():
            if key not in ours and (word := family_with(key, cls.families)):
                raise refuse(f"{key!r} is a key of the family {word}; write `family: {{{word}: {{...}}}}`", key=key)
        return raw

    @model_validator(mode="after")
    def _not_two_families(self) -> FabricSettings:
        beside = [key for key in keys_of(FLAT) if key in self.model_fields_set]
        if self.given_family and beside:
            word = self.given_family.chosen[0]
            raise refuse(f"{beside[0]!r} is a key of {FLAT.word}; leave it out where `family` is {word}", key=beside[0])
        return self

    @property
    def family(self) -> Family:
        """A plane as written. Raises ShapeError with the path of the key, below `fabric`."""
        choice: FamilyChoice | None = self.given_family
        if choice:
            return choice.topology()
        return topology(FLAT, {key: getattr(self, key) for key in keys_of(FLAT)}, "")

    def answers(self, shape: Shape, prompt: bool) -> bool:
        """True if switches shall answer; `prompt`: somebody is about to ask them."""
        small = shape.hosts * shape.switches <= MOST_ROUTES_BACK
        return self.oam == "always" or (self.oam == "auto" and (prompt or small))

    def shape(self, speed: int = 1) -> Shape:
        """The topology shape as written. Raises ShapeError if such a fabric cannot be numbered."""
        return Shape(self.planes, self.family, self.port_rate_bps, self.rtt_ns, speed=speed)
