"""A module -> its mutants: copies with one operator, bound, constant or branch broken. Pure.

Left out is what decides nothing: annotations, types, words for people, `assert`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

MODULE = "<module>"
"""The function of a mutant outside of all functions, where nothing gets a name."""
_SHOWN = 70
"""Characters of an expression around a mutation, at most, unless what is mutated is longer itself."""
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.Is: ast.IsNot,
        ast.IsNot: ast.Is,
        ast.In: ast.NotIn,
        ast.NotIn: ast.In,
    },
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
    **{ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Break: ast.Continue, ast.Continue: ast.Break},
}
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LARGE = 100
"""A constant from here on, and one with a fraction, is doubled: by 1 more it would be nearly the same."""
_PASSED_OVER = frozenset({"annotation", "returns", "format_spec", "type_comment", "bases"})
_DECIDED = (ast.Compare, ast.UnaryOp)
"""Conditions that are broken in themselves."""


class Mutant(NamedTuple):
    """One mutation, by what stays the same while lines move."""

    file: str
    """Path from the root of the repository."""
    function: str
    """The outermost function around it, with its class; outside of all the name that is assigned, or MODULE."""
    mutation: str
    """`before -> after`; with ` (2)` behind it for the second one of the same text in the function."""

    def __str__(self) -> str:
        return f"{self.file}:{self.function}: {self.mutation}"


class Place(NamedTuple):
    """A mutant and where it is made."""

    mutant: Mutant
    number: int
    """Of the mutation in the module, in the order of the tree."""
    lines: range
    """Of its statement, for coverage: a tracer names those that it has run, be it one of several."""
    within: bool
    """Inside a function, whose code can be exchanged while nobody runs it."""


class _Change(NamedTuple):
    """A node of a tree that would be another one."""

    path: tuple[ast.AST, ...]
    """From the module down to the node."""
    becomes: ast.AST


def places_in(source: str, file: str) -> list[Place]:
    """All mutants of a module, in the order of its tree."""
    found, seen = [], Counter[tuple[str, str]]()
    for number, change in enumerate(_changes(ast.parse(source))):
        function, text = _function_of(change.path), _text_of(change)
        seen[function, text] += 1
        again = f" ({seen[function, text]})" if seen[function, text] > 1 else ""
        within = _outermost(change.path) is not None
        found.append(Place(Mutant(file, function, text + again), number, _lines_of(change.path), within))
    return found


def mutated(source: str, number: int) -> ast.Module:
    """The module with one mutation. Raises IndexError if it has fewer."""
    tree = ast.parse(source)
    change = list(_changes(tree))[number]
    _put(change.path[-2], change.path[-1], change.becomes)
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> Iterator[_Change]:
    for path in _paths(tree, ()):
        for make in _MAKERS:
            yield from (_Change(path, becomes) for becomes in make(path))


def _paths(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, ...]]:
    """The ways from the module to each node that may decide something."""
    here = (*above, node)
    yield here
    for name, value in ast.iter_fields(node):
        if name not in _PASSED_OVER:
            for child in value if isinstance(value, list) else [value]:
                if (
                    isinstance(child, ast.AST)
                    and not isinstance(child, ast.Assert | ast.ImportFrom)
                    and not _layout(child)
                ):
                    yield from _paths(child, here)


def _layout(node: ast.AST) -> bool:
    """Whether it says how a class is laid out: `dataclass(frozen=True, slots=True)` decides nothing, nor does what of
    it is printed for developers, `field(repr=False)`; or asserts what is so, as `zip(a, b, strict=True)` does."""
    if isinstance(node, ast.keyword):
        return node.arg in ("repr", "strict")
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dataclass"


def _operator(path: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """Another operator, or the bound itself in or out."""
    node = path[-1]
    if type(node) in _OPERATORS and not (isinstance(node, ast.BitOr) and _of_types(path[-2])):
        yield _OPERATORS[type(node)]()


def _branch(path: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """The other branch, where the condition is more than an operator that is broken by itself."""
    node, parent = path[-1], path[-2] if len(path) > 1 else None
    if isinstance(parent, ast.If | ast.While | ast.IfExp) and node is parent.test:
        wanted = not isinstance(node, _DECIDED) or (isinstance(node, ast.Compare) and _ordered(node))
    else:
        wanted = isinstance(parent, ast.comprehension) and node in parent.ifs and not isinstance(node, _DECIDED)
    if wanted and isinstance(node, ast.expr):
        yield ast.UnaryOp(ast.Not(), copy.copy(node))


def _ordered(node: ast.Compare) -> bool:
    """A comparison whose other bound is nearly the same: its other branch is another mistake."""
    return isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)


def _sign(path: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    node = path[-1]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node.operand


def _constant(path: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """A number that is another one, True that is False."""
    node = path[-1]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        doubled = node.value >= _LARGE or node.value % 1
        yield ast.Constant(2 * node.value if doubled else node.value + 1)


def _opposite(path: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """The largest for the smallest, any for all."""
    node = path[-1]
    if isinstance(node, ast.Name) and node.id in _OPPOSITES and isinstance(node.ctx, ast.Load):
        yield ast.Name(_OPPOSITES[node.id], ast.Load())


def _left_out(path: tuple[ast.AST, ...]) -> Iterator[ast.AST]:
    """Without a call that is a statement."""
    node = path[-1]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


_MAKERS: tuple[Callable[[tuple[ast.AST, ...]], Iterator[ast.AST]], ...] = (
    *(_operator, _branch, _sign),
    *(_constant, _opposite, _left_out),
)


def _of_types(node: ast.AST) -> bool:
    """Whether `|` has a type on a side, so that it makes a type of two."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    names = [side.value if isinstance(side, ast.Subscript) else side for side in sides]
    types = (name.id for name in names if isinstance(name, ast.Name))
    no_value = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
    return no_value or any(isinstance(getattr(builtins, name, None), type) or name.istitle() for name in types)


def _put(parent: ast.AST, node: ast.AST, becomes: ast.AST) -> None:
    """In the place of the node, where it hangs below its parent."""
    ast.copy_location(becomes, node)
    for name, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, name, becomes)
            return
        if isinstance(value, list) and any(each is node for each in value):
            value[[each is node for each in value].index(True)] = becomes
            return


def _outermost(path: tuple[ast.AST, ...]) -> int | None:
    """The place in the path of the outermost function that runs the node. Decorators and defaults run outside of it."""
    for place, (node, below) in enumerate(itertools.pairwise(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return place if below in node.body else None
    return None


def _function_of(path: tuple[ast.AST, ...]) -> str:
    """What has a name around it: classes, and the outermost function or what is assigned."""
    names = []
    for node in path[: (_outermost(path) or len(path)) + 1]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names.append(ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target))
    return ".".join(names) or MODULE


def _lines_of(path: tuple[ast.AST, ...]) -> range:
    """The innermost statement's; of one with a body the lines before that."""
    statement = next(node for node in reversed(path) if isinstance(node, ast.stmt))
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    end = statement.end_lineno or statement.lineno
    if body:
        first = body[0]
        end = max(statement.lineno, (first.lineno if isinstance(first, ast.stmt) else first.pattern.lineno) - 1)
    return range(statement.lineno, end + 1)


def _text_of(change: _Change) -> str:
    """The smallest part of the source that says something by itself, before and after."""
    *_, parent, node = change.path
    near = [each for each in change.path[:-1] if isinstance(each, ast.expr | ast.stmt)]
    around = node if isinstance(node, ast.expr | ast.stmt) else parent
    for each in reversed(near):
        if isinstance(each, ast.FormattedValue):
            continue
        if not isinstance(each, ast.expr) or len(ast.unparse(each)) > _SHOWN:
            break
        around = each
    before = ast.unparse(around)
    if around is node:
        return f"{before} -> {ast.unparse(ast.fix_missing_locations(ast.copy_location(change.becomes, node)))}"
    _put(parent, node, change.becomes)
    after = ast.unparse(ast.fix_missing_locations(around))
    _put(parent, change.becomes, node)
    return f"{before} -> {after}"
