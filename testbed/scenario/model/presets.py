"""Presets of the section `endpoint`: values of keys that a file does not write.

`production` is what is known of MRC as it is deployed; what is certain of each value is in docs/production.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mrc_testbed.testbed.expect import all_known
from mrc_testbed.testbed.scenario.text.fields import refuse

PRESET = "preset"
PresetWord = Literal["testbed", "production"]
USUAL_PRESET: PresetWord = "testbed"
PRODUCTION: PresetWord = "production"
PRODUCTION_TIMEOUT_NS = 1024 << 20
"""2^20 x 1.024 us = 1.07 s of NIC hardware, so it is not scaled with a scenario."""

ENDPOINT_VALUES: Mapping[str, Mapping[str, Any]] = {
    USUAL_PRESET: {},
    PRODUCTION: {
        "mpr": 4,
        "timeout": f"{PRODUCTION_TIMEOUT_NS}ns",
        "linear_tries": 7,
        "exponential_tries": 25,
        "reinfer": False,
        "dscp": {"data": 1, "retransmission": 1, "control": 3},
    },
}
QPS: Mapping[str, int] = {PRODUCTION: 2}
"""QPs of each flow and of two ranks, where an entry of `workload` does not say how many."""


def with_preset(raw: Any) -> Any:
    """Raw data of the section with the values of its preset, where it writes none. A word alone means a preset."""
    if isinstance(raw, str):
        if raw not in ENDPOINT_VALUES:
            raise refuse(f"unknown preset {raw!r}{all_known(raw, ENDPOINT_VALUES)}")
        raw = {PRESET: raw}
    if not isinstance(raw, dict) or not isinstance(raw.get(PRESET), str):
        return raw
    return _over(ENDPOINT_VALUES.get(raw[PRESET], {}), raw)


def or_preset(schema: dict[str, Any]) -> None:
    """For the JSON Schema of the section: a word may take the place of a mapping."""
    schema["anyOf"] = [{"enum": list(ENDPOINT_VALUES)}, {"$ref": schema.pop("$ref")}]


def preset_of(raw: Any) -> str:
    """The preset that raw data of the section name; the usual one where they name none, or none that is known."""
    name = raw.get(PRESET) if isinstance(raw, dict) else raw
    return name if isinstance(name, str) and name in ENDPOINT_VALUES else USUAL_PRESET


def _over(usual: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    nested = {key: _over(usual[key], value) for key, value in raw.items() if _both(usual.get(key), value)}
    return {**usual, **raw, **nested}


def _both(one: Any, other: Any) -> bool:
    return isinstance(one, Mapping) and isinstance(other, Mapping)
