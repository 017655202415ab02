"""Faults that leave every port up: packets lost by link, direction, plane or EV, slow links, corruption."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field

from mrc_testbed.testbed.scenario.faults.base import Lasting, Misfit, Surroundings, UnsettledError
from mrc_testbed.testbed.scenario.faults.names import Target, unknown_name
from mrc_testbed.testbed.scenario.faults.occurrence import FaultParameters, LinkEnd
from mrc_testbed.testbed.scenario.faults.registry import declare
from mrc_testbed.testbed.scenario.faults.selection import Targets
from mrc_testbed.testbed.scenario.faults.traits import Defaults, Drawing, Effect, InteractiveRequest, State
from mrc_testbed.testbed.scenario.faults.ways import entrances
from mrc_testbed.testbed.scenario.text.denylist import parse_paths
from mrc_testbed.testbed.scenario.text.fields import Direction, HostName, PositiveRate, Share
from mrc_testbed.testbed.scenario.text.units import format_rate, format_share
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.shape import MIN_RATE_BPS

_ENDS: dict[str, tuple[Literal["near", "far"], ...]] = {"up": ("far",), "down": ("near",), "both": ("near", "far")}
_WAYS = "`up` (away from the hosts), `down` or `both`"


class _ByRule(Lasting, ABC):
    effect: ClassVar[Effect] = Effect.RULES
    drawing: ClassVar[Drawing] = Drawing(State.LOSSY)


class _OnLinks(_ByRule, ABC):
    target: ClassVar[Target] = Target.LINK

    direction: Direction = Field(default="both", description=_WAYS, examples=["up"])

    def places(self, targets: tuple[str, ...], plan: Plan) -> tuple[LinkEnd, ...]:
        """The link ends at which packets of this direction arrive."""
        return tuple(LinkEnd(link, end) for link in targets for end in _ENDS[self.direction])

    def _words(self, share: int) -> str:
        return format_share(share) + ("" if self.direction == "both" else f" {self.direction}")


@declare
class LinkLoss(_OnLinks):
    """One or more links lose a share of all packets, data and control alike."""

    kind: ClassVar[str] = "link-loss"
    drawing: ClassVar[Drawing] = Drawing(State.LOSSY, whole_share=State.BROKEN)
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "2s", "loss": "10%"}
    request: ClassVar[InteractiveRequest | None] = InteractiveRequest("lossy", share="loss")

    aims: Targets = Field(alias="link-loss", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    loss: Share = Field(description="the chance of each packet to be lost", examples=["20%"])

    @property
    def parameters(self) -> FaultParameters:
        """Share and direction."""
        return FaultParameters(self.loss, words=self._words(self.loss))


@declare
class LinkRate(Lasting):
    """One or more links carry only `rate`, both ways, and their former rate again after `for`."""

    kind: ClassVar[str] = "link-rate"
    target: ClassVar[Target] = Target.LINK
    effect: ClassVar[Effect] = Effect.RATE
    drawing: ClassVar[Drawing] = Drawing(State.SLOW)
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "2s"}

    aims: Targets = Field(alias="link-rate", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    rate_bps: PositiveRate = Field(
        alias="rate", description="rate of each link during the fault", examples=["6.25mbit"]
    )

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses a rate that no shaper here supports."""
        most = around.plan.shape.port_rate_bps if around.plan else None
        if most and not MIN_RATE_BPS <= self.rate_bps < most:
            limits = f"{format_rate(MIN_RATE_BPS)} to less than the {format_rate(most)} of the port"
            yield Misfit("rate", f"{format_rate(self.rate_bps)} is outside {limits}")

    @property
    def parameters(self) -> FaultParameters:
        """The rate."""
        return FaultParameters(rate_bps=self.rate_bps, words=f"at {format_rate(self.rate_bps)}")

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """None: marks and trims of a slow link are congestion and retire no path."""
        return ()


@declare
class OneWay(_OnLinks):
    """One or more links lose everything in one direction and stay up."""

    kind: ClassVar[str] = "one-way"
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "1s", "direction": "up"}

    aims: Targets = Field(alias="one-way", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    direction: Literal["up", "down"] = Field(description="`up` (away from the hosts) or `down`", examples=["up"])

    @property
    def parameters(self) -> FaultParameters:
        """The direction."""
        return FaultParameters(words=self.direction)


@declare
class PlaneLoss(_ByRule):
    """Every NIC loses a share of arriving packets from one or more planes."""

    kind: ClassVar[str] = "plane-loss"
    target: ClassVar[Target] = Target.PLANE
    chaos: ClassVar[Defaults] = {"of": "planes", "for": "2s", "loss": "1%"}

    aims: Targets = Field(alias="plane-loss", description="the plane or planes", examples=["p1"])
    loss: Share = Field(description="the chance of each packet to be lost", examples=["1%"])

    @property
    def parameters(self) -> FaultParameters:
        """The share."""
        return FaultParameters(self.loss, words=format_share(self.loss))

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """The links of all hosts to these planes."""
        planes = {paths.plane for name in targets if (paths := parse_paths(name))}
        return tuple(link.name for link in plan.links if link.is_host_link and link.plane in planes)

    def places(self, targets: tuple[str, ...], plan: Plan) -> tuple[LinkEnd, ...]:
        """The NIC end of these links."""
        return tuple(LinkEnd(link, "near") for link in self.broken_links(targets, plan))


@declare
class EvLoss(_ByRule):
    """One or more EVs of one sender lose a share of its packets, where these enter a switch that it names or that no
    other EV of the sender leads to."""

    kind: ClassVar[str] = "ev-loss"
    target: ClassVar[Target] = Target.UPLINK
    chaos: ClassVar[Defaults] = {"of": "uplinks", "for": "2s", "loss": "50%"}

    aims: Targets = Field(
        alias="ev-loss", description="EVs by a switch, or one by its plane and number", examples=["p0-t1-2", "p0/u2"]
    )
    sender: HostName = Field(alias="from", description="the host whose EV it is", examples=["h0"])
    peer: HostName = Field(default="", alias="to", description="only packets to this host", examples=["h4"])
    loss: Share = Field(description="the chance of each packet to be lost", examples=["50%"])

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Refuses ends whose packets cross one T0 alone."""
        if around.plan is None:
            return
        sender = _no_end(self.sender, around.peers, around.plan)
        peer = _no_end(self.peer, around.peers, around.plan) if self.peer else ""
        if sender:
            yield Misfit("from", sender)
        if peer:
            yield Misfit("to", peer)
        if not sender and not peer and around.plan.shape.family.tiers[0] > 1:
            yield from self._not_used(around.peers, around.plan)

    def _not_used(self, talk: Mapping[str, frozenset[str]], plan: Plan) -> Iterator[Misfit]:
        group = plan.host_by_name[self.sender].group
        peers = [self.peer] if self.peer else talk[self.sender]
        if all(plan.host_by_name[peer].group == group for peer in peers):
            who = self.peer or f"every peer of {self.sender} in the workload"
            below = f"{who} is below the T0 of {self.sender}: no path between them leads over another switch"
            yield Misfit("to" if self.peer else "from", below)

    @property
    def parameters(self) -> FaultParameters:
        """Share, sender and peer."""
        words = f"{format_share(self.loss)} {self._ends}"
        return FaultParameters(self.loss, sender=self.sender, peer=self.peer, words=words)

    @property
    def _ends(self) -> str:
        return f"from {self.sender}" + (f" to {self.peer}" if self.peer else "")

    def broken_links(self, targets: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """The links to these switches. Raises UnsettledError for EVs that the sender does not have, and for a sender
        that is not in `plan`."""
        return tuple(dict.fromkeys(place.link for place in self.places(targets, plan)))

    def places(self, targets: tuple[str, ...], plan: Plan) -> tuple[LinkEnd, ...]:
        """The end at the switch of these links, one for each rule."""
        if self.sender not in plan.host_by_name or (self.peer and self.peer not in plan.host_by_name):
            raise UnsettledError(())  # rules about the workload report wrong ends
        return tuple(place for name in targets for place in self._places_of(name, plan))

    def _places_of(self, name: str, plan: Plan) -> tuple[LinkEnd, ...]:
        found = entrances(name, self.sender, self.peer, plan)
        if not found:
            near = self.peer and plan.host_by_name[self.sender].group == plan.host_by_name[self.peer].group
            over = f"no path {self._ends} leads over {name}"
            raise UnsettledError([] if near else [((self.kind,), over)])  # of hosts below one T0 `misfits` tells
        return found


def _no_end(name: str, peers: Mapping[str, frozenset[str]], plan: Plan) -> str:
    if name not in plan.host_by_name:
        return unknown_name("host", name, plan.host_by_name)
    return "" if name in peers else f"{name} is not part of the workload and sends nothing"


@declare
class Corrupt(_OnLinks):
    """One bit of the payload flips in a share of the data packets; the ICRC should detect it."""

    kind: ClassVar[str] = "corrupt"
    chaos: ClassVar[Defaults] = {"of": "T0-T1 links", "for": "2s", "share": "1%"}

    aims: Targets = Field(alias="corrupt", description="the link or links", examples=["p0-t0-0:p0-t1-2"])
    share: Share = Field(description="the chance of each data packet to be corrupted", examples=["1%"])

    def misfits(self, around: Surroundings) -> Iterator[Misfit]:
        """Requires the ICRC, without which nobody would notice."""
        if around.icrc is False:
            yield Misfit("", "it would go unnoticed: the ICRC is off; add `endpoint: {icrc: true}`")

    @property
    def parameters(self) -> FaultParameters:
        """Share and direction."""
        return FaultParameters(self.share, words=self._words(self.share))
