"""Copies: runs in virtual time of one version with the same settings, plugins and seed. Nothing in them may differ.

Virtual time has no machine and no clock but its own, so what differs was decided by something that the seed does not
decide. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import zip_longest

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.compare.runs import ComparedRun
from mrc_testbed.testbed.scenario.model.transports import WorldKind

_ROWS = {
    "history": "history.jsonl",
    "completions": "completions.csv",
    "waits": "waits.csv",
    "received": "flows.csv",
    "messages": "messages.csv",
    "ports": "ports.csv",
    "ev_changes": "events.jsonl",
    "stalls": "events.jsonl",
}
"""Parts of a record, and the file that each is read from."""
_OF_PLUGINS = (
    "a plugin is asked for the same twice and answers otherwise: it may draw random numbers of its own, go through a "
    "set, or read a clock or a file"
)
_OF_OURS = "no plugin is in it, so this is a defect of the testbed, unless its code was changed in between"


def unlike_copies(runs: Sequence[ComparedRun]) -> Iterator[str]:
    """A line for each run that differs from the first of its copies. What ended early has none."""
    firsts: dict[Hashable, ComparedRun] = {}
    for run in runs:
        if run.world is not WorldKind.VIRTUAL or not _whole(run):
            continue
        first = firsts.setdefault(_identity(run), run)
        what = "" if first is run else _difference(first, run)
        if what:
            cause = _OF_PLUGINS if any(key.startswith("plugins.") for key in run.settings) else _OF_OURS
            yield (
                f"{first.folder_name} and {run.folder_name} are one scenario with seed {run.seed} in virtual time, "
                f"and differ in {what}; {cause}"
            )


def _whole(run: ComparedRun) -> bool:
    """Neither interrupted nor cut off, which may happen at any moment."""
    return run.believed if run.loaded is None else not (run.loaded.interrupted or run.loaded.missing)


def _identity(run: ComparedRun) -> Hashable:
    """All that decides a run. Plugins are in the settings, with their hashes."""
    version = tuple(run.environment.get(key) for key in ("version", "commit"))
    limit_ns = run.loaded.scenario.time_limit_ns if run.loaded else None
    return run.seed, frozenset(run.settings.items()), version, limit_ns


def _difference(first: ComparedRun, other: ComparedRun) -> str:
    """The first thing in which they differ; empty if they do not. Cells of sweeps have figures alone."""
    found = _in_records(first.loaded, other.loaded) if first.loaded and other.loaded else ""
    if found:
        return found
    ours, theirs = first.figures.values, other.figures.values
    return next((f"the figure {key}" for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)), "")


def _in_records(first: RunRecord, other: RunRecord) -> str:
    for part, file in _ROWS.items():
        row = _first_other(getattr(first, part), getattr(other, part))
        if row is not None:
            return f"{file} ({part.replace('_', ' ')}, row {row})"
    for part in ("counters", "qps"):
        ours, theirs = getattr(first, part), getattr(other, part)
        host = next((host for host in {**ours, **theirs} if ours.get(host) != theirs.get(host)), "")
        if host:
            return f"counters.json ({host})"
    return ""


def _first_other(ours: Iterable[object], theirs: Iterable[object]) -> int | None:
    """The number of the first row that differs, from 1."""
    pairs = enumerate(zip_longest(ours, theirs), 1)
    return next((number for number, (one, two) in pairs if one != two), None)
