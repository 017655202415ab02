"""What the mapper says of a run, and how right that is, as lines of at most 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from textwrap import wrap

from mrc_testbed.testbed.checks.fabric_map import LEAST_PERIODS, fabric_map, unseen_links
from mrc_testbed.testbed.checks.locating import FaultFound, LocatingScore
from mrc_testbed.testbed.checks.map_spells import MapSpell, map_spells
from mrc_testbed.testbed.checks.path_evidence import witnesses
from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.checks.scale import amount, number, with_rtts
from mrc_testbed.testbed.checks.windows import workload_ns
from mrc_testbed.testbed.expect.vocabulary import Dimension
from mrc_testbed.testbed.report.transport_words import routing_words, transport_words
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.units import some

WIDTH = 80
_S = 1e9
_INDENT = "  "
_MOST_NAMED = 12
"""Names that a line tells; more are counted."""


def map_lines(record: RunRecord, name: str) -> Iterator[str]:
    """What is broken. `name`: what the run is called. Raises NoData where its workload never began."""
    found = fabric_map(record)
    start_ns, _ = workload_ns(record)
    heard = f"{found.periods} periods of {amount(Dimension.TIME, found.period_ns)}"
    who = " and ".join(witness.value for witness in witnesses(record))
    yield from wrap(f"{name}: what {who} told, {heard}; times from the begin of the workload", WIDTH)
    yield from (line for text in blind_spots(record) for line in wrap(text, WIDTH))
    yield ""
    spells = map_spells(found.changes)
    if not spells:
        yield (
            "nothing is taken for broken" if found.routes else "nothing is known: this says of no link that it is well"
        )
        return
    rows = [_spell_row(spell, start_ns) for spell in spells]
    table = _table([("broken", "loses", "first loss", "last loss", "known at", "well at", "sure"), *rows])
    yield next(table)
    known: dict[str, list[str]] = {}
    for spell, line in zip(spells, table, strict=True):
        yield line
        more = _beside(spell, record.plan)
        if known.get(spell.said.name) != more:
            yield from more
        known[spell.said.name] = more
        if spell.over:
            yield f"{_INDENT}known only when it was well again"


def _spell_row(spell: MapSpell, start_ns: int) -> tuple[str, ...]:
    said = spell.said
    well = "not yet" if spell.cleared_ns is None else _second(spell.cleared_ns - start_ns)
    times = (_second(t_ns - start_ns) for t_ns in (said.since_ns, spell.last_ns, said.t_ns))
    return said.name, loss_words(spell), *times, well, f"{said.sure * 100:.3g} %"


def loss_words(spell: MapSpell) -> str:
    """`all`, `21 % up`."""
    share = "all" if spell.is_dead else f"{spell.said.loss * 100:.2g} %"
    return f"{share} {spell.said.direction or ''}".rstrip()


def _second(t_ns: int) -> str:
    return f"{t_ns / _S:.2f} s"


def _beside(spell: MapSpell, plan: Plan) -> list[str]:
    """What it could as well be, and who has seen it; told once of a place while it stays the same."""
    said = spell.said
    alike = _indented(f"or {some(said.alike, _MOST_NAMED)}: the same packets cross these") if said.alike else []
    hosts = "all hosts" if len(said.seers) == len(plan.hosts) else some(said.seers, _MOST_NAMED)
    return [*alike, *_indented(f"seen by {' and '.join(said.witnesses)} of {hosts}")]


def _indented(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT * 2, break_on_hyphens=False)


def blind_spots(record: RunRecord) -> Iterator[str]:
    """What nobody can see here, in sentences."""
    found = fabric_map(record)
    unseen, links = unseen_links(record), record.plan.links
    if not record.scenario.transport.names_paths:
        how = f"{transport_words(record.scenario)}; {routing_words(record.scenario)}"
        yield (
            f"Hosts do not choose paths here, switches do ({how}): a lost packet may have taken any of them, so only a "
            "port without carrier is accused, and what the packets of two hosts below one switch cross."
        )
        if record.scenario.mapper and record.scenario.mapper.probes:
            yield "Nobody probes: a probe takes the path that its sender names."
    if len(unseen) == len(links):
        yield "No link can be seen: hosts told of no packet that surely crossed one."
    elif unseen:
        names = some(unseen, _MOST_NAMED)
        yield f"{len(unseen)} of {len(links)} links cannot be seen, no packet surely crossed them: {names}."
    if found.late or found.stalled:
        yield (
            f"Left out: {found.late} rows of evidence that came too late, {found.stalled} of hosts that for a moment "
            "lost everything."
        )


# --- the score ---


def score_lines(record: RunRecord, score: LocatingScore, believed: bool) -> Iterator[str]:
    """How right it is. `believed`: False where the machine did not keep time."""
    yield ""
    if not believed:
        yield "The machine did not keep time, so nothing of this counts."
    faults = sorted((*score.faults, *score.beside), key=lambda one: one.span.begin_ns)
    if faults:
        rows = [_fault_row(record, one) for one in faults]
        yield from _table([("truth", "kind", "from", "for", "located after", "cleared after"), *rows])
        yield ""
    else:
        yield "truth: nothing was broken"
    yield from wrap(totals(score), WIDTH)


def _fault_row(record: RunRecord, one: FaultFound) -> tuple[str, ...]:
    span, start_ns = one.span, workload_ns(record)[0]
    lasted = amount(Dimension.TIME, span.end_ns - span.placed_ns) if isfinite(span.end_ns) else "the rest"
    where = f"{span.fault} #{span.number}" if span.number else span.fault
    cleared = "" if one.cleared_ns is None else amount(Dimension.TIME, one.cleared_ns)
    return where, span.kind, _second(span.placed_ns - start_ns), lasted, _located(record, one), cleared


def _located(record: RunRecord, one: FaultFound) -> str:
    if one.located_ns is None:
        return "never" if one.span.asked else "not asked for"
    return with_rtts(one.located_ns, record.base_rtt_ns or record.scenario.shape().rtt_ns)


def totals(score: LocatingScore) -> str:
    """Precision, recall and false accusations."""
    said, asked = len(score.accusations), len(score.faults)
    located = sum(one.located_ns is not None for one in score.faults)
    precision = "Precision unknown: nothing was accused"
    if score.precision is not None:
        right = said - score.falsely_accused
        precision = f"Precision {number(score.precision)}: {right} of {said} accusations were right"
    recall = "Recall unknown: no fault was asked for"
    if score.recall is not None:
        recall = f"Recall {number(score.recall)}: {located} of {asked} faults were located"
    return (
        f"{precision}. {recall}. Asked for is what lasted {LEAST_PERIODS} periods and met enough packets. False "
        f"accusations: {score.falsely_accused}."
    )


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as they need; where that is too wide, the first one is shortened."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] -= max(sum(widths) + 2 * (len(widths) - 1) - WIDTH, 0)
    for row in rows:
        cells = (
            cell if len(cell) <= width else f"{cell[: width - 2]}.." for cell, width in zip(row, widths, strict=True)
        )
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
