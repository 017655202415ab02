"""`fabric.switch`: the kind of switch port, and the levels at which it marks, trims and drops."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.scenario.text.fields import Level, Model, refuse
from mrc_testbed.testbed.switching.thresholds import DEFAULT_THRESHOLDS, PortThresholds

USES = ("auto", "program", "plain")
_EXAMPLE = "{ecn: [0.2, 0.8], trim: 1.0, trim_last_hop: 1.5, drop: 3.0}"


def _ramp(value: object) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise refuse("must be the two ends of the ramp, such as [0.2, 0.8]")
    return value


class SwitchPorts(Model):
    """Levels are backlogs in plane-BDP, T x port rate; they require the port program.

    `use`: `auto` takes the port program if the machine has it, `program` requires it, `plain` does without.
    """

    use: Literal["auto", "program", "plain"] = "program"
    ecn: Annotated[tuple[Level, Level], BeforeValidator(_ramp)] = Field(
        default=(DEFAULT_THRESHOLDS.ecn_low, DEFAULT_THRESHOLDS.ecn_high),
        description="backlog from which some packets are marked, and from which all",
        examples=["[0.2, 0.8]"],
    )
    trim: Level = Field(default=DEFAULT_THRESHOLDS.trim, description="trimmed above this backlog", examples=["1.0"])
    trim_last_hop: Level = Field(
        default=DEFAULT_THRESHOLDS.trim_last_hop, description="the same of ports towards hosts", examples=["1.5"]
    )
    drop: Level = Field(default=DEFAULT_THRESHOLDS.drop, description="dropped above this backlog", examples=["3.0"])

    @model_validator(mode="after")
    def _in_order(self) -> SwitchPorts:
        try:
            self.thresholds()
        except ValueError:
            order = "ecn[0] <= ecn[1] <= drop, and trim and trim_last_hop above 0 and at most drop"
            raise refuse(f"is not in order; write {order}, such as {_EXAMPLE}") from None
        return self

    def thresholds(self) -> PortThresholds:
        """The levels for the fabric. Raises ValueError if they are not in order."""
        return PortThresholds(*self.ecn, self.trim, self.trim_last_hop, self.drop)


def _entry(raw: Any) -> Any:
    if isinstance(raw, SwitchPorts):
        return raw
    if isinstance(raw, str):
        if raw not in USES:
            raise refuse(f"{raw!r} is not one of {', '.join(USES)}{did_you_mean(raw, USES)}")
        return {"use": raw}
    if not isinstance(raw, dict):
        raise refuse(f"must be one of {', '.join(USES)}, or levels such as {_EXAMPLE}")
    if "use" in raw:
        raise refuse("must be alone, as in `switch: plain`; levels require the port program anyway", key="use")
    return raw


def _schema() -> dict[str, Any]:
    levels = SwitchPorts.model_json_schema(by_alias=True)
    del levels["properties"]["use"]
    return {"anyOf": [{"enum": list(USES)}, levels]}


SwitchEntry = Annotated[SwitchPorts, BeforeValidator(_entry), WithJsonSchema(_schema())]
"""A word, or a mapping of levels."""
