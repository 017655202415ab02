"""What a transport is called wherever people read of it, and whose clocks its timers follow. Pure.

RoCE is never called RoCE alone: its name says what its switches do, as most people run it with PFC.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.expect import METRICS
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.transports import TransportKind
from mrc_testbed.topos.plan import Routing

_BUFFERS = {"lossy": "RoCE, lossy", "deep": "RoCE, deep buffers", "pfc": "RoCE, PFC"}


class SoftwareTimer(NamedTuple):
    """A timer that software sets in seconds, whatever the network's round trip."""

    what: str
    ns: int


def transport_words(scenario: Scenario) -> str:
    """`MRC`, `RoCE, lossy`, `RoCE, deep buffers, selective`, `TCP, cubic`, `MPTCP, cubic`."""
    if scenario.transport.of_kernel:
        return f"{scenario.transport.upper()}, {scenario.tcp.congestion_control}"
    if scenario.transport is TransportKind.ROCE:
        selective = ", selective" if scenario.roce.recovery == "selective" else ""
        return _BUFFERS[scenario.roce.buffers] + selective
    return "MRC"


def routing_words(scenario: Scenario) -> str:
    """Who finds the path: `SRv6`, `ECMP`, `BGP`, `BGP, BFD 3 x 300 ms`."""
    if scenario.routing is Routing.SRV6:
        return "SRv6"
    if scenario.routing is Routing.ECMP_STATIC:
        return "ECMP"
    bfd = scenario.bgp.bfd
    return "BGP" + (f", BFD {bfd.multiplier} x {time_words(bfd.interval_ns)}" if bfd else "")


def chooses_paths(scenario: Scenario) -> bool:
    """Whether its hosts have EVs, which they retire and restore; others take the path that switches hash them to."""
    return METRICS["evs_retired"].known_to(scenario.transport)


def software_timers(scenario: Scenario) -> Iterator[SoftwareTimer]:
    """Those that decide how long an outage lasts, as long as they are written, at whatever scale the run was: software
    elsewhere does not go faster. MRC has none."""
    scenario = scenario.as_written
    if scenario.transport.of_kernel:
        yield SoftwareTimer("TCP's least retransmission timeout", scenario.tcp.rto_min_ns)
    if scenario.transport is TransportKind.ROCE:
        roce = scenario.roce
        yield SoftwareTimer(f"RoCE's acknowledgement timeout ({roce.timeout}, {roce.retries} retries)", roce.timeout_ns)
    if scenario.routing is Routing.BGP:
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
    if scenario.transport.of_kernel:
        each = f"{scenario.tcp.connections} connections a flow" if scenario.tcp.connections else "a connection a QP"
        each += " with a subflow a plane" if scenario.transport is TransportKind.MPTCP else ""
        return f"least retransmission timeout {time_words(scenario.tcp.rto_min_ns)}, {each}"
    if scenario.transport is TransportKind.ROCE:
        roce = scenario.roce
        timeout = f"timeout {roce.timeout} ({time_words(roce.timeout_ns)}), {roce.retries} retries"
        return f"{roce.recovery}, {timeout}, congestion control {roce.congestion_control}"
    return ""
