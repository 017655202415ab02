"""Rules about switches that choose packet by packet: where nothing would choose, or not by what waits."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.switching.adaptive import choices_of
from mrc_testbed.topos.graph import ShapeError
from mrc_testbed.topos.routes import Routing

_CHOOSE, _FAR_LINKS = ("ecmp", "choose"), ("ecmp", "far_links")


def adaptive_mistakes(scenario: Scenario) -> Iterator[Mistake]:
    """Combinations with `ecmp.choose` and `ecmp.far_links` that would do nothing, or something else."""
    if scenario.ecmp.choose == "adaptive":
        yield from _without_a_choice(scenario)
        yield from _other_hashes(scenario)
        yield from _other_ports(scenario)
    if scenario.ecmp.far_links == "known":
        yield from _unknown_links(scenario)


def _without_a_choice(scenario: Scenario) -> Iterator[Mistake]:
    """Senders, kernels and daemons that leave switches no choice among uplinks for a packet."""
    transport, instead = scenario.transport, "(of variants, name it in those of roce and mrc-hashed)"
    if transport.names_paths:
        why = f"{transport} names the path of each packet, so nothing would choose"
        yield Mistake(_CHOOSE, f"{why}; remove this key, or write `transport: roce` or `mrc-hashed` {instead}")
    elif transport.of_kernel:
        why = f"{transport} may take a packet that was overtaken for lost, so its packets are hashed"
        yield Mistake(_CHOOSE, f"{why}; write `choose: hash`, or `transport: roce` or `mrc-hashed` {instead}")
    elif scenario.routing is Routing.BGP:
        why = "with bgp each destination has next hops of its own, which the port program does not know"
        yield Mistake(_CHOOSE, f"{why}; write `routing: ecmp-static`, or `choose: hash`")


def _other_hashes(scenario: Scenario) -> Iterator[Mistake]:
    """What says how data are hashed, where they are not."""
    if scenario.ecmp.repath:
        why = "switches that choose packet by packet hash no flow label"
        yield Mistake(("ecmp", "repath"), f"{why}; remove this key, or write `choose: hash`")
    if scenario.ecmp.hosts == "hashed":
        why = "hosts would hash as switches do, and those choose packet by packet"
        yield Mistake(("ecmp", "hosts"), f"{why}; remove this key, or write `choose: hash`")


def _other_ports(scenario: Scenario) -> Iterator[Mistake]:
    """Switches of the kernel whose choice depends on the group that a packet is for."""
    if scenario.world is not WorldKind.KERNEL or scenario.routing is not Routing.ECMP_STATIC:
        return
    try:
        plan = scenario.plan()
    except ShapeError:  # said already
        return
    for switch in plan.switches:
        if switch.plane == 0 and len(choices_of(plan, switch)) > 1:
            why = f"{switch.name} would choose among other ports for each T0, which the port program does not know"
            yield Mistake(_CHOOSE, f"{why}; write `world: virtual`, or `choose: hash`")
            return


def _unknown_links(scenario: Scenario) -> Iterator[Mistake]:
    """Switches that nobody tells."""
    if scenario.ecmp.choose != "adaptive":
        why = "switches that hash use the links of their own ports alone"
        yield Mistake(_FAR_LINKS, f"{why}; remove this key, or write `choose: adaptive`")
    elif scenario.world is WorldKind.KERNEL:
        why = "nobody tells switches of the kernel with static routes"
        yield Mistake(_FAR_LINKS, f"{why}; write `world: virtual`, or remove this key")
