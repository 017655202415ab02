"""What a transport is called wherever people read of it, and whose clocks its timers follow. Pure.

RoCE without PFC is not what people run, so it is never called RoCE alone: its name says what its switches do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from testbed.checks.scale import amount
from testbed.expect import METRICS
from testbed.expect.vocabulary import Dimension
from testbed.scenario import Scenario
from testbed.scenario.transports import TransportKind

_BUFFERS = {"lossy": "RoCE, lossy", "deep": "RoCE, deep buffers"}


class SoftwareTimer(NamedTuple):
    """A timer that software sets in seconds, whatever the network's round trip."""

    what: str
    ns: int


def transport_words(scenario: Scenario) -> str:
    """`MRC`, `RoCE, lossy`, `RoCE, deep buffers, selective`, `TCP, cubic`."""
    if scenario.transport is TransportKind.TCP:
        return f"TCP, {scenario.tcp.congestion_control}"
    if scenario.transport is TransportKind.ROCE:
        selective = ", selective" if scenario.roce.recovery == "selective" else ""
        return _BUFFERS[scenario.roce.buffers] + selective
    return "MRC"


def chooses_paths(scenario: Scenario) -> bool:
    """Whether its hosts have EVs, which they retire and restore; others take the path that switches hash them to."""
    return METRICS["evs_retired"].known_to(scenario.transport)


def software_timers(scenario: Scenario) -> Iterator[SoftwareTimer]:
    """Those that decide how long an outage lasts; MRC has none."""
    if scenario.transport is TransportKind.TCP:
        yield SoftwareTimer("TCP's least retransmission timeout", scenario.tcp.rto_min_ns)
    if scenario.transport is TransportKind.ROCE:
        roce = scenario.roce
        yield SoftwareTimer(f"RoCE's acknowledgement timeout ({roce.timeout}, {roce.retries} retries)", roce.timeout_ns)


def time_words(ns: float) -> str:
    """`1.07 s`, `200 ms`, and below a millisecond `26 us`."""
    return f"{ns / 1e3:.3g} us" if ns < 1e6 else amount(Dimension.TIME, ns)


def settings_words(scenario: Scenario) -> str:
    """How a baseline is set, beside its name: `go-back-n, timeout 18 (1.07 s), 7 retries, dcqcn`; nothing for MRC."""
    if scenario.transport is TransportKind.TCP:
        each = f"{scenario.tcp.connections} connections a flow" if scenario.tcp.connections else "a connection a QP"
        return f"least retransmission timeout {time_words(scenario.tcp.rto_min_ns)}, {each}"
    if scenario.transport is TransportKind.ROCE:
        roce = scenario.roce
        timeout = f"timeout {roce.timeout} ({time_words(roce.timeout_ns)}), {roce.retries} retries"
        return f"{roce.recovery}, {timeout}, congestion control {roce.congestion_control}"
    return ""
