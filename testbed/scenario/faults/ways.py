"""Where packets of one sender on some of its paths can be told from all others: the places of a rule. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from mrc_testbed.testbed.scenario.faults.occurrence import LinkEnd
from mrc_testbed.testbed.scenario.text.denylist import PathGroup, parse_paths
from mrc_testbed.topos.graph import SwitchPlace, Way
from mrc_testbed.topos.names import switch_name
from mrc_testbed.topos.plan import Plan

Crossing = tuple[SwitchPlace, SwitchPlace]
"""A link by its ends, in the order in which packets come to them."""
Numbered = tuple[int, Way]
"""A way with its number."""


def entrances(name: str, sender: str, peer: str, plan: Plan) -> tuple[LinkEnd, ...]:
    """The ends of links at which packets from `sender` on these paths arrive, each packet at one of them; none if it
    has no such path. `name`: as `parse_paths` reads it. `peer`: empty for all other hosts.

    Of paths over a switch those are its own ports. Of paths with one number they are where no other number of the
    sender passes, as near to it as there are such; where there are none, behind its T0.
    """
    paths = parse_paths(name)
    if paths is None:
        return ()
    ways = list(_ways(sender, peer, plan))
    meant = [each for each in ways if paths.takes(*each)]
    if paths.switch is None:
        crossed = _alone(paths, ways, meant)
    else:
        crossed = (link for _, way in meant for link in pairwise(way) if link[1] == paths.switch)
    return tuple(_end(link, paths, plan) for link in dict.fromkeys(crossed))


def _ways(sender: str, peer: str, plan: Plan) -> Iterator[Numbered]:
    """All from the sender to other T0s, or to that of the peer."""
    family, source = plan.shape.family, plan.host_by_name[sender].group
    groups = [plan.host_by_name[peer].group] if peer else range(family.tiers[0])
    for target in groups:
        if target != source:
            yield from enumerate(family.ways_of(source, target))


def _alone(paths: PathGroup, ways: Iterable[Numbered], meant: Iterable[Numbered]) -> Iterator[Crossing]:
    """Of each way that is meant, the first link that ways with other numbers do not cross."""
    others = {link for number, way in ways if number != paths.number for link in pairwise(way)}
    for _, way in meant:
        links = list(pairwise(way))
        yield next((link for link in links if link not in others), links[0])


def _end(crossing: Crossing, paths: PathGroup, plan: Plan) -> LinkEnd:
    before, entered = (switch_name(paths.plane, *place) for place in crossing)
    link = plan.link_between(before, entered)
    return LinkEnd(link.name, "far" if link.far.node == entered else "near")
