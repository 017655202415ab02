"""The targets of a fault as written: names, patterns, classes, or random choices from these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated, Any, NamedTuple

from pydantic import PlainValidator, WithJsonSchema

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.faults.chance import Chance
from mrc_testbed.testbed.scenario.faults.classes import CLASSES, FITTING, allowed, is_class, meant_by, members
from mrc_testbed.testbed.scenario.faults.names import Target, wrong_name
from mrc_testbed.testbed.scenario.text.fields import NAMES_SCHEMA, refuse, word
from mrc_testbed.topos.plan import Plan

_DRAWN = re.compile(r"any(?:\s+(\S+))?\s+of\s+(\S.*)")
_NUMBER = re.compile(r"[1-9]\d{0,3}", re.ASCII)
_EXAMPLE = "any 2 of T0-T1 links"
_WILD = frozenset("*?[")


class Form(Enum):
    """How targets are named."""

    NAME = "a name"
    PATTERN = "a pattern"
    CLASS = "a class"


class Selector(NamedTuple):
    """One item: `what` is a name, a pattern or a class; `draw` of these are drawn (0: all)."""

    text: str
    what: str
    draw: int = 0

    @property
    def form(self) -> Form:
        """The form of `what`."""
        if is_class(self.what):
            return Form.CLASS
        return Form.PATTERN if _WILD & set(self.what) else Form.NAME


class SelectionError(Exception):
    """`mistakes`: the index of each invalid item, and what is wrong with it."""

    def __init__(self, mistakes: Sequence[tuple[int, str]]) -> None:
        super().__init__("; ".join(message for _, message in mistakes))
        self.mistakes = mistakes


def _selector(text: str) -> Selector:
    text = " ".join(text.split()) if text.isprintable() else text
    drawn = _DRAWN.fullmatch(text)
    if drawn is None:
        return Selector(text, _what(text))
    number, what = drawn[1] or "1", drawn[2]
    if not _NUMBER.fullmatch(number):
        raise refuse(f"{number!r} is not a number of targets; write for example `{_EXAMPLE}`")
    return Selector(text, _what(what), int(number))


def _what(text: str) -> str:
    if is_class(text):
        return text
    if " " in text:
        words = meant_by(text)
        known = ", ".join(words)
        raise refuse(f"{text!r} is not a name{did_you_mean(text, words) or f'; classes are {known}'}")
    return word(text)


def _selectors(value: object) -> tuple[Selector, ...]:
    items = [value] if isinstance(value, str) and value else value
    if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
        raise refuse(f"must be one name or a list of names, such as p0-t0-0:p0-t1-2, or `{_EXAMPLE}`")
    return tuple(map(_selector, items))


Targets = Annotated[tuple[Selector, ...], PlainValidator(_selectors), WithJsonSchema(NAMES_SCHEMA)]
"""One item or a list of items."""


def named(name: str) -> Selector:
    """The selector of one name."""
    return Selector(name, name)


def chosen(aims: Sequence[Selector], kind: str, target: Target, plan: Plan, chance: Chance) -> dict[str, int]:
    """The resolved names, each with the index of its item; draws come last, from the remaining targets.

    Raises SelectionError with all invalid items.
    """
    found: dict[str, int] = {}
    wrong: list[tuple[int, str]] = []
    for number, aim in sorted(enumerate(aims), key=lambda item: item[1].draw > 0):
        pool, message = candidates(aim, kind, target, plan)
        left = [name for name in pool if name not in found]
        message = message or _too_few(aim, left)
        if message:
            wrong.append((number, message))
        elif aim.draw:
            left = chance.of(str(number)).choose(left, aim.draw)
        if not message:
            found |= dict.fromkeys(left, number)
    if wrong:
        raise SelectionError(wrong)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _too_few(aim: Selector, left: Sequence[str]) -> str:
    if aim.form is Form.NAME and not aim.draw and not left:
        return f"duplicate target {aim.what}"
    return too_few(aim, len(left))


def too_few(aim: Selector, left: int) -> str:
    """The message for a draw from too few targets, else empty."""
    if aim.draw <= left:
        return ""
    there = "is 1" if left == 1 else f"are {left or 'none'}"
    return f"asks for {aim.draw} of {aim.what}, and there {there} to draw from"


def candidates(aim: Selector, kind: str, target: Target, plan: Plan) -> tuple[list[str], str]:
    """All candidates of an item, drawn or not, in plan order; and the mistake, empty if none."""
    if aim.form is Form.NAME:
        message = wrong_name(aim.what, kind, target, plan)
        return ([] if message else [aim.what]), message
    if aim.form is Form.CLASS:
        found = members(aim.what, target, plan)
        if found is None:
            return [], f"{aim.what} are not allowed here; {kind} takes {_listed(allowed(target, plan))}"
        return found, "" if found else f"this fabric has no {aim.what}"
    everything = dict.fromkeys(name for each in FITTING[target] for name in CLASSES[each](plan))
    pool = [name for name in everything if _matches(aim.what, name)]
    some = f"there are {next(iter(everything))}..{list(everything)[-1]}" if everything else "this fabric has none"
    return pool, "" if pool else f"{aim.what!r} matches none of the {FITTING[target][0]}; {some}"


def _matches(pattern: str, name: str) -> bool:
    """Shell patterns, separately for each end of a link; one without a dash matches planes, one with a slash paths."""
    patterns, names = pattern.split(":"), name.split(":")
    if len(patterns) != len(names) or ("-" in name and not {"-", ":"} & set(pattern)):
        return False
    if ("/" in name) != ("/" in pattern):
        return False
    return all(fnmatchcase(part, each) for each, part in zip(patterns, names, strict=True))


def _listed(words: Sequence[Any]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else str(words[0])
