"""Whether the caller has asked for the code that a scenario names: the plugins beside it
(mrc_testbed.testbed.scenario.plugins)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

TRUST = "MRC_TRUST_PLUGINS"
"""With this in the environment, as 1, any plugin is run."""


class Consent:
    """As in this process at this time. A program that loads a scenario has asked for its code."""

    of_scenarios = True


@contextmanager
def known_code_alone() -> Iterator[None]:
    """Meanwhile only plugins are run that were run here before, until `run_what_scenarios_name`: each command begins
    so."""
    before, Consent.of_scenarios = Consent.of_scenarios, False
    try:
        yield
    finally:
        Consent.of_scenarios = before


def run_what_scenarios_name() -> None:
    """The command is one that carries out, or checks, the scenarios that its caller names."""
    Consent.of_scenarios = True
