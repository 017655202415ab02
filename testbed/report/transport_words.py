"""What a transport is called wherever people read of it, and whose clocks its timers follow. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.transports.base import SoftwareTimer
from mrc_testbed.topos.routes import Routing


def transport_words(scenario: Scenario) -> str:
    """`MRC`, `RoCE, lossy`, `RoCE, deep buffers, selective`, `TCP, cubic`, `MPTCP, cubic`; with `adaptive routing`
    behind it where switches choose packet by packet."""
    called = scenario.transport.called(scenario.own)
    return f"{called}, adaptive routing" if scenario.adaptive else called


def routing_words(scenario: Scenario) -> str:
    """Who finds the path: `SRv6`, `ECMP`, `adaptive`, `BGP, BFD 3 x 300 ms`, `SRv6, uSIDs by BGP, an AS per T1`."""
    if scenario.routing is Routing.SRV6:
        return "SRv6"
    if scenario.routing is Routing.ECMP_STATIC:
        return "adaptive" if scenario.adaptive else "ECMP"
    bgp, how = scenario.bgp, ["BGP"]
    if scenario.transport.names_paths:
        how = ["SRv6", "uSIDs by BGP" if bgp.carries == "locators" else "BGP beside it"]
    if bgp.t1_as == "each":
        how.append("an AS per T1")
    if bgp.bfd:
        how.append(f"BFD {bgp.bfd.multiplier} x {time_words(bgp.bfd.interval_ns)}")
    return ", ".join(how)


def software_timers(scenario: Scenario) -> Iterator[SoftwareTimer]:
    """Those that decide how long an outage lasts, as long as they are written, at whatever scale the run was: software
    elsewhere does not go faster. MRC has none, unless BGP finds the next switch on its packets' lists."""
    scenario = scenario.as_written
    yield from scenario.transport.timers(scenario.own)
    if scenario.routing is Routing.BGP and (scenario.bgp.carries == "locators" or not scenario.transport.names_paths):
        yield _routing_timer(scenario)


def _routing_timer(scenario: Scenario) -> SoftwareTimer:
    bgp = scenario.bgp
    if bgp.bfd:
        return SoftwareTimer(
            "the silence after which BFD gives a neighbour up", bgp.bfd.multiplier * bgp.bfd.interval_ns
        )
    return SoftwareTimer("BGP's hold timer", bgp.hold.hold_ns)


def time_words(ns: float) -> str:
    """`1.07 s`, `200 ms`, and below a millisecond `26 us`."""
    return f"{ns / 1e3:.3g} us" if ns < 1e6 else amount(Dimension.TIME, ns)


def settings_words(scenario: Scenario) -> str:
    """How a baseline is set, beside its name: `go-back-n, timeout 18 (1.07 s), 7 retries, dcqcn`; nothing for MRC."""
    return scenario.transport.settings_words(scenario.own, time_words)
