"""The section `endpoint`: what a variant of the protocol would change. Field aliases are the keys of the YAML file."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from mrc_testbed.hosts.mrc.config import DEFAULT_ALGORITHM, DEFAULT_SELECTION
from mrc_testbed.hosts.mrc.timing import MAX_TIMEOUT, TIMER_UNIT_NS
from mrc_testbed.testbed.scenario.model.dscp import DscpSettings
from mrc_testbed.testbed.scenario.model.presets import (
    PRODUCTION,
    PRODUCTION_TIMEOUT_NS,
    USUAL_PRESET,
    PresetWord,
    with_preset,
)
from mrc_testbed.testbed.scenario.text.denylist import DenialEntry
from mrc_testbed.testbed.scenario.text.fields import (
    AUTO,
    Algorithm,
    DurationOrAuto,
    Model,
    Payload,
    PositiveDurationOrAuto,
    Selection,
    Switchable,
    Whole,
    WholeOrAuto,
    refuse,
)
from mrc_testbed.testbed.scenario.text.keys import value_text
from mrc_testbed.testbed.scenario.text.units import format_duration, format_size

MOST_TIMEOUT_NS = TIMER_UNIT_NS << MAX_TIMEOUT


def _auto(field: str, about: str, example: str) -> Any:
    """A field that follows something else unless it is written."""
    return Field(default=None, alias=field, description=about, examples=[example], json_schema_extra={"default": AUTO})


class EndpointSettings(Model):
    """Settings of the MRC endpoints, the same on all hosts."""

    plugins: ClassVar[tuple[str, ...]] = ()
    """Names of those that have keys of their own: a field each (extended.py)."""
    preset: PresetWord = Field(
        default=USUAL_PRESET, description="whose values keys have that are left out", examples=[PRODUCTION]
    )
    payload_bytes: Payload = Field(
        default=4096,
        alias="payload",
        description="payload of a full packet (path MTU)",
        examples=["1KiB"],
        json_schema_extra={"default": "4KiB"},
    )
    mpr: Whole = Field(
        default=8, ge=1, le=255, description="largest PSN range that a responder tracks, x 128 PSNs", examples=[8]
    )
    dynamic_mpr: Whole = Field(
        default=0,
        ge=0,
        le=255,
        description="PSN range that responders ask for in SACKs, x 128 PSNs; 0: they ask for none",
        examples=[2],
    )
    max_wimm: Whole = Field(
        default=32, ge=1, le=32768, description="most WRITE-with-immediate open on a QP", examples=[32]
    )
    trim_nack: Switchable = Field(default=True, description="trimmed packets are asked for by NACK", examples=["false"])
    timeout_ns: PositiveDurationOrAuto = _auto(
        "timeout", "acknowledgement timeout, rounded up to 1.024 us x 2^n; auto: from T", "80ms"
    )
    linear_tries: Whole = Field(
        default=7, ge=0, le=7, description="timeouts at a constant interval before it doubles", examples=[7]
    )
    exponential_tries: Whole = Field(
        default=5,
        ge=0,
        le=25,
        description="timeouts at a doubling interval before the QP fails; 25: it never does",
        examples=[5],
    )
    reorder_ns: DurationOrAuto = _auto(
        "reorder_time", "what was sent this long before an arrived packet is lost; auto: from round trips", "20ms"
    )
    reorder_packets: Whole = Field(
        default=3, ge=0, le=4096, description="PSNs above a hole that must have arrived as well", examples=[3]
    )
    reinfer: Switchable = Field(
        default=True, description="the loss of a retransmission is inferred from SACKs too", examples=["false"]
    )
    entropies: WholeOrAuto = _auto(
        "entropies", "EVs that a host has per peer where switches hash them; auto: one for each path", "128"
    )
    ev_active: Whole = Field(default=128, ge=1, le=4096, description="EVs in rotation per peer", examples=[128])
    ev_min_active: WholeOrAuto = _auto(
        "ev_min_active", "fewest EVs kept in use per peer; auto: a quarter of those in rotation", "32"
    )
    ev_selection: Selection = Field(
        default=DEFAULT_SELECTION, description="which EV a packet takes", examples=[DEFAULT_SELECTION]
    )
    busy_port: Literal["wait", "pass"] = Field(
        default="wait", description="what a packet does when the port whose turn it is is full", examples=["pass"]
    )
    probe_interval_ns: PositiveDurationOrAuto = _auto(
        "probe_interval", "first pause before an EV probe of a bad path; auto: 4T, at least 10ms", "80ms"
    )
    allow_to: Literal["good", "probes"] = Field(
        default="probes", description="when denied paths that are allowed again carry data", examples=["good"]
    )
    bad_after_losses: Whole = Field(
        default=1, ge=1, le=16, description="untrimmed losses within 64 T that retire an EV", examples=[1]
    )
    probe_class: Literal["data", "control"] = Field(
        default="control",
        description="do probes of bad paths wait with the data, or go before it",
        examples=["data"],
    )
    probe_successes: Whole = Field(
        default=3, ge=1, le=24, description="EV probes answered in a row before a path returns", examples=[3]
    )
    congestion_control: Algorithm = Field(
        default=DEFAULT_ALGORITHM, description="how many bytes a QP may have in flight", examples=[DEFAULT_ALGORITHM]
    )
    dscp: DscpSettings = Field(
        default_factory=DscpSettings, description="traffic classes of its packets", examples=["{data: 1, control: 3}"]
    )
    icrc: Switchable = Field(
        default=False, description="compute and verify the ICRC of every packet", examples=["true"]
    )
    denylist: tuple[DenialEntry, ...] = Field(
        default=(), description="paths that carry no data in the whole run", examples=["[p1, p0-t1-2]"]
    )

    @model_validator(mode="before")
    @classmethod
    def _of_preset(cls, raw: Any) -> Any:
        return with_preset(raw)

    @model_validator(mode="after")
    def _bounds(self) -> EndpointSettings:
        if self.dynamic_mpr > self.mpr:
            raise refuse(f"asks for {self.dynamic_mpr}, more than mpr, which is {self.mpr}", below="dynamic_mpr")
        if self.ev_min_active is not None and self.ev_min_active > self.ev_active:
            least, most = self.ev_min_active, self.ev_active
            raise refuse(f"keeps {least} EVs, more than ev_active, which is {most}", below="ev_min_active")
        if self.timeout_ns is not None and self.timeout_ns > MOST_TIMEOUT_NS:
            raise refuse("must be at most 17s (1.024 us x 2^24)", below="timeout")
        return self

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of implementations that are used."""
        return self.congestion_control, self.ev_selection

    def keys_of(self, name: str) -> dict[str, Any]:
        """The values of a plugin's own keys; empty for one without."""
        return getattr(self, name).model_dump() if name in self.plugins else {}

    @property
    def timeout(self) -> int:
        """The code of the timeout: it lasts 1.024 us x 2^timeout. 0: from T."""
        return max((-(-self.timeout_ns // TIMER_UNIT_NS) - 1).bit_length(), 1) if self.timeout_ns else 0

    @property
    def keeps_timeout(self) -> bool:
        """True where the timeout is that of hardware, which no scale makes shorter."""
        return self.preset == PRODUCTION and self.timeout_ns == PRODUCTION_TIMEOUT_NS

    def settings(self) -> dict[str, Any]:
        """For `configure`, by the names of `EndpointConfig`; without those that follow something else. What comes of
        `entropies` are the EVs of each peer."""
        elsewhere = {"preset", "dscp", "denylist", "entropies", "timeout_ns", *self.plugins}
        named = self.model_dump(exclude=elsewhere, exclude_none=True)
        dscp = {f"dscp_{key}": value for key, value in self.dscp.model_dump().items()}
        return {**named, **dscp, "timeout": self.timeout}

    def written(self) -> dict[str, str]:
        """Every key with its value as a scenario has it, but for `denylist`; `timeout` as it is kept. Of
        plugins the keys of those that are used."""
        left_out = {"denylist", "dscp", *self.plugins}
        found = {key: value_text(value) for key, value in self.model_dump(by_alias=True, exclude=left_out).items()}
        found["payload"] = format_size(self.payload_bytes)
        lasting = {"reorder_time": self.reorder_ns, "probe_interval": self.probe_interval_ns}
        if self.timeout_ns is not None:
            found["timeout"] = format_duration(TIMER_UNIT_NS << self.timeout)
        found |= {key: format_duration(value) for key, value in lasting.items() if value is not None}
        autos = {key: AUTO for key, value in self.model_dump(by_alias=True).items() if value is None}
        dscp = {f"dscp.{key}": value_text(value) for key, value in self.dscp.model_dump().items()}
        own = {f"{name}.{key}": value_text(each) for name in self.chosen for key, each in self.keys_of(name).items()}
        return found | autos | dscp | own

    def changed(self) -> dict[str, str]:
        """Of `written`, what differs from the usual."""
        usual = type(self).model_validate(dict(zip(("congestion_control", "ev_selection"), self.chosen, strict=True)))
        same = usual.written() | EndpointSettings().written()
        return {key: value for key, value in self.written().items() if value != same[key]}
