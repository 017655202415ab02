"""Groups of repeated runs, and the keys in which groups differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mrc_testbed.testbed.checks.statistics import gathered
from mrc_testbed.testbed.compare.runs import SIDE, ComparedRun
from mrc_testbed.testbed.scenario.model.matrix import NAMED
from mrc_testbed.testbed.scenario.model.queue_pairs import QPS
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.text.keys import distinct_texts, short_names

MOST_NAMED = 3
"""Groups that differ in more keys than this are named by their scenarios, unless they are cells of one matrix."""
NOT_SET = "-"


@dataclass(frozen=True)
class RunGroup:
    """Runs with the same settings, whatever their seeds. `place`: its value on each axis."""

    label: str
    runs: tuple[ComparedRun, ...]
    place: tuple[str, ...] = ()


@dataclass(frozen=True)
class Axis:
    """A key in which groups differ, and its values in order of appearance."""

    key: str
    short: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Grouping:
    """`axes`: the keys in which the groups differ; none for different scenarios. `notes`: caveats about the ratios.
    `base`: the group that the others are compared with."""

    groups: tuple[RunGroup, ...]
    axes: tuple[Axis, ...]
    notes: tuple[str, ...]
    base: int

    @property
    def grid(self) -> bool:
        """True with two axes and a group at every crossing."""
        return len(self.axes) == 2 and prod(len(axis.values) for axis in self.axes) == len(self.groups)


def grouped(runs: Sequence[ComparedRun]) -> Grouping:
    """Groups in axis order, else in order of appearance. The group of the first run is the base."""
    names = _names(runs)
    mine = ([item for item in run.settings.items() if item[0] in names or item[0] not in NAMED] for run in runs)
    parts = [tuple(part) for part in gathered(zip(map(tuple, map(sorted, mine)), runs, strict=True)).values()]
    moved = [key for key in _differing([part[0].settings for part in parts]) if key in names or key not in NAMED]
    moved = [key for key in moved if not _goes_with_its_choice(key, runs)]
    keys = [key for key in moved if not _is_explained(key, names, runs)]
    keys.sort(key=lambda key: names.index(key) if key in names else len(names))
    named = len(keys) <= MOST_NAMED or all(key in names for key in keys)
    shorts = short_names(keys)
    shown = {key: distinct_texts(run.settings.get(key, NOT_SET) for run in runs) for key in keys}
    places = [tuple(shown[key][part[0].settings.get(key, NOT_SET)] for key in keys) if named else () for part in parts]
    labels = _labels(parts, places, [shorts[key] for key in keys])
    axes = [Axis(key, shorts[key], _values(places, number)) for number, key in enumerate(keys)] if named else []
    groups = [RunGroup(label, part, place) for label, part, place in zip(labels, parts, places, strict=True)]
    groups.sort(key=lambda group: [axis.values.index(value) for axis, value in zip(axes, group.place, strict=True)])
    base = next(number for number, group in enumerate(groups) if runs[0] in group.runs)
    return Grouping(
        tuple(groups), tuple(axes), (*_other_work(groups, named, keys, moved), *_other_machines(runs)), base
    )


def _names(runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """The axes that all have, as variants or cases of one scenario, or keys of the matrix that they are cells of."""
    of_one = len({run.scenario for run in runs}) == 1
    named = [key for key in NAMED if of_one and all(key in run.settings for run in runs)]
    return tuple(dict.fromkeys([*named, *(key for key in runs[0].axes if all(key in run.axes for run in runs))]))


def _is_explained(key: str, names: Sequence[str], runs: Sequence[ComparedRun]) -> bool:
    """Whether variant, case and matrix alone decide the value of a key: their names then say it all."""
    pairs = {(tuple(run.settings[name] for name in names), run.settings.get(key)) for run in runs}
    return bool(names) and key not in (*names, SIDE) and len(pairs) == len({which for which, _ in pairs})


def _goes_with_its_choice(key: str, runs: Sequence[ComparedRun]) -> bool:
    """Whether it is of an implementation, as of a congestion control, with one value wherever that is chosen."""
    chosen = {run.settings.get(f"endpoint.{kind}") for run in runs for kind in ("congestion_control", "ev_selection")}
    group, _, own = key.removeprefix("endpoint.").partition(".")
    return bool(own) and group in chosen and len({run.settings.get(key) for run in runs} - {None}) == 1


def _values(places: Sequence[tuple[str, ...]], number: int) -> tuple[str, ...]:
    """Numbers by value, others in order of appearance."""
    found = list(dict.fromkeys(place[number] for place in places))
    matches = {value: match for value in found if (match := re.fullmatch(r"(\d+(?:\.\d+)?)(\D*)", value))}
    if len(matches) == len(found) and len({match[2] for match in matches.values()}) == 1:
        found.sort(key=lambda value: float(matches[value][1]))
    return tuple(found)


def _differing(all_settings: Sequence[Mapping[str, str]]) -> list[str]:
    keys = dict.fromkeys(key for settings in all_settings for key in settings)
    return [key for key in keys if len({settings.get(key) for settings in all_settings}) > 1]


def _labels(
    parts: Sequence[tuple[ComparedRun, ...]], places: Sequence[tuple[str, ...]], shorts: Sequence[str]
) -> list[str]:
    names = [part[0].scenario for part in parts]
    if () not in places:
        named = ([*zip(shorts, place, strict=True)] for place in places)
        return [", ".join(value if short in NAMED else f"{short}={value}" for short, value in one) for one in named]
    seen: list[str] = []
    for name in names:
        seen.append(f"{name} ({names[: len(seen) + 1].count(name)})" if names.count(name) > 1 else name)
    return seen


def _other_work(groups: Sequence[RunGroup], named: bool, keys: Sequence[str], moved: Sequence[str]) -> list[str]:
    """If groups do different work, a ratio of their times says little. `moved`: all keys in which they differ. QPs
    only share the same work out."""
    work = [key for key in moved if key.split(".")[0] == "workload" and key.split(".")[-1] != QPS]
    names = list(dict.fromkeys(group.runs[0].scenario for group in groups))
    if not named:
        what = f"{', '.join(names)} are different scenarios" if len(names) > 1 else "the scenarios differ"
        return [f"{what}, in {len(keys)} keys: side by side, but no ratio here compares like with like"]
    shown = ", ".join(work if len(work) <= MOST_NAMED else dict.fromkeys(".".join(key.split(".")[:3]) for key in work))
    return [f"the workload differs ({shown}): times and counts are of different work"] if work else []


_MACHINE = {
    "kernel": "kernels",
    "cpus": "numbers of CPUs",
    "delay_by": "makers of T",
    "switch_ports_by": "switch ports",
    "idle_cpus": "idle CPUs",
}
"""Entries of environment.json that affect figures and must be equal, with their plural names."""


def _other_machines(runs: Sequence[ComparedRun]) -> list[str]:
    """Runs in virtual time had no machine; `world` tells them apart from the others."""
    machines = [run.environment for run in runs if run.world is WorldKind.KERNEL]
    found = {key: sorted({str(machine.get(key, "unknown")) for machine in machines}) for key in _MACHINE}
    return [
        f"the runs had different {_MACHINE[key]}: {'; '.join(each)}" for key, each in found.items() if len(each) > 1
    ]
