"""Words that an expectation gives a meaning of their own, and that therefore name no fault, flow or job. Pure."""

from __future__ import annotations

import re

from mrc_testbed.testbed.expect.metrics import known_metrics
from mrc_testbed.testbed.expect.scope import EACH, EACH_NOUNS
from mrc_testbed.testbed.expect.vocabulary import UNITS, Severity
from mrc_testbed.testbed.expect.window import BEGINNINGS, FAULT, FAULTS, HEALS
from mrc_testbed.topos.names import parse_host

NAME_PATTERN = "[a-z0-9][a-z0-9-]{0,62}"
"""Of names of scenarios, faults, flows and jobs."""
ALL_FAULTS = "all"
WHOLE_RUN = "run"
"""Reserved in `capture` for every fault, and for all of a run."""
JOINING = ("of", "to", "for", "x")
"""Words between the parts of an expectation."""
_NUMBER = re.compile(r"[0-9]+([a-z]*)")


def can_name(name: str) -> bool:
    """Whether a fault, a flow or a job may have this name."""
    taken = name in (ALL_FAULTS, WHOLE_RUN) or is_reserved(name)
    return re.fullmatch(NAME_PATTERN, name) is not None and not taken


def is_reserved(name: str) -> bool:
    """Whether `name` means something else where an expectation could name a fault, a flow or a job: a word of the
    language, a unit, a metric or a statistic, a host, a number or a time such as `4s`."""
    if name in _WORDS or parse_host(name) is not None:
        return True
    metrics = known_metrics()
    if name in metrics or any(name in metric.stats for metric in metrics.values()):
        return True
    number = _NUMBER.fullmatch(name)
    return number is not None and (number[1] in _WORDS or not number[1])


_UNITS = [unit for units in UNITS.values() for unit in units if unit]
_WORDS = frozenset((*BEGINNINGS, *JOINING, FAULTS, FAULT, HEALS, EACH, *EACH_NOUNS, Severity.WARNING.value, *_UNITS))
