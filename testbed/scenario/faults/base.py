"""What all faults share. All times count from the workload's start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from testbed.scenario.fields import WHOLE, FaultName, Model, PositiveDuration, Start
from topos.plan import Plan


class Outage(NamedTuple):
    """One stretch in which the targets are down, in ns from the workload's start."""

    down_ns: int
    up_ns: int


class Place(NamedTuple):
    """What comes in at one end of a link. "far" takes the packets that travel away from the hosts."""

    link: str
    toward: Literal["near", "far"]


class Changes(Enum):
    """What a fault changes in the fabric. Two that change the same thing cannot hold one link at once."""

    PORTS = "admin state of ports"
    RATE = "rate of links"
    RULES = "rules of the port program"
    NOTHING = "nothing"


class Target(Enum):
    """What the names of a fault mean."""

    LINK = "a link by its two ends"
    SWITCH = "a switch"
    PLANE = "a plane"
    UPLINK = "an uplink by its T1"
    PATH = "a plane, or an uplink by its T1"


@dataclass(frozen=True, slots=True)
class How:
    """What has to be known of a fault besides its targets: each kind uses its own part. `words`: all of it for people.

    `share`: millionths of the packets. `sender`, `peer`: hosts; empty: any.
    """

    share: int = WHOLE
    rate_bps: int = 0
    sender: str = ""
    peer: str = ""
    words: str = ""


class Fault(Model, ABC):
    """What all kinds share. `name` is always set by the loader: the author's, or `<kind>-<n>`."""

    kind: ClassVar[str]
    changes: ClassVar[Changes]
    target: ClassVar[Target]

    at: Start = Field(description="when it begins, after the workload's start, or `cold-start`", examples=["6s"])
    name: FaultName = Field(default="", description="what expectations call it", examples=["reboot"])

    @property
    def at_ns(self) -> int:
        """When it begins, after the workload's start; 0 at cold start."""
        return self.at.ns

    @property
    @abstractmethod
    def targets(self) -> tuple[str, ...]:
        """Names of the links, switches, planes or paths that it is about."""

    @property
    @abstractmethod
    def outages(self) -> tuple[Outage, ...]:
        """The cycles of this fault in order; every target breaks and heals together in each."""

    @property
    def end_ns(self) -> int:
        """When the last cycle heals."""
        return self.outages[-1].up_ns

    @property
    def how(self) -> How:
        """What else is to be known of it."""
        return How()

    @property
    def title(self) -> str:
        """Kind, at most two targets, and the rest, for people."""
        more = f" and {len(self.targets) - 2} more" if len(self.targets) > 2 else ""
        return f"{self.kind} {', '.join(self.targets[:2])}{more} {self.how.words}".rstrip()

    def broken_links(self, plan: Plan) -> tuple[str, ...]:
        """Names of all links that lose packets while this fault is on; the targets must exist in `plan`."""
        return self.targets

    def places(self, plan: Plan) -> tuple[Place, ...]:
        """Where it puts a rule of the port program; the targets must exist in `plan`."""
        return ()


class Lasting(Fault, ABC):
    """A fault that is on once, for a time."""

    for_ns: PositiveDuration = Field(alias="for", description="how long it lasts", examples=["4s"])

    @property
    def outages(self) -> tuple[Outage, ...]:
        """One."""
        return (Outage(self.at_ns, self.at_ns + self.for_ns),)
