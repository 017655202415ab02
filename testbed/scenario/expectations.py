"""An entry of `expect`: text, or a mapping with the single key `warning`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from testbed.expect import Expectation, ExpectError, Severity, parse_expectation
from testbed.scenario.fields import refuse

WARNING = Severity.WARNING.value


def read_expectation(value: object) -> Expectation:
    """Parse an entry. Raises ExpectError for unreadable text, ValueError for another type."""
    if isinstance(value, dict) and list(value) == [WARNING] and isinstance(value[WARNING], str):
        return replace(parse_expectation(value[WARNING]), level=Severity.WARNING)
    if isinstance(value, str):
        return parse_expectation(value)
    if isinstance(value, dict) and value:
        raise ValueError("must be an expectation, or one with `warning:` before it, such as `warning: nacks == 0`")
    raise ValueError("must be an expectation in words, such as `qp_errors == 0`")


def place_of(index: int, wanted: Expectation) -> tuple[str | int, ...]:
    """The place of its text in the file."""
    return ("expect", index, WARNING) if wanted.level is Severity.WARNING else ("expect", index)


def _expectation(value: object) -> Expectation:
    below = {"below": WARNING} if isinstance(value, dict) else {}
    try:
        return read_expectation(value)
    except ExpectError as error:
        raise refuse(error.message, column=error.column, **below) from None
    except ValueError as error:
        raise refuse(str(error)) from None


def _written(wanted: Expectation) -> Any:
    return {WARNING: wanted.text} if wanted.level is Severity.WARNING else wanted.text


_WARNING_SCHEMA = {
    "type": "object",
    "properties": {WARNING: {"type": "string", "description": "shown when it does not hold; the run does not fail"}},
    "required": [WARNING],
    "additionalProperties": False,
}
ExpectLine = Annotated[
    Expectation,
    PlainValidator(_expectation),
    PlainSerializer(_written),
    WithJsonSchema({"anyOf": [{"type": "string", "examples": ["qp_errors == 0"]}, _WARNING_SCHEMA]}),
]
