"""The section `controller`: a central authority that hears of links and tells hosts which paths to leave."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from mrc_testbed.testbed.scenario.model.programs import Command
from mrc_testbed.testbed.scenario.text.fields import Model, given, refuse
from mrc_testbed.testbed.scenario.text.units import DURATION, UnitError

EXAMPLE = "{after: 50ms}"
NEVER = "never"


def _after(value: object) -> int | None:
    if value == NEVER:
        return None
    try:
        return DURATION.parse(value)
    except UnitError as error:
        raise refuse(f"{error}, or `{NEVER}`: then the controller is dead") from None


_SCHEMA: dict[str, Any] = {"anyOf": [{"const": NEVER}, {"type": "string", "title": "a duration"}]}


class ControllerSettings(Model):
    """A controller runs beside the workload. Without the section there is none."""

    after_ns: Annotated[int | None, PlainValidator(_after), WithJsonSchema(_SCHEMA)] = Field(
        alias="after",
        description="from a link's carrier going, or coming back, to what hosts are told; never: it is dead",
        examples=["50ms"],
    )
    command: Annotated[Command | None, given("python3 controller.py")] = Field(
        default=None,
        description="a program that decides: lines of JSON in and out; without it the paths over dead links are denied",
        examples=["python3 controller.py"],
    )
