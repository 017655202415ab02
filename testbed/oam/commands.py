"""The two commands of a host at a prompt: read, carried out and shown.

h0 trace [-c N] h5 [p1/u2]
h0 ping [-c N] p1-t1-2 [uN]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.oam.probes import HopAnswer, HopProber, HopSays, Probe
from mrc_testbed.testbed.oam.trace import Traced, TracedHop, conclusion, following_name, reached, ways_to
from mrc_testbed.topos import usid
from mrc_testbed.topos.graph import Way
from mrc_testbed.topos.nodes import Host, Switch
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.units import time_text
from mrc_testbed.topos.usid import PathId

TRACE, PING = "trace", "ping"
USAGE = {TRACE: "HOST trace [-c N] HOST [pPLANE/uWAY]", PING: "HOST ping [-c N] SWITCH [uWAY]"}
USUAL = 3
MOST = 1000
_SILENT = "switches do not answer here: write `fabric: {oam: always}`, with `routing: srv6`"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trace:
    """`each`: questions to each node."""

    traced: Traced
    each: int


@dataclass(frozen=True, slots=True)
class Ping:
    """`way`: the switches of `plane` from the host to `switch`."""

    source: Host
    switch: Switch
    way: Way
    each: int


def is_ours(plan: Plan, words: Sequence[str]) -> bool:
    """True for a command of these at a host; `ping` of an address is a program."""
    if len(words) < 2 or words[0] not in plan.host_by_name:
        return False
    return words[1] == TRACE or (words[1] == PING and any(word in plan.switch_by_name for word in words[2:]))


def read(plan: Plan, words: Sequence[str]) -> Trace | Ping:
    """The command in `words`, for which `is_ours` is true. Raises UsageError."""
    source, verb = plan.host_by_name[words[0]], words[1]
    each, rest = _count(list(words[2:]), verb)
    if not 1 <= len(rest) <= 2:
        raise UsageError(f"usage: {USAGE[verb]}")
    if not plan.answers:
        raise UsageError(_SILENT)
    return _trace(plan, source, rest, each) if verb == TRACE else _ping(plan, source, rest, each)


def _count(words: list[str], verb: str) -> tuple[int, list[str]]:
    if "-c" not in words:
        return USUAL, words
    at = words.index("-c")
    value = words[at + 1] if at + 1 < len(words) else ""
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= MOST):
        raise UsageError(f"-c: {value!r} is not a number from 1 to {MOST}; usage: {USAGE[verb]}")
    return int(value), words[:at] + words[at + 2 :]


def _trace(plan: Plan, source: Host, words: list[str], each: int) -> Trace:
    target = plan.host_by_name.get(words[0])
    if target is None or target is source:
        raise UsageError(f"{words[0]} is not another host; usage: {USAGE[TRACE]}")
    paths = [path.id for path in plan.paths(source, target)]
    if len(words) == 1:
        return Trace(Traced(plan, source, target, paths[0]), each)
    known = {_path_word(path): path for path in paths}
    if words[1] not in known:
        some = ", ".join([*known][:3])
        raise UsageError(f"{words[1]} is no path from {source.name} to {target.name}; write one such as {some}")
    return Trace(Traced(plan, source, target, known[words[1]]), each)


def _path_word(path: PathId) -> str:
    return f"p{path.plane}/u{path.uplink}"


def _ping(plan: Plan, source: Host, words: list[str], each: int) -> Ping:
    switch = plan.switch_by_name.get(words[0])
    if switch is None:
        raise UsageError(f"{words[0]} is no switch; usage: {USAGE[PING]}")
    ways = ways_to(plan, source, switch.name)
    if not ways:
        raise UsageError(f"no path from {source.name} leads over {switch.name}")
    known = {f"u{number}": way for number, way in enumerate(ways)}
    word = words[1] if len(words) == 2 else "u0"
    if word not in known:
        raise UsageError(f"{word} is no way from {source.name} to {switch.name}; there are {', '.join(known)}")
    return Ping(source, switch, known[word], each)


def carry_out(command: Trace | Ping, prober: HopProber, plan: Plan, say: Say) -> int:
    """Ask, and say what comes back. Returns 0 if what was asked for answers, else 1. Raises FabricError."""
    return _carry_out_trace(command, prober, say) if isinstance(command, Trace) else _pinged(command, prober, plan, say)


def _carry_out_trace(command: Trace, prober: HopProber, say: Say) -> int:
    traced = command.traced
    path = next(path for path in traced.plan.paths(traced.source, traced.target) if path.id == traced.path)
    say(f"{traced.source.name} to {traced.target.name} by {_path_word(traced.path)}, {path.outer}")
    hops = []
    for hop in traced.hops(prober, command.each):
        hops.append(hop)
        for line in _lines(traced, hop):
            say(line)
    if text := conclusion(traced, hops):
        say(text)
    return 0 if reached(traced, hops) else 1


def _lines(traced: Traced, hop: TracedHop) -> Iterable[str]:
    """One of the node that should be there, and one of each other that has answered."""
    width = max(map(len, traced.nodes))
    share = "" if hop.answered == hop.asked or not hop.heard else f"  {hop.answered} of {hop.asked}"
    rtt = "*" if hop.rtt_ns is None else time_text(hop.rtt_ns)
    address = _address(traced.plan, hop.node)
    yield f"{hop.number}  {hop.node:<{width}}  {address:<16}  {rtt:>8}{share}{_following(traced.plan, hop)}".rstrip()
    if (stop := hop.stop) is not None and stop.by != hop.node:
        address = _address(traced.plan, stop.by)
        yield f"   {stop.by:<{width}}  {address:<16}  {time_text(stop.rtt_ns):>8}"


def _address(plan: Plan, node: str) -> str:
    switch = plan.switch_by_name.get(node)
    return plan.host_by_name[node].address if switch is None else usid.switch_address(switch.usid)


def _following(plan: Plan, hop: TracedHop) -> str:
    onward = (answer for answer in hop.passing if answer.kind is HopSays.HOPS_ENDED and answer.by == hop.node)
    name = next((following_name(plan, answer) for answer in onward), "")
    return f"  then {name}" if name else ""


def _pinged(command: Ping, prober: HopProber, plan: Plan, say: Say) -> int:
    switch, way = command.switch, command.way
    probes = [Probe(command.source, switch.plane, way, len(way), number) for number in range(command.each)]
    answers = [answer for answer in prober.ask(probes) if answer is not None]
    replies = [answer for answer in answers if answer.kind is HopSays.REPLY]
    times = sorted(answer.rtt_ns for answer in replies)
    shown = f"  {time_text(median(times))} ({time_text(times[0])} to {time_text(times[-1])})" if times else ""
    say(f"{switch.name}  {probes[0].list_address}  {len(replies)} of {len(probes)}{shown}")
    for text in dict.fromkeys(_refusal(plan, answer) for answer in answers if answer not in replies):
        say(text)
    return 0 if replies else 1


def _refusal(plan: Plan, answer: HopAnswer) -> str:
    return f"ends at {answer.by}, which has no entry for {following_name(plan, answer) or 'what comes next'}"
