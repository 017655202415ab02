"""The key `paper`: the figure of a paper that a scenario repeats, and the expectations that show it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.scenario.text.fields import Model, Name, Whole, refuse

MAX_FIGURE = 24
"""Characters; it is a row header in a table."""

MRC_PAPER = "arXiv 2605.04333"
"""Where figures are from that a scenario does not say more of."""

_INDEX = Annotated[Whole, Field(ge=0)]


def _figure(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise refuse(f'must be text; write it in quotes, as in "{value}"')
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise refuse('must be the figures in one line of text, such as "9a", "12, 13" or "table 4.2"')
    if len(value) > MAX_FIGURE:
        raise refuse(f"must be at most {MAX_FIGURE} characters, such as 9a; this has {len(value)}")
    return value.strip()


def _line(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value.strip():
        raise refuse("must be one line of text, such as: bandwidth stays at line rate")
    return value.strip()


def _shown(value: tuple[int, ...]) -> tuple[int, ...]:
    if not value:
        raise refuse("must name at least one of `expect`, counted from 0, such as [0]")
    twice = next((number for place, number in enumerate(value) if number in value[:place]), None)
    if twice is not None:
        raise refuse(f"duplicate index {twice}")
    return value


_BESIDE = {"type": "object", "additionalProperties": {"type": "string"}}


class Paper(Model):
    """What the paper reports, and the expectations whose observed values are shown beside it."""

    figure: Annotated[str, PlainValidator(_figure), WithJsonSchema({"type": "string", "maxLength": MAX_FIGURE})] = (
        Field(description="of the paper", examples=['"9a"'])
    )
    reports: Annotated[str, PlainValidator(_line), WithJsonSchema({"type": "string"})] = Field(
        description="what the paper reports", examples=["bandwidth stays at line rate"]
    )
    source: Annotated[str, PlainValidator(_line), WithJsonSchema({"type": "string"})] = Field(
        default=MRC_PAPER, description="the paper", examples=["arXiv 2605.21187"]
    )
    beside: Annotated[dict[Name, Annotated[str, PlainValidator(_line)]], WithJsonSchema(_BESIDE)] = Field(
        default={},
        description="what it reports of other variants, by their names",
        examples=['{roce-1: "about half"}'],
    )
    shows: Annotated[tuple[_INDEX, ...], AfterValidator(_shown)] = Field(
        description="indices into `expect`: whose observed values are shown",
        examples=["[0]"],
        json_schema_extra={"minItems": 1, "uniqueItems": True},
    )

    def reports_of(self, variant: str, judged: bool) -> str:
        """What the paper reports of a variant of the scenario. Where it says no more, what it reports of the scenario
        itself; with `beside` that is not of a baseline, which is not `judged`, and nothing is known."""
        return self.beside.get(variant, self.reports if judged or not self.beside else "")
