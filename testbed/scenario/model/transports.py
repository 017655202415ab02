"""The words of `world`, `transport`, `routing` and `layout`, and the groups `virtual` and `ecmp`.

What follows from what: `transport` decides the usual `routing` and `fabric.layout`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeVar

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.scenario.text.fields import Duration, Model, Switchable, Whole, given, one_of
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import FabricLayout, Transport
from mrc_testbed.topos.routes import Routing

W = TypeVar("W", bound=StrEnum)


class WorldKind(StrEnum):
    """Where a run happens: in namespaces of this kernel and in real time, or computed, in virtual time."""

    KERNEL = "kernel"
    VIRTUAL = "virtual"


class PathRoutes(StrEnum):
    """Between which hosts the kernel has routes, one a path, where hosts choose paths."""

    TALKING = "talking"
    """Those that the workload makes talk."""
    ALL = "all"


def _read(noun: str, kind: type[W]) -> PlainValidator:
    known = one_of(noun, [word.value for word in kind])
    return PlainValidator(lambda value: kind(known(value)))


def _enum(kind: type[StrEnum]) -> WithJsonSchema:
    return WithJsonSchema({"enum": [word.value for word in kind]})


def _read_transport(value: object) -> Transport:
    return registry.named(one_of("a transport", list(registry.known()))(value))


_SCHEMA = WithJsonSchema({"enum": list(registry.TRANSPORTS)})
AS_WORD = PlainSerializer(lambda one: one.word, return_type=str)
TransportWord = Annotated[Transport, PlainValidator(_read_transport), AS_WORD, _SCHEMA]
RoutingWord = Annotated[Routing, _read("a routing", Routing), _enum(Routing)]
WorldWord = Annotated[WorldKind, _read("a world", WorldKind), _enum(WorldKind)]
RoutesWord = Annotated[PathRoutes, _read("a choice of routes", PathRoutes), _enum(PathRoutes)]
Layout = Annotated[FabricLayout, _read("a layout", FabricLayout), _enum(FabricLayout)]


class VirtualSettings(Model):
    """The key `virtual`: what virtual time leaves out and can put back."""

    busy_ns: Duration = Field(
        default=0,
        alias="busy",
        description="CPU time that a host needs for each packet; its turns wait for it",
        examples=["100us"],
    )
    lateness_ns: Annotated[Duration | None, given("0s")] = Field(
        default=None,
        alias="lateness",
        description="by how much the turns of hosts are late, in the median; 0s: exact; left out: 100us, at most T/200",
        examples=["0s"],
    )


class EcmpSettings(Model):
    """How switches choose among equal next hops, and hosts among their ports."""

    hash: Literal["polarised", "independent"] = Field(
        default="polarised", description="one hash seed in all switches, or one in each", examples=["independent"]
    )
    choose: Literal["hash", "adaptive"] = Field(
        default="hash",
        description="how a T0 chooses an uplink for data: by a hash of the flow, or packet by packet where least waits",
        examples=["adaptive"],
    )
    far_links: Literal["unknown", "known"] = Field(
        default="unknown",
        description="with adaptive: whether T0s know which T1s have lost their link to a group (virtual time only)",
        examples=["known"],
    )
    repath: Switchable = Field(
        default=False,
        description="switches hash what the sending kernel draws again at each timeout (as with flow labels)",
        examples=["true"],
    )
    hosts: Literal["in-turn", "hashed"] = Field(
        default="in-turn",
        description="hosts deal QPs and connections out to their ports, or hash them as switches do (protocol, ports)",
        examples=["hashed"],
    )
    seed: Annotated[Whole | None, Field(ge=0, lt=1 << 32), given("3")] = Field(
        default=None, description="of the hash; left out, the scenario's `seed`", examples=[3]
    )
