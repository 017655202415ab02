"""Mutants through tests: those in functions, then those that act when their module is imported."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings

from tests.mutants.campaign import Campaign, Order
from tests.mutants.exchange import ROOT, source_of
from tests.mutants.imports import OPTIONS, Chosen, choose, modules_of, try_imports
from tests.mutants.operators import Place, places_in
from tests.mutants.reach import Reaches, hash_of
from tests.mutants.results import UNPLACED, Result, Results

INSIDE = 0.75
"""Part of the time for mutants in functions; those outside take seconds each."""


class Judges(NamedTuple):
    """What is mutated, and what must notice it."""

    folders: tuple[str, ...]
    """Of modules, from the root of the repository."""
    tests: tuple[str, ...]
    kept: Path
    """What is known of mutants and tests, from campaign to campaign."""

    def places(self) -> list[Place]:
        """All mutants of these folders."""
        return [place for file in modules_of(self.folders) for place in places_in(source_of(file), file)]


class Limits(NamedTuple):
    """What a campaign may take."""

    children: int = 1
    seconds: float = float("inf")


def try_all(judges: Judges, places: Sequence[Place], limits: Limits, tell: Callable[[str], None]) -> list[Result]:
    """In the order of `places`, while there is time; what is known of these mutants then."""
    _prepare(judges.kept)
    began = time.monotonic()
    inside = [place for place in places if place.within]
    order = Order(inside, judges.folders, judges.kept, limits.children, began + INSIDE * limits.seconds, tell)
    _in_functions(order, judges.tests)
    _at_import(judges, places, limits.children, began + limits.seconds, tell)
    known = Results.below(judges.kept).of
    return [known[place.mutant] for place in places if place.mutant in known]


def _prepare(kept: Path) -> None:
    """Load what is not ours, once for all children; forget what a killed campaign left."""
    import numpy  # noqa: F401
    import pandas  # noqa: F401
    import pydantic  # noqa: F401
    import ruamel.yaml  # noqa: F401
    import typer  # noqa: F401

    shutil.rmtree(kept / "scratch", ignore_errors=True)
    settings.register_profile(
        "mutants",
        deadline=None,
        max_examples=30,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
    )


def _in_functions(order: Order, tests: Sequence[str]) -> None:
    """In a process of its own: afterwards it has loaded all modules, and mutants at import need one that has not."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            status = pytest.main(["-W", "ignore", *OPTIONS, *tests], plugins=[Campaign(order)])
            sys.stdout.flush()
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    if status:
        sys.exit("the campaign ended early: its tests cannot be collected, or it was interrupted")


def _at_import(
    judges: Judges, places: Sequence[Place], children: int, until: float, tell: Callable[[str], None]
) -> None:
    results, reaches = Results.below(judges.kept), Reaches.below(judges.kept).of
    functions = {name.split("[")[0] for name in reaches}
    files = modules_of(judges.folders)
    unplaced = {mutant for mutant, result in results.of.items() if result.how == UNPLACED}

    def waiting() -> Iterator[Chosen]:
        for place in places:
            if (not place.within or place.mutant in unplaced) and time.monotonic() < until:
                chosen = choose(place, reaches, files)
                if not results.hold(place.mutant, hash_of(ROOT / place.mutant.file), chosen.made_of, functions):
                    yield chosen

    for chosen, ended in try_imports(waiting(), children, judges.kept / "scratch"):
        result = chosen.result(ended)
        results.add(result)
        if not result.killed:
            tell(str(result))
