"""survivors.toml: mutants that no test can kill, each with its reason."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutants.operators import Mutant

FILE = Path(__file__).with_name("survivors.toml")


def read_reasons(text: str) -> dict[Mutant, str]:
    """A table for each `file:function`, in it a line for each mutation, `"before -> after" = "reason"`. Raises
    ValueError for one without a reason."""
    found = {}
    for place, mutations in tomllib.loads(text).items():
        file, _, function = place.partition(":")
        for mutation, reason in mutations.items():
            if not isinstance(reason, str) or not reason.strip():
                raise ValueError(f"{place}: {mutation}: says no reason")
            found[Mutant(f"testbed/{file}", function, mutation)] = reason
    return found


def without_code(reasons: Mapping[Mutant, str], mutants: Iterable[Mutant]) -> list[Mutant]:
    """Those that the code no longer has: the line was changed, and so the reason may not hold."""
    return sorted(reasons.keys() - set(mutants))
