"""Arithmetic over figures: `1 - {goodput during port [planes=2]} / {goodput clean [planes=2]}`. Pure.

Numbers, + - * / and parentheses, and terms in braces: a figure of the student's run, `{key fabric.planes}` of the
scenario, `{plan designs.0.numbers.switches.value}` of what `mrc-testbed plan` gives as JSON.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from mrc_testbed.testbed.lessons.cells import split_cell

_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST_CHARACTERS = 1000
"""Deeper nesting than such a text can have would still be far below Python's own limit."""
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class ExpressionError(ValueError):
    """A text that is no expression; says why."""


class NotANumber(ValueError):
    """An expression that has no value here; says why."""


class TermKind(StrEnum):
    """Where the number of a term comes from."""

    FIGURE = "figure"
    KEY = "key"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class ExpressionTerm:
    """The text in braces. `words`: the cell that it is about."""

    kind: TermKind
    text: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression; `terms` in the order of the text."""

    text: str
    terms: tuple[ExpressionTerm, ...]

    def value(self, of: Callable[[ExpressionTerm], float]) -> float:
        """The number, with each term's from `of`, whose exceptions pass. Raises NotANumber for a division by zero."""
        numbers = {_name(index): of(term) for index, term in enumerate(self.terms)}
        try:
            return _computed(_tree(self.text), numbers)
        except ZeroDivisionError:
            raise NotANumber(f"{self.text}: divides by zero") from None


def parse_expression(text: str) -> Expression:
    """Raises ExpressionError."""
    terms = tuple(_term(found[1]) for found in _BRACES.finditer(text))
    if len(text) > _MOST_CHARACTERS:
        raise ExpressionError(f"is longer than {_MOST_CHARACTERS} characters")
    with suppress(ZeroDivisionError):  # by numbers that are not known yet
        _computed(_tree(text), {_name(index): 1.0 for index in range(len(terms))})
    return Expression(text, terms)


def _term(inside: str) -> ExpressionTerm:
    text, words = split_cell(inside)
    kind, _, rest = text.partition(" ")
    if kind in (TermKind.KEY, TermKind.PLAN):
        if not rest.strip():
            raise ExpressionError(f"{{{inside}}}: write a dotted key after {kind}")
        return ExpressionTerm(TermKind(kind), rest.strip(), words)
    if not text:
        raise ExpressionError("there is nothing between { and }")
    return ExpressionTerm(TermKind.FIGURE, text, words)


def _name(index: int) -> str:
    return f"_{index}_"


def _tree(text: str) -> ast.expr:
    names = (f" {_name(index)} " for index in range(len(text)))
    plain = _BRACES.sub(lambda _: next(names), text).strip()
    try:
        return ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError("must be arithmetic over numbers and figures, such as `{goodput clean} / 2`") from None


def _computed(node: ast.expr, numbers: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name) if name in numbers:
            return numbers[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_computed(inner, numbers)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _BINARY[type(sign)](_computed(left, numbers), _computed(right, numbers))
    word = f" {node.id!r}; figures are in braces" if isinstance(node, ast.Name) else ""
    raise ExpressionError(f"has something other than numbers, + - * / and figures in braces{word}")
