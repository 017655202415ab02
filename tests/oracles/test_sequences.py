"""Two runs of one seed against a second computation of their stories, of run folders drawn from seeds."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest

from mrc_testbed.testbed.compare.runs import load_run
from mrc_testbed.testbed.compare.sequence import ChapterDiff, SequenceDiff, sequence_diff
from mrc_testbed.testbed.compare.story import Chapter, chapters
from tests.oracles.felt import Felt
from tests.oracles.raw import Raw, Row
from tests.unit.checks.test_folder import LINK, RunFolder, at, ev, fault

SEEDS = pytest.mark.parametrize("seed", range(60))
KEEP = pytest.mark.nightly(keep=20)
OUT, DENIED = "ASSUMED_BAD", "DENIED"
PATHS = [("h0", "h2", 0, 1), ("h0", "h3", 0, 1), ("h3", "h1", 0, 1), ("h1", "h2", 1, 0), ("h2", "h0", 1, 1)]
"""The first three go over what breaks."""
Key = tuple[str, int]
NO_FAULT: Key = ("", 0)


class Told(NamedTuple):
    """An event: what, in ns since its chapter began or healed, and which of the two."""

    t_ns: int
    what: str
    healed: bool
    since_ns: int


@cache
def pair(seed: int) -> tuple[Raw, Raw, SequenceDiff, list[list[Chapter]]]:
    """The same schedule, and events that chance moves."""
    dice = random.Random(seed)
    folder = Path(mkdtemp())
    twice = dice.random() < 0.6
    rtts = [dice.choice([20_000_000, 25_000_000, 30_000_000]) for _ in range(2)]
    events = list(_events(dice, twice))
    for name, rtt in zip(("first", "second"), rtts, strict=True):
        run = RunFolder()
        run.environment["base_rtt_ns"] = rtt
        if twice:
            later = [("inject", "invoke", 6.0), ("inject", "ok", 6.002), ("heal", "invoke", 6.1), ("heal", "ok", 6.1)]
            run.history[6:6] = [fault(op, kind, seconds, cycle=1) for op, kind, seconds in later]
        snapshots = [line for line in run.events if line["event"] == "snapshot"]
        moved = [_moved(dice, line) for line in events if dice.random() < 0.9]
        run.events = sorted([*snapshots, *moved], key=lambda line: int(line["t_ns"]))
        (folder / name).mkdir()
        run.write(folder / name)
    runs = [load_run(folder / name) for name in ("first", "second")]
    told = [chapters(run.record) for run in runs]
    return Raw(folder / "first"), Raw(folder / "second"), sequence_diff(*runs), told


def _events(dice: random.Random, twice: bool) -> list[Row]:
    found: list[Row] = []
    for host, peer, plane, uplink in dice.sample(PATHS, dice.choice([1, 3, 5])):
        path = (host, peer, plane, uplink)
        for begin in (3.5, 6.0) if twice else (3.5,):
            lost = begin + dice.uniform(0.01, 0.09)
            found.append(ev(*path, lost + dice.uniform(0.02, 0.2), dice.choice(["GOOD", "SKIP"]), OUT, lost))
            found.append(ev(*path, begin + dice.uniform(1.1, 1.6), OUT, "GOOD"))
    for _ in range(dice.choice([0, 2])):
        path = dice.choice(PATHS)
        seconds = dice.uniform(0.5, 8)
        found += [ev(*path, seconds, "GOOD", DENIED), ev(*path, seconds + 0.1, DENIED, "GOOD")]
        found += [ev(*path, seconds + 0.2, "GOOD", "SKIP")]
    for of in (None, "h2"):
        port = {"host": "h0", "peer": of, "plane": dice.randrange(2), "state": dice.choice(["UP", "DOWN"])}
        found.append({"event": "port_state", "t_ns": at(dice.uniform(1, 8)), **port})
    if dice.random() < 0.5:
        ends = {"host": "h0", "peer": "h2", "reason": "retries"}
        found.append({"event": "qp_error", "t_ns": at(dice.uniform(4, 8)), **ends})
    return found


def _moved(dice: random.Random, line: Row) -> Row:
    """Often by nothing, sometimes by less than two round trips, seldom by much."""
    by_ns = dice.choice([0, 0, dice.randrange(-9_000_000, 9_000_000), dice.randrange(0, 400_000_000)])
    return {**line, "t_ns": line["t_ns"] + by_ns}


def story(raw: Raw) -> dict[Key, list[Told]]:
    """Events by chapter, in order of time."""
    outages = Felt(raw.folder, 0).outages
    keys = [(one.name, number) for number, one in enumerate(outages)]
    found: dict[Key, list[tuple[int, str, bool]]] = {key: [] for key in keys}
    left: dict[Any, Key] = {}

    def latest(t_ns: int) -> Key:
        return max(
            ((one.tried, key) for one, key in zip(outages, keys, strict=True) if one.tried <= t_ns),
            default=(0, NO_FAULT),
        )[1]

    def cause(line: Row) -> Key:
        over = (line["host"], line["peer"], line["plane"], line["uplink"]) in PATHS[:3]
        t_ns, lost = line["t_ns"], line["first_lost_tx_ns"]
        due = [
            (one.begun, key)
            for one, key in zip(outages, keys, strict=True)
            if over and one.tried <= t_ns and (t_ns <= one.until or one.tried <= lost <= one.healed)
        ]
        return max(due, default=(0, NO_FAULT))[1]

    for line in raw.events:
        t_ns = line["t_ns"]
        if line["event"] == "ev_state":
            path = (line["host"], line["peer"], line["plane"], line["uplink"])
            name = f"{path[0]}->{path[1]} p{path[2]}/{path[3]}"
            if line["to"] == OUT:
                left[path] = cause(line)
                found.setdefault(left[path], []).append((t_ns, f"{name} retired", False))
            elif line["from"] == OUT:
                found.setdefault(left.get(path, NO_FAULT), []).append((t_ns, f"{name} back", True))
            elif DENIED in (line["to"], line["from"]):
                what = "denied" if line["to"] == DENIED else "allowed"
                found.setdefault(latest(t_ns), []).append((t_ns, f"{name} {what}", False))
        elif line["event"] == "port_state":
            whose = f"learns that port p{line['plane']} of {line['peer']}" if line["peer"] else f"port p{line['plane']}"
            found.setdefault(latest(t_ns), []).append((t_ns, f"{line['host']} {whose} is {line['state']}", False))
        elif line["event"] == "qp_error":
            what = f"{line['host']} QP to {line['peer']} failed: {line['reason']}"
            found.setdefault(latest(t_ns), []).append((t_ns, what, False))
    begun = {key: (one.begun, int(one.healed)) for key, one in zip(keys, outages, strict=True)}
    start = (raw.start_ns, raw.start_ns)
    return {
        key: [Told(t_ns, what, healed, t_ns - begun.get(key, start)[healed]) for t_ns, what, healed in sorted(some)]
        for key, some in found.items()
    }


def pairs(first: list[Told], second: list[Told]) -> list[tuple[Told, Told]]:
    """The nth of one kind with the nth of the other run."""
    seen: Counter[str] = Counter()
    found = []
    for one in first:
        others = [other for other in second if other.what == one.what]
        if seen[one.what] < len(others):
            found.append((one, others[seen[one.what]]))
        seen[one.what] += 1
    return found


def crossing(both: list[tuple[Told, Told]], bound: int) -> set[str]:
    """Events that changed places with another one, and were further apart than the bound in both runs."""
    return {
        event.what
        for one, other in both
        for third, fourth in both
        if one.healed == third.healed
        and min(abs(one.since_ns - third.since_ns), abs(other.since_ns - fourth.since_ns)) > bound
        and (one.since_ns < third.since_ns) != (other.since_ns < fourth.since_ns)
        for event in (one, third)
    }


@SEEDS
@KEEP
def test_chapters_are_what_the_raw_files_say(seed: int) -> None:
    one, two, found, told = pair(seed)
    first, second = story(one), story(two)
    for own, chapters_of in zip((first, second), told, strict=True):
        events = {each.key: [(one.what, one.t_ns, one.after_heal) for one in each.events] for each in chapters_of}
        assert events == {key: [(one.what, one.since_ns, one.healed) for one in some] for key, some in own.items()}
    bound = 2 * max(raw.environment["base_rtt_ns"] for raw in (one, two))
    assert found.bound_ns == bound
    keys = [key for key in dict.fromkeys((*first, *second)) if key != NO_FAULT]
    keys += [NO_FAULT] if first.get(NO_FAULT) or second.get(NO_FAULT) else []
    for chapter, key in zip(found.chapters, keys, strict=True):
        name = f"cut, occurrence {key[1]}" if key != NO_FAULT else "not due to a fault"
        assert (chapter.name, chapter.title) == (name, f"link-down {LINK}" if key != NO_FAULT else "")
        differs(chapter, first.get(key, []), second.get(key, []), bound)


def differs(chapter: ChapterDiff, first: list[Told], second: list[Told], bound: int) -> None:
    """Events in one run only, in another order, at another time."""
    whats = [Counter(one.what for one in some) for some in (first, second)]
    assert Counter(chapter.only_first) == whats[0] - whats[1]
    assert Counter(chapter.only_second) == whats[1] - whats[0]
    both = pairs(first, second)
    assert chapter.both == len(both)
    apart = [
        (one.what, one.since_ns, two.since_ns, one.healed)
        for one, two in both
        if abs(one.since_ns - two.since_ns) > max(bound, 0.25 * max(abs(one.since_ns), abs(two.since_ns)))
    ]
    assert [(one.what, one.first_ns, one.second_ns, one.after_heal) for one in chapter.apart] == apart
    really = crossing(both, bound)
    assert {*chapter.moved} <= really
    assert not {*chapter.shuffled} & really
    orders = [[event.what for event in sorted(some)] for some in ([one for one, _ in both], [two for _, two in both])]
    assert (orders[0] == orders[1]) is not bool(chapter.moved or chapter.shuffled)
    left = Counter(orders[0]) - Counter([*chapter.moved, *chapter.shuffled])
    assert longest_common(*orders) >= left.total()
    assert chapter.same is not bool(whats[0] != whats[1] or apart or chapter.moved)


def longest_common(first: list[str], second: list[str]) -> int:
    """The most that can stay in their order."""
    best = [0] * (len(second) + 1)
    for one in first:
        row = [0]
        for place, other in enumerate(second):
            row.append(best[place] + 1 if one == other else max(best[place + 1], row[-1]))
        best = row
    return best[-1]


def test_what_is_drawn_has_all_that_the_docs_speak_of() -> None:
    found = [chapter for seed in range(20) for chapter in pair(seed)[2].chapters]
    for part in ("only_first", "only_second", "moved", "shuffled", "apart"):
        assert any(getattr(chapter, part) for chapter in found), part
    assert any(chapter.name.startswith("not due") for chapter in found)
