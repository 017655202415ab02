"""`endpoint.dscp`: the DSCPs by which switches tell the packets of MRC's endpoints apart."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from mrc_testbed.testbed.scenario.text.fields import Model, Whole, refuse
from mrc_testbed.testbed.switching.classes import USUAL_MARKS, DscpMarks


def _dscp(usual: int, about: str) -> Any:
    return Field(default=usual, ge=0, le=63, description=about, examples=[usual])


class DscpSettings(Model):
    """An operator's choice: the protocol fixes none. `data` and `retransmission` may be one value."""

    data: Whole = _dscp(USUAL_MARKS.data, "data that switches may trim")
    retransmission: Whole = _dscp(USUAL_MARKS.retransmission, "the same, sent again")
    no_trim: Whole = _dscp(USUAL_MARKS.no_trim, "probes that wait with data and must not be trimmed")
    control: Whole = _dscp(USUAL_MARKS.control, "SACKs, NACKs, acknowledgements and other probes: before data")

    @model_validator(mode="after")
    def _apart(self) -> DscpSettings:
        for key in ("control", "no_trim"):
            value = getattr(self, key)
            for other in ("data", "retransmission", "no_trim"):
                if other != key and value == getattr(self, other):
                    raise refuse(f"is that of `{other}`, and switches could not tell them apart", below=key)
        return self

    def marks(self) -> DscpMarks:
        """As switch ports have them."""
        return DscpMarks(self.data, self.retransmission, self.no_trim, self.control)
