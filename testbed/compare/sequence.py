"""Two runs of one scenario and one seed: what had to be equal, and what else differed. Pure.

The seed decides the schedule, the targets, the EVs and the data; it does not decide when a packet meets a dying link.
So the EVs that lose a packet, their order within a burst and their times may differ by chance; nothing else may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.compare.determinism import DeterminismCheck, determinism_checks
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.compare.story import NO_FAULT, Chapter, StoryEvent, chapters

LATE_RTTS = 2
LATE_SHARE = 0.25
"""A time differs if it does so by more than LATE_RTTS base RTTs and by more than this share of the longer one. Senders
notice a loss a round trip earlier or later by chance, and probe dead paths at random times."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A time that differs: the same event in both runs, in ns since the injection or the heal."""

    what: str
    first_ns: int
    second_ns: int
    after_heal: bool


@dataclass(frozen=True, slots=True)
class ChapterDiff:
    """The differences in one occurrence. `moved`: events of both runs in another order, further apart than the bound;
    `shuffled`: the same within a burst, which is insignificant."""

    name: str
    title: str
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    moved: tuple[str, ...]
    shuffled: tuple[str, ...]
    apart: tuple[Apart, ...]
    both: int

    @property
    def same(self) -> bool:
        """Only times and orders within the bound differ."""
        return not (self.only_first or self.only_second or self.moved or self.apart)


@dataclass(frozen=True, slots=True)
class SequenceDiff:
    """`bound_ns`: times closer than this are equal."""

    certain: tuple[DeterminismCheck, ...]
    chapters: tuple[ChapterDiff, ...]
    bound_ns: int

    @property
    def broken(self) -> tuple[DeterminismCheck, ...]:
        """What had to be equal and is not."""
        return tuple(one for one in self.certain if not one.same)


def repeats(runs: Sequence[ComparedRun]) -> bool:
    """True for two runs with the same settings and seed: their sequences can be compared."""
    return len(runs) == 2 and runs[0].settings == runs[1].settings and runs[0].seed == runs[1].seed


def sequence_diff(first: ComparedRun, second: ComparedRun) -> SequenceDiff:
    """The second run against the first."""
    records = first.record, second.record
    bound = LATE_RTTS * max(record.base_rtt_ns or record.scenario.shape().rtt_ns for record in records)
    by_key = [{chapter.key: chapter for chapter in chapters(record)} for record in records]
    keys = sorted(dict.fromkeys((*by_key[0], *by_key[1])), key=lambda key: key == NO_FAULT)
    diffs = [_chapter_diff(by_key[0].get(key), by_key[1].get(key), bound) for key in keys]
    return SequenceDiff(tuple(determinism_checks(first, second)), tuple(diffs), bound)


def _chapter_diff(first: Chapter | None, second: Chapter | None, bound_ns: int) -> ChapterDiff:
    a, b = (chapter.events if chapter else () for chapter in (first, second))
    whats = [[one.what for one in events] for events in (a, b)]
    only_first, only_second = _without(whats[0], whats[1]), _without(whats[1], whats[0])
    pairs = list(_pairs(a, b))
    met = {id(other) for _, other in pairs}
    moved = _moved([one.what for one, _ in pairs], [one.what for one in b if id(one) in met])
    really = set(moved) & _crossed(pairs, bound_ns)
    apart = tuple(
        Apart(one.what, one.t_ns, other.t_ns, one.after_heal) for one, other in pairs if _differ(one, other, bound_ns)
    )
    chapter = first or second
    name, title = (chapter.name, chapter.title) if chapter else ("", "")
    far, near = (tuple(what for what in moved if (what in really) is which) for which in (True, False))
    return ChapterDiff(name, title, tuple(only_first), tuple(only_second), far, near, apart, len(pairs))


def _without(whats: Sequence[str], others: Sequence[str]) -> list[str]:
    """Events that are more frequent than in the other list, in order."""
    left = Counter(others)
    found = []
    for what in whats:
        left[what] -= 1
        if left[what] < 0:
            found.append(what)
    return found


def _moved(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """The smallest set of events to move to turn one order into the other."""
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return [what for tag, a, b, _, _ in matcher.get_opcodes() if tag in ("delete", "replace") for what in first[a:b]]


def _crossed(pairs: Sequence[tuple[StoryEvent, StoryEvent]], bound_ns: int) -> set[str]:
    """Events before another one by more than the bound, and in the other run after it by more than that.

    Only times from the same starting point are comparable.
    """
    found = set()
    for one, (first, second) in enumerate(pairs):
        for third, fourth in pairs[one + 1 :]:
            before, after = first.t_ns - third.t_ns, second.t_ns - fourth.t_ns
            by_ns = max(min(before, -after), min(-before, after))
            if first.after_heal is third.after_heal and by_ns > bound_ns:
                found |= {first.what, third.what}
    return found


def _pairs(first: Sequence[StoryEvent], second: Sequence[StoryEvent]) -> Iterator[tuple[StoryEvent, StoryEvent]]:
    """The same events of both runs, matched in order if repeated."""
    waiting = gathered((one.what, one) for one in second)
    for one in first:
        if waiting.get(one.what):
            yield one, waiting[one.what].pop(0)


def _differ(first: StoryEvent, second: StoryEvent, bound_ns: int) -> bool:
    away = abs(first.t_ns - second.t_ns)
    return away > bound_ns and away > LATE_SHARE * max(abs(first.t_ns), abs(second.t_ns))
