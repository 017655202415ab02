"""The parts of a scenario that can be read, when others cannot: so that rules across parts still speak."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from testbed.checks.expect import Expectation
from testbed.scenario.denylist import Denial, DenialEntry
from testbed.scenario.expectations import read_expectation
from testbed.scenario.faults import KINDS, Fault, kind_of
from testbed.scenario.models import Fabric
from testbed.scenario.units import DURATION, UnitError
from testbed.scenario.workloads import FLOW_KINDS, TRAIN, FlowEntry, Train

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Parts:
    """What was readable; None or left out where it was not. Numbers are indices in the file's lists.

    `fabric` has the usual values where the file's could not be read; then `whole_fabric` is False, unless it was the
    `switch`, which gives no name.
    `all_workload`: every entry of `workload` was readable. `all_faults`: every fault of the file was, so that a name
    which is not among them does not exist.
    """

    fabric: Fabric
    whole_fabric: bool
    train: Train | None
    flows: dict[int, FlowEntry]
    all_workload: bool
    faults: dict[int, Fault]
    all_faults: bool
    expectations: dict[int, Expectation]
    time_limit_ns: int | None
    denylist: dict[int, Denial]
    icrc: bool | None


_DENIAL: TypeAdapter[Denial] = TypeAdapter(DenialEntry)


def salvage(data: Any) -> Parts:
    """Read each part on its own. Never raises: what is wrong inside a part has been said already."""
    faults = _items(data, "faults")
    readable = {index: fault for index, raw in enumerate(faults) if (fault := _fault(raw))}
    workload = _items(data, "workload")
    train = _model(Train, workload[0].get(TRAIN)) if workload and isinstance(workload[0], dict) else None
    flows = {index: entry for index, raw in enumerate(workload) if (entry := _flow_entry(raw))}
    lines = {index: line for index, raw in enumerate(_items(data, "expect")) if (line := _expectation(raw))}
    return Parts(
        *_fabric(data.get("fabric", {})),
        train,
        flows,
        len(workload) == len(flows) + bool(train),
        readable,
        len(readable) == len(faults),
        lines,
        _duration(data.get("time_limit")),
        _denylist(data.get("endpoint")),
        _icrc(data.get("endpoint", {})),
    )


def _fabric(raw: Any) -> tuple[Fabric, bool]:
    try:
        return Fabric.model_validate(raw), True
    except ValidationError as error:
        wrong = {details["loc"][:1] for details in error.errors()}
    kept = {key: value for key, value in raw.items() if (key,) not in wrong} if isinstance(raw, dict) else {}
    return Fabric.model_validate(kept), wrong == {("switch",)}


def _items(data: Any, key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _model(model: type[M], raw: Any) -> M | None:
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def _flow_entry(raw: Any) -> FlowEntry | None:
    kind = next((key for key in raw if key in FLOW_KINDS), None) if isinstance(raw, dict) else None
    return _model(FLOW_KINDS[kind], raw[kind]) if kind else None


def _fault(raw: Any) -> Fault | None:
    kind = kind_of(raw)
    return _model(KINDS[kind], raw) if kind else None


def _denylist(endpoint: Any) -> dict[int, Denial]:
    readable = {}
    for index, raw in enumerate(_items(endpoint, "denylist") if isinstance(endpoint, dict) else ()):
        with suppress(ValidationError):
            readable[index] = _DENIAL.validate_python(raw)
    return readable


def _icrc(endpoint: Any) -> bool | None:
    icrc = endpoint.get("icrc", False) if isinstance(endpoint, dict) else None
    return icrc if isinstance(icrc, bool) else None


def _expectation(raw: Any) -> Expectation | None:
    try:
        return read_expectation(raw)
    except ValueError:  # ExpectError too
        return None


def _duration(raw: Any) -> int | None:
    try:
        return DURATION.parse(raw)
    except UnitError:
        return None
