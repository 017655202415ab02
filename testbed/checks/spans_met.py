"""Which of the broken things an observer can be asked for: those that lasted, and that enough packets met. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from mrc_testbed.testbed.checks.broken import BrokenSpan
from mrc_testbed.testbed.mapper.evidence import Observation
from mrc_testbed.testbed.mapper.suspects import SuspectTable


class SpansMet:
    """Counts the packets that met each broken thing while it was, link by link, by what is told of them."""

    def __init__(self, spans: Sequence[BrokenSpan], table: SuspectTable) -> None:
        self._spans = spans
        self._links = [
            {element: link for link in span.links for element in table.named(link, span.direction).elements}
            for span in spans
        ]
        """Of each span: its links, by what packets cross of them in the direction that is broken."""
        self._met: list[dict[str, float]] = [{} for _ in spans]

    def add(self, rows: Iterable[Observation]) -> None:
        """More that was seen. Of a row that lies in the time in part, that part counts."""
        for row in rows:
            for number, span in enumerate(self._spans):
                if row.end_ns > span.begin_ns and row.begin_ns < span.end_ns:
                    met, links = self._met[number], self._links[number]
                    for link in {links[element] for element in row.route if element in links}:
                        met[link] = met.get(link, 0.0) + _packets_within(row, span)

    def expected(self, least_ns: int, needed: Callable[[float], int]) -> Iterator[BrokenSpan]:
        """The same, and what is asked of each: the links that enough packets met; none of what was broken for less than
        `least_ns`. `needed`: packets that show a loss of this share."""
        for span, met in zip(self._spans, self._met, strict=True):
            lasted = span.end_ns - span.placed_ns >= least_ns
            shown = frozenset(link for link, packets in met.items() if packets >= needed(span.share))
            yield replace(span, shown=shown, asked=span.asked and lasted and bool(shown))


def _packets_within(row: Observation, span: BrokenSpan) -> float:
    """Of a row's packets those that met it: the lost ones, and by even spacing of the others."""
    length_ns = row.end_ns - row.begin_ns
    inside_ns = min(row.end_ns, span.end_ns) - max(row.begin_ns, span.begin_ns)
    return max(row.sent * inside_ns / length_ns if length_ns else row.sent, row.lost)
