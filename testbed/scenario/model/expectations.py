"""An entry of `expect`: text, a mapping with the single key `warning`, or one by the names of cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.expect import Expectation, ExpectError, Severity, parse_expectation
from mrc_testbed.testbed.scenario.text.fields import refuse
from mrc_testbed.testbed.scenario.text.source import KeyPath

WARNING = Severity.WARNING.value


@dataclass(frozen=True, slots=True)
class LinesOfCells:
    """Expectations by the name of a variant or a transport; other cells have none."""

    lines: tuple[Expectation, ...]

    def of(self, variant: str | None, transport: str) -> Expectation:
        """The line of this cell: by its variant, else by its transport; without one a line that is `elsewhere`."""
        by_name = {line.cells[0]: line for line in self.lines}
        found = by_name.get(variant or transport) or by_name.get(transport)
        return found or replace(self.lines[0], cells=tuple(by_name), elsewhere=True)


def read_line(value: object) -> Expectation | LinesOfCells:
    """Parse an entry. Raises a ValueError with the words for the user, and the place of the mistake in its context."""
    if not isinstance(value, dict) or not value or list(value) == [WARNING]:
        return _checked(value, ())
    if WARNING in value or not all(isinstance(label, str) for label in value):
        example = '{mrc: "qp_errors == 0", tcp: {warning: "qp_errors == 0"}}'
        raise refuse(f"must be one expectation, or one for each cell by its name, such as {example}")
    return LinesOfCells(tuple(replace(_checked(one, (label,)), cells=(label,)) for label, one in value.items()))


def _checked(value: object, place: KeyPath) -> Expectation:
    """One expectation; `place`: below its entry."""
    try:
        if isinstance(value, dict) and list(value) == [WARNING] and isinstance(value[WARNING], str):
            place = (*place, WARNING)
            return replace(parse_expectation(value[WARNING]), level=Severity.WARNING)
        if isinstance(value, str):
            return parse_expectation(value)
    except ExpectError as error:
        raise refuse(error.message, column=error.column, below=place) from None
    level = ", or one with `warning:` before it, such as `warning: nacks == 0`" if isinstance(value, dict) else ""
    raise refuse(f"must be an expectation in words, such as `qp_errors == 0`{level}", below=place)


def placed_lines(index: int, line: Expectation | LinesOfCells) -> Iterator[tuple[KeyPath, Expectation]]:
    """Every expectation of an entry, with the place of its text in the file."""
    for one in line.lines if isinstance(line, LinesOfCells) else (line,):
        warning = (WARNING,) if one.level is Severity.WARNING else ()
        yield ("expect", index, *one.cells, *warning), one


def _written(wanted: Expectation | LinesOfCells) -> Any:
    if isinstance(wanted, LinesOfCells):
        return {line.cells[0]: _written(line) for line in wanted.lines}
    return {WARNING: wanted.text} if wanted.level is Severity.WARNING else wanted.text


_WARNING_SCHEMA = {
    "type": "object",
    "properties": {WARNING: {"type": "string", "description": "shown when it does not hold; the run does not fail"}},
    "required": [WARNING],
    "additionalProperties": False,
}
_TEXT_SCHEMA = {"type": "string", "examples": ["qp_errors == 0"]}
_CELLS_SCHEMA = {
    "type": "object",
    "description": "by variant or transport",
    "minProperties": 1,
    "propertyNames": {"not": {"const": WARNING}},
    "additionalProperties": {"anyOf": [_TEXT_SCHEMA, _WARNING_SCHEMA]},
}
ExpectLine = Annotated[
    Expectation | LinesOfCells,
    PlainValidator(read_line),
    PlainSerializer(_written),
    WithJsonSchema({"anyOf": [_TEXT_SCHEMA, _WARNING_SCHEMA, _CELLS_SCHEMA]}),
]
