"""The names of the formats that are read, and which one a file has by its name. The command line needs no more."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from mrc_testbed.testbed.errors import UsageError


class Format(StrEnum):
    """Formats of workloads."""

    HTSIM = "htsim"
    FLOWS = "flows"
    CDF = "cdf"
    CHAKRA = "chakra"
    GOAL = "goal"


class StartUnit(StrEnum):
    """What the starts of a connection matrix count."""

    PS = "ps"
    NS = "ns"
    US = "us"


_ENDINGS = {
    ".cm": Format.HTSIM,
    ".tm": Format.HTSIM,
    ".csv": Format.FLOWS,
    ".cdf": Format.CDF,
    ".et": Format.CHAKRA,
    ".et.gz": Format.CHAKRA,
    ".goal": Format.GOAL,
}


def format_of(file: Path) -> Format:
    """By the end of its name. Raises UsageError."""
    if file.name.lower().endswith(".topo"):
        raise UsageError(f"{file}: is a topology of htsim, no workload; write its sizes under `fabric`")
    found = next((kind for ending, kind in _ENDINGS.items() if file.name.lower().endswith(ending)), None)
    if found is None:
        known = ", ".join(f"{ending} ({kind})" for ending, kind in _ENDINGS.items())
        raise UsageError(f"{file}: its name says no format; give --from {'|'.join(Format)}. Known ends: {known}")
    return found
