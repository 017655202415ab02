"""The difference of two sequences as lines: differences first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.checks.scale import amount
from mrc_testbed.testbed.compare.sequence import Apart, ChapterDiff, SequenceDiff
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.topos.units import some

MOST = 6
"""Events of one kind that are named; the others are counted."""


def sequence_lines(diff: SequenceDiff) -> Iterator[str]:
    """For people, in order: what had to be equal and is not, what differs by chance, and what is equal."""
    for one in diff.broken:
        yield f"NOT the same, although the seed decides it: {one.what}: {one.said}"
    for chapter in gravest_first(diff.chapters):
        about = f"{chapter.name} ({chapter.title})" if chapter.title else chapter.name
        yield from (f"{about}: {line}" for line in chapter_lines(chapter))
    yield from _same(diff)


def gravest_first(chapters: Sequence[ChapterDiff]) -> list[ChapterDiff]:
    """Chapters with events in one run only, then another order, then other times."""
    return sorted(chapters, key=lambda one: (not (one.only_first or one.only_second), not one.moved, one.same))


def chapter_lines(chapter: ChapterDiff) -> Iterator[str]:
    """The differences of one chapter."""
    for whats, which in ((chapter.only_first, "first"), (chapter.only_second, "second")):
        if whats:
            yield f"only in the {which} run: {some(whats, MOST)}"
    if chapter.moved:
        yield f"in another order: {some(chapter.moved, MOST)}"
    if chapter.apart:
        yield f"at another time: {some([apart_words(one) for one in chapter.apart], MOST)}"


def apart_words(one: Apart) -> str:
    """`h3->h4 p0/2 back 739 ms and 157 ms after the heal`."""
    times = [amount(Dimension.TIME, at_ns) for at_ns in (one.first_ns, one.second_ns)]
    return f"{one.what} {' and '.join(times)} after the {'heal' if one.after_heal else 'fault'}"


def bound_words(diff: SequenceDiff) -> str:
    """Within which times are taken for the same: `50 ms`."""
    return amount(Dimension.TIME, diff.bound_ns)


def _same(diff: SequenceDiff) -> Iterator[str]:
    alike = [f"{one.what} ({one.said})" for one in diff.certain if one.same]
    if alike:
        yield f"the same, as the seed decides it: {'; '.join(alike)}"
    quiet = [chapter for chapter in diff.chapters if chapter.same]
    both = sum(chapter.both for chapter in diff.chapters)
    shuffled = sum(len(chapter.shuffled) for chapter in diff.chapters)
    burst = f"; {shuffled} in another order within a burst" if shuffled else ""
    yield (
        f"{len(quiet)} of {len(diff.chapters)} occurrences the same; {both} events in both runs{burst}"
        f" (times within {bound_words(diff)} or 25 % count as the same)"
    )
