"""The readable parts of a scenario with mistakes, so that rules across parts can still be checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from mrc_testbed.testbed.expect import Expectation
from mrc_testbed.testbed.scenario.faults import Entry, entry_models, kind_of
from mrc_testbed.testbed.scenario.model.bgp import BgpSettings
from mrc_testbed.testbed.scenario.model.captures import Capture
from mrc_testbed.testbed.scenario.model.expectations import placed_lines, read_line
from mrc_testbed.testbed.scenario.model.flow_models import FlowEntry
from mrc_testbed.testbed.scenario.model.models import USUAL_SEED, FabricSettings
from mrc_testbed.testbed.scenario.model.scale import ScaleFactor, read_scale
from mrc_testbed.testbed.scenario.model.step_models import StepEntry
from mrc_testbed.testbed.scenario.model.transports import EcmpSettings, WorldKind
from mrc_testbed.testbed.scenario.model.workloads import WorkloadItem
from mrc_testbed.testbed.scenario.text.denylist import Denial, DenialEntry
from mrc_testbed.testbed.scenario.text.fields import Payload
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.testbed.scenario.text.units import DURATION, UnitError
from mrc_testbed.testbed.transports import registry
from mrc_testbed.testbed.transports.base import FabricLayout, Transport
from mrc_testbed.testbed.transports.roce import RoceSettings
from mrc_testbed.topos.fold import folded
from mrc_testbed.topos.plan import Routing
from mrc_testbed.topos.shape import PAYLOAD_BYTES, Shape

CHOICES = ("congestion_control", "ev_selection")
"""Keys of `endpoint` that name an implementation for MRC, ours or of a plugin."""

M = TypeVar("M", bound=BaseModel)
W = TypeVar("W", bound=StrEnum)


@dataclass(frozen=True)
class Parts:
    """The readable parts; None or absent if unreadable. Numbers are indices in the file's lists.

    Unreadable `fabric`, `seed` and `payload_bytes` have default values. After such a `fabric` `whole_fabric` is False,
    unless only `switch` was wrong, which names nothing; of unreadable `transport`, `routing` and groups the same.
    `all_workload`: every entry of `workload` was readable.
    `all_faults`: every fault was readable, so that other names do not exist. `expectations`: by the place
    of their text, those of all cells. `all_expectations`: how many there are, readable or not; None: no list. `shows`:
    of `paper`. `mrc_choices`: what `endpoint` names of `CHOICES`, known or not.
    """

    seed: int
    fabric: FabricSettings
    whole_fabric: bool
    steps: dict[int, StepEntry]
    flows: dict[int, FlowEntry]
    all_workload: bool
    faults: dict[int, Entry]
    all_faults: bool
    expectations: dict[KeyPath, Expectation]
    time_limit_ns: int | None
    denylist: dict[int, Denial]
    icrc: bool | None
    payload_bytes: int
    mrc_choices: Mapping[str, str]
    all_expectations: int | None
    shows: dict[int, int]
    captures: dict[int, Capture]
    transport: Transport
    routing: Routing
    roce: RoceSettings
    ecmp: EcmpSettings
    bgp: BgpSettings
    world: WorldKind
    scale: ScaleFactor

    @property
    def own(self) -> Any:
        """The settings of the transport, where it has a group of its own."""
        return getattr(self, self.transport.group, None)

    @property
    def folds(self) -> bool:
        """True if all planes are laid on one."""
        return self.fabric.layout(self.transport) is FabricLayout.FOLDED

    def written_shape(self) -> Shape:
        """The shape as the file has it. Raises ShapeError."""
        return replace(self.fabric.shape(), payload_bytes=self.payload_bytes)

    def shape(self) -> Shape:
        """The shape of the fabric that is built, and the packets that the endpoints send through it. Raises
        ShapeError."""
        return folded(self.written_shape()) if self.folds else self.written_shape()


_DENIAL: TypeAdapter[Denial] = TypeAdapter(DenialEntry)
_PAYLOAD: TypeAdapter[int] = TypeAdapter(Payload)


def partial_scenario(data: Any, item: type[WorkloadItem] = WorkloadItem) -> Parts:
    """Read each part on its own; `item` is the model of the entries of `workload`.

    Never raises: mistakes inside a part are reported elsewhere.
    """
    faults = _items(data, "faults")
    readable = {index: fault for index, raw in enumerate(faults) if (fault := _fault(raw))}
    workload = _items(data, "workload")
    entries = {index: _entry(raw, item.models()) for index, raw in enumerate(workload)}
    steps = {index: entry for index, entry in entries.items() if isinstance(entry, StepEntry)}
    flows = {index: entry for index, entry in entries.items() if isinstance(entry, FlowEntry)}
    lines = dict(line for index, raw in enumerate(_items(data, "expect")) for line in _expectations(index, raw))
    return Parts(
        _seed(data.get("seed")),
        *_fabric(data.get("fabric", {})),
        steps,
        flows,
        len(workload) == len(flows) + len(steps),
        readable,
        len(readable) == len(faults),
        lines,
        _duration(data.get("time_limit")),
        _denylist(data.get("endpoint")),
        _icrc(data.get("endpoint", {})),
        _payload(data.get("endpoint")),
        _choices(data.get("endpoint")),
        len(_items(data, "expect")) if isinstance(data.get("expect", []), list) else None,
        _shows(data.get("paper")),
        {index: capture for index, raw in enumerate(_items(data, "capture")) if (capture := _model(Capture, raw))},
        transport := registry.known().get(str(data.get("transport")), registry.USUAL),
        _word(Routing, data.get("routing"), transport.usual_routing),
        _model(RoceSettings, data.get("roce", {})) or RoceSettings(),
        _model(EcmpSettings, data.get("ecmp", {})) or EcmpSettings(),
        _model(BgpSettings, data.get("bgp", {})) or BgpSettings(),
        _word(WorldKind, data.get("world"), WorldKind.KERNEL),
        _scale(data.get("scale", 1)),
    )


def _scale(raw: Any) -> ScaleFactor:
    try:
        return read_scale(raw)
    except ValueError:
        return ScaleFactor()


def _word(kind: type[W], raw: Any, usual: W) -> W:
    try:
        return kind(raw)
    except ValueError:
        return usual


def _fabric(raw: Any) -> tuple[FabricSettings, bool]:
    try:
        return FabricSettings.model_validate(raw), True
    except ValidationError as error:
        wrong = {details["loc"][:1] for details in error.errors()}
    kept = {key: value for key, value in raw.items() if (key,) not in wrong} if isinstance(raw, dict) else {}
    return FabricSettings.model_validate(kept), wrong == {("switch",)}


def _items(data: Any, key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _model(model: type[M], raw: Any) -> M | None:
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def _entry(raw: Any, kinds: Mapping[str, type[M]]) -> M | None:
    kind = next((key for key in raw if key in kinds), None) if isinstance(raw, dict) else None
    return _model(kinds[kind], raw[kind]) if kind else None


def _fault(raw: Any) -> Entry | None:
    kind = kind_of(raw)
    return _model(entry_models()[kind], raw) if kind else None


def _seed(raw: Any) -> int:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else USUAL_SEED


def _denylist(endpoint: Any) -> dict[int, Denial]:
    readable = {}
    for index, raw in enumerate(_items(endpoint, "denylist") if isinstance(endpoint, dict) else ()):
        with suppress(ValidationError):
            readable[index] = _DENIAL.validate_python(raw)
    return readable


def _icrc(endpoint: Any) -> bool | None:
    icrc = endpoint.get("icrc", False) if isinstance(endpoint, dict) else None
    return icrc if isinstance(icrc, bool) else None


def _payload(endpoint: Any) -> int:
    with suppress(ValidationError):
        return _PAYLOAD.validate_python(endpoint.get("payload") if isinstance(endpoint, dict) else None)
    return PAYLOAD_BYTES


def _choices(endpoint: Any) -> dict[str, str]:
    written = endpoint if isinstance(endpoint, dict) else {}
    return {key: written[key] for key in CHOICES if isinstance(written.get(key), str)}


def _shows(paper: Any) -> dict[int, int]:
    indices = _items(paper, "shows") if isinstance(paper, dict) else []
    return {place: index for place, index in enumerate(indices) if type(index) is int and index >= 0}


def _expectations(index: int, raw: Any) -> Iterator[tuple[KeyPath, Expectation]]:
    with suppress(ValueError):
        yield from placed_lines(index, read_line(raw))


def _duration(raw: Any) -> int | None:
    try:
        return DURATION.parse(raw)
    except UnitError:
        return None
