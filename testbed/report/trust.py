"""How far to trust a comparison of transports: what the scale of this fabric flatters, in its own numbers. Pure.

A round trip lasts thousands of times as long here as in a data centre, and packets are as large. What the network
clocks goes with it; timers of software do not, nor does the number of packets in a round trip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mrc_testbed.testbed.checks.scale import number
from mrc_testbed.testbed.report.transport_words import software_timers, time_words, transport_words
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.topos.layout import title

REFERENCE_RTT_NS = 13_000
"""A round trip across a T1 in a data centre (MRC paper, table 4.2: 6.54 us one way)."""
REFERENCE_RATE_BPS = 400_000_000_000
REFERENCE_PAYLOAD_BYTES = 4096

_INCASTS = {
    "lossy": "full ports drop, which is unkind to RoCE",
    "deep": "deep queues grow, which is kind to RoCE's goodput and unkind to its latency",
}
"""What an incast of RoCE comes to where no port marks, by buffers."""


class Bias(NamedTuple):
    """Something that makes figures other than they would be: what it is about, in one sentence (empty: too small a
    thing for a terminal), and at length."""

    about: str
    short: str
    text: str

    @property
    def head(self) -> str:
        """What it is about, as a sentence begins."""
        return self.about[:1].upper() + self.about[1:]


def scale_of_time(scenario: Scenario) -> float:
    """K: how many times as long T is, as it is written, as a round trip in a data centre."""
    return scenario.as_written.fabric.rtt_ns / REFERENCE_RTT_NS


def biases(scenarios: Sequence[Scenario]) -> list[Bias]:
    """Of runs over these transports, the gravest first; none for MRC alone, and none without a delay T."""
    if all(one.transport.has_paths for one in scenarios) or not scenarios[0].fabric.rtt_ns:
        return []
    kinds = (_clocks, _packets, _buffers, _marks, _layout, _headers)
    return [bias for kind in kinds for bias in kind(scenarios)]


def short_lines(found: Sequence[Bias]) -> list[str]:
    """The gravest in two to four lines, for terminals; none without any."""
    return ["How far to trust these figures:", *(f"- {bias.short}" for bias in found if bias.short)] if found else []


def _clocks(scenarios: Sequence[Scenario]) -> Iterator[Bias]:
    base = scenarios[0]
    rtt_ns, k = base.as_written.fabric.rtt_ns, f"{scale_of_time(base):.0f}"
    if rtt_ns <= REFERENCE_RTT_NS:
        return  # timers are as long in round trips as they are there, or longer
    scaled = f" as written (this run is {base.speed} times faster, its timers too)" if base.speed > 1 else ""
    here, there = f"{time_words(rtt_ns)} here{scaled}", time_words(REFERENCE_RTT_NS)
    timers = dict.fromkeys(timer for one in scenarios for timer in software_timers(one))
    told = "; ".join(
        f"{timer.what} of {time_words(timer.ns)} is {number(timer.ns / rtt_ns)} T here and"
        f" {number(timer.ns / REFERENCE_RTT_NS)} there"
        for timer in timers
    )
    own = " MRC's own timers count in T and scale with it; that is MRC's bias." if _with_mrc(scenarios) else ""
    yield Bias(
        "clocks",
        f"T is {here}, {k} times the {there} of a data centre; timers of software stay in seconds, so in round"
        f" trips they are {k} times shorter here: kind to what is not MRC.",
        f"A round trip T is {here} and about {there} in a data centre: K = {k}. Timers of software run in seconds,"
        f" as they do in reality, so in round trips they are {k} times shorter here, which is kind to the baselines:"
        f" {told}.{own} Outages are given in seconds and in T, side by side.",
    )


def _with_mrc(scenarios: Sequence[Scenario]) -> Scenario | None:
    return next((one for one in scenarios if one.transport.has_paths), None)


def _packets(scenarios: Sequence[Scenario]) -> Iterator[Bias]:
    there = REFERENCE_RATE_BPS * REFERENCE_RTT_NS / (8e9 * REFERENCE_PAYLOAD_BYTES)
    others = [one for one in scenarios if not one.transport.has_paths]
    back = any(one.transport.resends_all(one.own) for one in others)
    mrc, here = _with_mrc(scenarios), others[0].shape().plane_bdp_packets
    planes = f" ({mrc.shape().plane_bdp_packets:.0f} in a plane of MRC)" if mrc else ""
    kind = f": kind to go-back-N by {there / here:.1f}" if back and here else ""
    why = ", which sends again what is under way after each loss" if kind else ""
    yield Bias(
        "packets",
        f"{here:.0f} packets fill a port for a round trip here, {there:.0f} at 400 Gb/s{kind}.",
        f"{here:.0f} packets fill a port for a round trip here{planes}, {there:.0f} at 400 Gb/s and"
        f" {time_words(REFERENCE_RTT_NS)}{kind}{why}.",
    )


def _buffers(scenarios: Sequence[Scenario]) -> Iterator[Bias]:
    kinds = {one.transport.buffers(one.own) for one in scenarios} - {""}
    if not kinds or "pfc" in kinds:
        return
    lossy = "lossy: switches drop when a queue is full" if "lossy" in kinds else ""
    deep = "deep buffers: switches hardly ever drop" if "deep" in kinds else ""
    yield Bias(
        "no PFC",
        "RoCE has no PFC here, which most people run it with: it is called lossy, or deep buffers, for what it is.",
        "RoCE has no PFC here, which most people run it with; so it is never called RoCE alone, but"
        f" {'; '.join(filter(None, (lossy, deep)))}. What pauses do, congestion that spreads and its victims, is not in"
        " these figures.",
    )


def _marks(scenarios: Sequence[Scenario]) -> Iterator[Bias]:
    """Without PFC switches mark for DCQCN as they do for MRC."""
    marked = [one for one in scenarios if one.transport.cut_by_marks(one.own) and not one.pause_thresholds()]
    told = {one.transport.buffers(one.own): one.port_thresholds() for one in marked}
    if not told:
        return
    ends = "; ".join(_INCASTS[kind] for kind in sorted(told, reverse=True))
    levels = next(iter(told.values()))
    yield Bias(
        "marks for DCQCN",
        f"Ports towards hosts never mark here without PFC, so DCQCN cuts nobody in an incast towards a host: {ends}.",
        "Switches mark for DCQCN as they do for MRC here, unless they have PFC. Ports towards hosts never mark, so an"
        f" incast towards a host is cut by nobody: {ends}. Ports between switches mark all above {levels.ecn_high:g}"
        " BDP, where DCQCN's own curve marks few below 3 BDP: rates are cut sooner there and climb back for thousands"
        " of T, which is unkind to RoCE.",
    )


def _layout(scenarios: Sequence[Scenario]) -> Iterator[Bias]:
    """A fault names parts of the fabric as written; folded ones carry more."""
    folded = next((one for one in scenarios if one.folds), None)
    if folded is None or folded.written_shape().planes == 1 or len(folded.shape().family.tiers) == 1:
        return
    planes, family = folded.written_shape().planes, folded.shape().family
    ways, top = family.most_ways(), title(family, len(family.tiers) - 1)
    yield Bias(
        "layout",
        "",
        f"A folded fabric has one plane with {planes} x the rate: the same hosts, rate and faults, but a {top} carries"
        f" 1/{ways} of all traffic there and 1/{planes * ways} of it as written, so one that fails takes {planes} times"
        " as much. That is what fewer, faster ports cost, and no error.",
    )


def _headers(scenarios: Sequence[Scenario]) -> Iterator[Bias]:
    sizes = {transport_words(one): (one.shape().payload_bytes, one.shape().wire_bytes) for one in scenarios}
    told = ", ".join(f"{words} {payload} of {wire} bytes" for words, (payload, wire) in sizes.items())
    yield Bias(
        "headers",
        "",
        f"Goodput is bytes of data per second, so headers count. Data in a full packet: {told}.",
    )
