"""Random runs as far as windows see them: a history, paths that rest, and expectations in every window.

Times are whole milliseconds as written. Faults overlap, go on, fail, come again, are folded and scaled, and are made by
hand, which no plan tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from mrc_testbed.testbed.checks.record import HistoryLine, RunRecord
from mrc_testbed.testbed.evidence.events import ASSUMED_BAD, DENIED, GOOD, EvChange, Stall
from mrc_testbed.testbed.expect import Window, parse_expectation
from mrc_testbed.testbed.scenario import Occurrence, Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.model.scale import scaled_expectation

MS = 1_000_000
LONG_MS = 300
"""How long the workload is."""
_LINKS = ("p0-t0-0:p0-t1-0", "p1-t0-0:p1-t1-0", "p1-t0-1:p1-t1-1", "p0-t0-1:p0-t1-1")
_NAMES = "abcd"


@dataclass(frozen=True)
class DrawnRun:
    """A record, the windows that are asked of it, and how many ns it has for each millisecond as written."""

    record: RunRecord
    windows: tuple[Window, ...]
    ms: int


def drawn_run(seed: int) -> DrawnRun:
    """The run of a seed, always the same."""
    dice = Random(seed)
    scale, folded = dice.choice((1, 1, 10, 1000)), dice.random() < 0.3
    faults = dict(zip(_NAMES[: dice.randint(1, 4)], _LINKS, strict=False))
    text = [f"name: drawn\nworld: virtual\nscale: {scale}"]
    text += [f"fabric: {{planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1{', layout: folded' if folded else ''}}}"]
    text += ["workload:\n  - write: {from: h0, to: h1, for: 4s}", "faults:"]
    text += [*(_fault(dice, name, link) for name, link in faults.items()), "expect: []"]
    scenario = load_scenario_text("\n".join(text)).at_scale()
    asked = (parse_expectation(f"qp_errors == 0 {words}") for words in _windows(dice, [*faults]))
    ms = MS // scale
    return DrawnRun(_record(dice, scenario, ms), tuple(scaled_expectation(one, scale).window for one in asked), ms)


def _fault(dice: Random, name: str, link: str) -> str:
    at = dice.choice(("cold-start", *(f"{dice.randint(0, LONG_MS)}ms" for _ in range(9))))
    if dice.random() < 0.3:
        period = 4 * dice.randint(1, 20)
        return f'  - {{at: {at}, link-flap: "{link}", period: {period}ms, count: {dice.randint(2, 4)}, name: {name}}}'
    return f'  - {{at: {at}, link-down: "{link}", for: {dice.randint(1, LONG_MS)}ms, name: {name}}}'


def _windows(dice: Random, faults: list[str]) -> Iterator[str]:
    """One of each form."""
    yield from ("clean", f"during {dice.choice(faults)}", f"before {dice.choice(faults)}", "during faults")
    yield f"after {dice.choice(faults)} heals{_offset(dice, '+')}"
    yield f"after {dice.choice(faults)} heals{_offset(dice, '+')} for {_length(dice)}"
    yield f"from {_moment(dice, faults)} for {_length(dice)}"
    begin = dice.randint(0, LONG_MS - 1)
    yield f"from {begin}ms to {dice.randint(begin + 1, LONG_MS + 20)}ms"
    yield f"from {dice.randint(0, LONG_MS)}ms to {dice.choice(faults)}{dice.choice(('', ' heals'))}"
    one, other = dice.choice(faults), dice.choice(faults)
    yield f"from {one} heals{_offset(dice, '+')} to {other}" if one != other else f"from {one} to {one} heals + 1ms"


def _moment(dice: Random, names: list[str]) -> str:
    fault = f"{dice.choice(names)}{dice.choice(('', ' heals'))}{_offset(dice, dice.choice('+-'))}"
    return dice.choice((f"{dice.randint(0, LONG_MS)}ms", fault))


def _offset(dice: Random, sign: str) -> str:
    return dice.choice(("", f" {sign} {_length(dice)}"))


def _length(dice: Random) -> str:
    return dice.choice((f"{dice.randint(1, 99)}ms", f"{dice.randint(1, 40)} rtt"))


def _record(dice: Random, scenario: Scenario, ms: int) -> RunRecord:
    start = 10_000 * ms
    end = start + (LONG_MS + dice.randint(-5, 20)) * ms
    occurrences = [*scenario.occurrences, *_by_hand(dice, scenario, ms)]
    history = [HistoryLine(start, "workload", "invoke"), HistoryLine(end, "workload", "ok")]
    for one in occurrences:
        history += _lines(dice, one, start, ms)
    return RunRecord(
        Path(),
        scenario,
        scenario.occurrences,
        {"base_rtt_ns": dice.choice((ms, ms // 2, 3 * ms))},
        tuple(sorted(history, key=lambda line: line.t_ns)),
        tuple(sorted(_path_changes(dice, start, ms), key=lambda change: change.t_ns)),
        stalls=tuple(_stalls(dice, start, ms)),
    )


def _by_hand(dice: Random, scenario: Scenario, ms: int) -> Iterator[Occurrence]:
    for number in range(dice.choice((0, 0, 1, 2)) if scenario.occurrences else 0):
        begin = dice.randint(0, LONG_MS) * ms
        end, name = begin + dice.randint(1, 90) * ms, f"hand-{number + 1}"
        yield replace(scenario.occurrences[0], fault=name, number=0, begin_ns=begin, end_ns=end)


def _lines(dice: Random, one: Occurrence, start: int, ms: int) -> Iterator[HistoryLine]:
    """What a run notes of an occurrence: with delays; or it never came, failed, or went on."""

    def line(at_ms: int, op: str, kind: str) -> HistoryLine:
        t_ns = start + at_ms * ms
        return HistoryLine(t_ns, op, kind, "", one.fault, one.kind, "?", number=one.number, links=one.links)

    what = dice.random()
    begin, end = round(one.begin_ns / ms) - (one.begin_ns == 0) * dice.randint(0, 9), round(one.end_ns / ms)
    placed, mended = begin + dice.choice((0, 0, 1, 3)), end + dice.choice((0, 0, 1, 30))
    if what < 0.05:
        return
    yield line(begin, "inject", "invoke")
    if what < 0.1:
        yield line(placed, "inject", "fail")
        return
    yield line(placed, "inject", "ok")
    if what > 0.17:
        yield line(max(mended, placed), "heal", "ok")
    else:
        yield line(max(mended, placed), "heal", "fail")


def _path_changes(dice: Random, start: int, ms: int) -> Iterator[EvChange]:
    """Paths that rest, are denied and come back, in any order."""
    for uplink in range(dice.choice((0, 0, 0, 1, 2))):
        old, at = GOOD, start + dice.randint(-20, LONG_MS) * ms
        for _ in range(dice.randint(1, 4)):
            new = dice.choice([state for state in (GOOD, ASSUMED_BAD, DENIED) if state != old])
            lost = at - dice.randint(0, 60) * ms if new == ASSUMED_BAD and dice.random() < 0.5 else 0
            yield EvChange(at, "h0", "h1", 0, uplink, old, new, lost)
            old, at = new, at + dice.randint(0, 60) * ms


def _stalls(dice: Random, start: int, ms: int) -> Iterator[Stall]:
    for number in range(dice.choice((0, 0, 0, 1))):
        begin = start + dice.randint(0, LONG_MS) * ms
        yield Stall("h0", "h1", str(number), begin, dice.choice((None, begin + dice.randint(0, 80) * ms)))
