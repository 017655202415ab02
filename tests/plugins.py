"""Fault kinds of docs/examples, registered for a test and forgotten after it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.faults.actions import ACTIONS
from testbed.scenario.faults import KINDS

MTU_FAULT = Path(__file__).parents[1] / "docs/examples/mtu_fault.py"


@contextmanager
def registered(file: Path = MTU_FAULT) -> Iterator[None]:
    """What a plugin file registers is there meanwhile."""
    before = KINDS.copy(), ACTIONS.copy()
    run(file)
    try:
        yield
    finally:
        for registry, kept in zip((KINDS, ACTIONS), before, strict=True):
            registry.clear()
            registry.update(kept)  # type: ignore[attr-defined]


def run(file: Path) -> None:
    """Run a plugin file as a module of its own."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec
    assert spec.loader
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
