"""Writes what mrc_testbed.api promises, a line for each name and member: `python tests/unit/api/api_signatures.py`."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrc_testbed import api

FILE = Path(__file__).with_name("api.txt")


def lines() -> list[str]:
    """Of all names, in their order."""
    return [line for name in api.__all__ for line in _lines(name, getattr(api, name))]


def _lines(name: str, value: Any) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{inspect.signature(value)}" if callable(value) and inspect.isroutine(value) else f"{name}"
        return
    yield name
    if issubclass(value, enum.Enum):
        yield from (f"{name}.{member}" for member in value.__members__)
        return
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    fields |= {*getattr(value, "_fields", ()), *getattr(value, "model_fields", {})}
    yield from (f"{name}.{field}" for field in sorted(fields))
    for member, of in sorted(vars(value).items()):
        if not member.startswith("_") and member not in fields:
            yield f"{name}.{member}{_signature(of)}"


def _signature(value: Any) -> str:
    function = getattr(value, "__func__", value)
    return str(inspect.signature(function)) if inspect.isfunction(function) else ""


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    sys.stdout.write(f"{FILE}: {len(lines())} lines\n")
