"""Faults that are rules of the port program: each is taken away by its own handle, whatever else holds on the port."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.fabric.port_rules import PortRule, RuleHandle
from testbed.faults.schedule import FaultStep
from testbed.faults.site import Site

_MILLION = 1_000_000


def chance(step: FaultStep) -> float:
    """The share of packets that a step is about, as a probability."""
    return step.how.share / _MILLION


def put(site: Site, step: FaultStep, rule: PortRule) -> None:
    """Let a rule hold at all places of a step. Raises FabricError; what was put until then is healed with the rest."""
    for place in step.places:
        keep(site, step, [site.fabric.add_rule(place.link, place.toward, rule)])


def keep(site: Site, step: FaultStep, handles: Iterable[RuleHandle]) -> None:
    """Remember handles until `heal`."""
    site.rules.setdefault(step.fault, []).extend(handles)


def heal(site: Site, step: FaultStep) -> None:
    """Take away the rules of this fault and no others."""
    for handle in site.rules.pop(step.fault, []):
        site.fabric.remove_rule(handle)
