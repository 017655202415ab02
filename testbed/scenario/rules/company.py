"""The cells among which a scenario is run, and rules about what it says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mrc_testbed.testbed.expect import Expectation, did_you_mean
from mrc_testbed.testbed.scenario.model.matrix import JUDGE, VARIANT, VARIANTS
from mrc_testbed.testbed.scenario.model.variants import shipped_names
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import Transport


@dataclass(frozen=True)
class Company:
    """`variants`: names of all variants of the file or the set, run or not. `spoken`: the transport of each readable
    cell, by variant or otherwise. `measured`: it is one that is not judged, as in a run folder. `absent`: variants of
    the file that another set replaces, whose lines are for none of these cells."""

    variants: tuple[str, ...] = ()
    spoken: Mapping[str, Transport] = field(default_factory=dict)
    measured: bool = False
    absent: tuple[str, ...] = ()

    @property
    def known_variants(self) -> tuple[str, ...]:
        """Names of variants, where there are none of those of shipped sets."""
        return tuple(dict.fromkeys((*(self.variants or shipped_names()), *self.absent)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which a cell can be called: of variants and transports."""
        return tuple(dict.fromkeys((*self.known_variants, *registry.known())))

    def transports(self, label: str) -> tuple[Transport, ...]:
        """What the cells of this name speak, or all where it is empty; none if that is unknown."""
        if not label:
            return tuple(dict.fromkeys(self.spoken.values()))
        named = label in self.spoken and label in self.variants
        return (self.spoken[label],) if named else tuple(one for one in registry.known().values() if one == label)


def company_of(data: Any, will_be_judged: bool = True) -> Company | None:
    """Of a file that is loaded by itself, whose variants are only named. None for one cell of variants, as in a run
    folder: its lines were written for them all."""
    if VARIANT in data:
        return None
    variants = data.get(VARIANTS)
    variants = variants if isinstance(variants, dict) else {}
    changed = {str(name): keys.get("transport") for name, keys in variants.items() if isinstance(keys, dict)}
    own = data.get("transport", registry.USUAL)
    words = {"": own, **{name: word or own for name, word in changed.items()}}
    spoken = {name: registry.named(word) for name, word in words.items() if _known(word)}
    judged = _judged(data)
    measured = bool(judged) and not {*judged} & {*changed, *spoken.values()}
    return Company(tuple(changed), spoken, measured or not will_be_judged)


def _known(word: object) -> bool:
    return isinstance(word, str) and word in registry.known()


def company_mistakes(file: Readable, data: Any, company: Company) -> Iterator[Mistake]:
    """Cells that do not exist in `expect`, `judge` and `paper`, and figures that no cell has."""
    for path, label, wanted in labelled(file.expectations):
        if label and label not in company.names:
            yield Mistake(path, _unknown("cell", label, company.names), at_key=True)
        elif not company.measured and (wrong := _unknown_figure(wanted, label, company.transports(label))):
            yield Mistake(path, wrong)
    for place, name in enumerate(_judged(data)):
        if name not in company.names:
            where = (JUDGE, place) if isinstance(data[JUDGE], list) else (JUDGE,)
            yield Mistake(where, _unknown("cell", name, company.names))
    for name in _beside(data.get("paper")):
        if name not in company.known_variants:
            yield Mistake(("paper", "beside", name), _unknown("variant", name, company.known_variants), at_key=True)


def _beside(paper: Any) -> list[str]:
    beside = paper.get("beside") if isinstance(paper, dict) else None
    return list(beside) if isinstance(beside, dict) else []


def _judged(data: Any) -> list[str]:
    judge = data.get(JUDGE)
    names = [judge] if isinstance(judge, str) else judge if isinstance(judge, list) else []
    return [name for name in names if isinstance(name, str)]


def labelled(lines: Mapping[KeyPath, Expectation]) -> Iterator[tuple[KeyPath, str, Expectation]]:
    """The cell that each line is for; empty: all."""
    for path, wanted in lines.items():
        yield path, wanted.cells[0] if wanted.cells else "", wanted


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    there = did_you_mean(name, known) or f"; there are {', '.join(known)}"
    return f"there is no {what} {name!r}{there}"


def _unknown_figure(wanted: Expectation, label: str, transports: Iterable[Transport]) -> str:
    metric, spoken = wanted.metric, list(transports)
    if not spoken or any(metric.known_with(one.known) for one in spoken):
        return ""
    have = [one for one in registry.known().values() if metric.known_with(one.known)]
    has = f"{metric.name} is a figure of {' and '.join(have)}"
    if label:
        return f"{has}, and {label} speaks {spoken[0]}; remove the line"
    only = f'{{{have[0]}: "{wanted.text}"}}'
    return f"{has}, and no cell speaks it; write {only} for when one does, or run `--against baselines`"
