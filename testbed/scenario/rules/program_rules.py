"""Rules of programs of the user: hosts and files that exist, a world that has a kernel, figures that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mrc_testbed.testbed.expect import Expectation
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.scenario.rules.flow_rules import no_host
from mrc_testbed.testbed.scenario.rules.readable import Readable
from mrc_testbed.testbed.scenario.text.mistake import Mistake
from mrc_testbed.testbed.scenario.text.source import KeyPath
from mrc_testbed.topos.plan import Plan

MAX_FILE_BYTES = 16 << 20
"""Of a file that every host gets a copy of."""
_OF_OUR_PROGRAMS = ("goodput", "goodput_back", "wait_time", "bytes_wrong")
"""What our own rank programs count, and no program of the user tells."""


def broken_programs(file: Readable, plan: Plan | None, folder: Path | None) -> Iterator[Mistake]:
    """All violations. `folder`: of the scenario, where its files lie; None: nobody will run it from there."""
    found = {index: entry for index, entry in file.steps.items() if isinstance(entry, Programs)}
    for index, entry in found.items():
        where = ("workload", index, Programs.kind)
        if file.scenario.world is WorldKind.VIRTUAL:
            why = "programs need a kernel, which virtual time has not; write `world: kernel`"
            yield Mistake(where, why, at_key=True)
        if entry.verbs and file.scenario.transport.of_kernel:
            why = f"verbs need QPs of a daemon, and with transport: {file.scenario.transport} they are the kernel's"
            yield Mistake((*where, "verbs"), f"{why}; choose mrc or roce")
        for host, _ in entry.commands if plan else ():
            if plan and host not in plan.host_by_name:
                yield Mistake((*where, "commands", host), no_host(host, list(plan.host_by_name)), at_key=True)
            elif entry.hosts and host not in entry.hosts:
                yield Mistake((*where, "commands", host), f"{host} is not in `hosts`; add it there", at_key=True)
        for place, name in enumerate(entry.files if folder else ()):
            if folder and (wrong := _wrong_file(folder, name)):
                yield Mistake((*where, "files", place), wrong)
    if found and len(found) == len(file.steps):
        yield from _lacking_figures(file.expectations)


def _wrong_file(folder: Path, name: str) -> str:
    """Why a file cannot be copied, else empty."""
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
        size = path.stat().st_size if path.is_file() else -1
    except (OSError, RuntimeError) as error:
        return f"{path} cannot be read: {error}"
    if not inside:
        return f"{path} leads out of the folder of the scenario; copy it there"
    if size < 0:
        return f"there is no file {path}"
    return f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB" if size > MAX_FILE_BYTES else ""


def _lacking_figures(lines: Mapping[KeyPath, Expectation]) -> Iterator[Mistake]:
    """Figures of rank programs where only programs of the user run."""
    for place, line in lines.items():
        if line.metric.name in _OF_OUR_PROGRAMS:
            yield Mistake(place, f"{line.metric.name} is not known of programs; have them print it, and use `metric`")
