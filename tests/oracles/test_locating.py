"""The score of answers against a reading second by second, on random faults and answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf, isclose

import pytest

from mrc_testbed.testbed.checks.answers import Answer, AnswerState, Incident
from mrc_testbed.testbed.checks.broken import BrokenSpan
from mrc_testbed.testbed.checks.locating import LocatingScore, score
from tests.unit.checks.test_locating import DURING, GRACE_NS, LINK, OTHER, PLACES, T1, S

LAST, GRACE = 100, 2
NAMES = {LINK: {LINK}, OTHER: {OTHER}, T1: {"p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"}}
"""Links of each name."""
CASES = 120


def spans_of(rng: random.Random) -> list[BrokenSpan]:
    found = []
    for number in range(rng.randint(0, 4)):
        begin, placed = rng.randint(0, 80), rng.choice([0, 0, 1])
        end = rng.choice([begin + rng.randint(2, 25), begin + 2, inf])
        links = frozenset(NAMES[rng.choice([LINK, LINK, OTHER, T1])])
        times = begin * S, (begin + placed) * S, end if end == inf else end * S
        found.append(BrokenSpan("f", number, "link-loss", *times, links, asked=rng.random() < 0.8))
    return sorted(found, key=lambda span: span.begin_ns)


def answers_of(rng: random.Random) -> list[Answer]:
    found = []
    for t in sorted(rng.sample(range(95), rng.randint(0, 9))):
        names = rng.sample(list(NAMES), rng.randint(1, 2))
        state = rng.choice([AnswerState.INCIDENT, AnswerState.INCIDENT, AnswerState.UNSURE, AnswerState.HEALTHY])
        incidents = tuple(
            Incident(where=(name,), p=rng.choice([0.3, 1.0]), what=rng.choice([None, "link-loss", "host-pause"]))
            for name in names
            if state is not AnswerState.HEALTHY
        )
        found.append(Answer(t_s=t, state=state, incidents=incidents))
    return found


class Slow:
    """Faults of each second, and all answers about them, moment by moment."""

    def __init__(self, spans: Sequence[BrokenSpan], answers: Sequence[Answer]) -> None:
        self.spans = spans
        self.at: list[Answer | None] = [None] * LAST
        for second in range(LAST):
            for answer in answers:
                if answer.t_s <= second:
                    self.at[second] = answer
        self.answers = answers

    def on(self, t: float, but: BrokenSpan | None = None) -> set[str]:
        """Links that were broken, or until just before."""
        return {
            link
            for span in self.spans
            if span is not but and span.begin_ns / S <= t <= span.end_ns / S + GRACE
            for link in span.links
        }

    def meant(self, name: str, t: float, but: BrokenSpan | None = None) -> set[str]:
        """The links of a name that is right: all of them are broken."""
        return NAMES[name] if NAMES[name] <= self.on(t, but) else set()

    def seconds(self) -> tuple[int, int, int, int]:
        broken = told = clean = quiet = 0
        for second, answer in enumerate(self.at):
            says = answer is not None and answer.state is AnswerState.INCIDENT
            is_broken = any(span.begin_ns / S <= second < span.end_ns / S for span in self.spans)
            excused = any(span.begin_ns / S <= second < span.end_ns / S + GRACE for span in self.spans)
            broken, told = broken + is_broken, told + (is_broken and says)
            clean, quiet = clean + (not excused), quiet + (not excused and not says)
        return broken, told, clean, quiet

    def alarms(self) -> int:
        count, before = 0, False
        for second, answer in enumerate(self.at):
            says = answer is not None and answer.state is AnswerState.INCIDENT
            excused = any(span.begin_ns / S <= second <= span.end_ns / S + GRACE for span in self.spans)
            count += says and not before and not excused
            before = says
        return count

    def accusations(self) -> list[tuple[int, str, bool, float]]:
        found, before = [], set[str]()
        for answer in self.answers:
            for name, incident in answer.places.items():
                if name not in before:
                    t = answer.t_s
                    found.append((round(t * S), name, bool(self.meant(name, t)), incident.p))
            before = set(answer.places)
        return found

    def given(self, second: int, first: float) -> Answer | None:
        """The answer of a second, if it is given then, or is the first one that counts: whether it becomes right or
        wrong later, because something else breaks, is not looked at."""
        answer = self.at[second]
        return answer if answer and (second == first or answer.t_s == second) else None

    def located(self, span: BrokenSpan) -> tuple[float, bool | None] | None:
        """How many seconds it took, and whether the kind that was said was right."""
        first = int(span.placed_ns / S)
        for second in range(first, int(min(LAST - 1, span.end_ns / S + GRACE)) + 1):
            answer = self.given(second, first)
            named = {name: self.meant(name, second) for name in answer.places} if answer else {}
            if answer and span.links <= {link for links in named.values() for link in links}:
                about = next(one for name, one in answer.places.items() if named[name] & span.links)
                return second - first, None if about.what is None else about.what == span.kind
        return None

    def cleared(self, span: BrokenSpan, located: float) -> float | None:
        since = max(span.end_ns / S, span.placed_ns / S + located)
        again = [
            other.begin_ns / S for other in self.spans if other.begin_ns > span.end_ns and other.links & span.links
        ]
        for second in range(int(min(since, LAST)), LAST):
            if second >= min(again, default=inf):
                return None
            answer = self.given(second, since)
            if answer is None:
                continue
            about = [name for name in answer.places if NAMES[name] & span.links]
            if not [name for name in about if not self.meant(name, second, span)]:
                return second - span.end_ns / S
        return None


@pytest.mark.parametrize("seeds", range(6))
def test_a_score_is_what_each_second_says(seeds: int) -> None:
    for seed in range(seeds * CASES // 6, (seeds + 1) * CASES // 6):
        rng = random.Random(seed)
        spans, answers = spans_of(rng), answers_of(rng)
        found = score(spans, answers, PLACES, DURING, GRACE_NS)
        slow = Slow(spans, answers)
        told = found.broken_ns, found.told_ns, found.clean_ns, found.quiet_ns
        assert told == tuple(seconds * S for seconds in slow.seconds()), seed
        assert found.alarms == slow.alarms(), seed
        said = [(one.t_ns, one.name, one.right, one.p) for one in found.accusations]
        assert said == slow.accusations(), seed
        for one in (*found.faults, *found.beside):
            assert one.span.asked is (one in found.faults)
            located = slow.located(one.span)
            assert one.located_ns == (None if located is None else located[0] * S), seed
            assert one.what == (None if located is None else located[1]), seed
            cleared = None if located is None else slow.cleared(one.span, located[0])
            assert one.cleared_ns == (None if cleared is None else cleared * S), seed
        compare_rates(found, slow)


def compare_rates(found: LocatingScore, slow: Slow) -> None:
    """Shares and rates of these."""
    broken, told, clean, quiet = slow.seconds()
    wanted: dict[str, float | None] = {}
    right = [one[2] for one in slow.accusations()]
    wanted["falsely_accused"] = right.count(False)
    wanted["precision"] = right.count(True) / len(right) if right else None
    there = [slow.located(span) is not None for span in slow.spans if span.asked]
    wanted["recall"] = there.count(True) / len(there) if there else None
    parts = [part / whole for part, whole in ((told, broken), (quiet, clean)) if whole]
    wanted["balanced_accuracy"] = sum(parts) / len(parts) if parts else None
    wanted["alarms_an_hour"] = slow.alarms() * 3600 / clean if clean else None
    off = [(p - is_right) ** 2 for *_, is_right, p in slow.accusations()]
    wanted["brier"] = sum(off) / len(off) if off else None
    precision, recall = wanted["precision"], wanted["recall"]
    if precision is not None and recall is not None:
        wanted["f1"] = 2 / (1 / precision + 1 / recall) if precision and recall else 0.0
    for name, value in wanted.items():
        seen = getattr(found, name)
        assert (seen is None) is (value is None), name
        assert value is None or isclose(seen, value, rel_tol=1e-12), name
