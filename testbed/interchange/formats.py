"""The formats that are read: which reader each one has."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mrc_testbed.testbed.interchange.chakra_graph import ChakraOptions, read_chakra
from mrc_testbed.testbed.interchange.distributions import read_sizes
from mrc_testbed.testbed.interchange.flow_lists import read_flows
from mrc_testbed.testbed.interchange.found import Found
from mrc_testbed.testbed.interchange.goal import read_goal
from mrc_testbed.testbed.interchange.htsim import UNITS_PS, read_htsim
from mrc_testbed.testbed.interchange.kinds import Format, StartUnit


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """What a file does not say itself."""

    start_unit: StartUnit | None = None
    chakra: ChakraOptions = field(default_factory=ChakraOptions)


def read_file(file: Path, kind: Format, options: ReadingOptions) -> Found:
    """What it holds. Raises FormatError."""
    match kind:
        case Format.HTSIM:
            return read_htsim(file, UNITS_PS[options.start_unit] if options.start_unit else None)
        case Format.FLOWS:
            return read_flows(file)
        case Format.CDF:
            return read_sizes(file)
        case Format.GOAL:
            return read_goal(file)
        case Format.CHAKRA:
            return read_chakra(file, options.chakra)
