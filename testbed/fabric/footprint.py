"""What building a fabric does to a machine, as numbers: counted in the text that `Fabric.build` hands to `ip` and `tc`.
Nothing is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from mrc_testbed.testbed.fabric import commands, limits
from mrc_testbed.testbed.fabric.fabric import sysctls
from mrc_testbed.testbed.fabric.port_program import attach_lines
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import Plan


@dataclass(frozen=True, slots=True)
class Footprint:
    """`namespaces` by kind; `ip` and `tc`: how many objects of each kind they add or set, links between nodes apart;
    `sysctls`: settings, all inside of namespaces; `processes`, with threads, and `open_files`: at most at once."""

    namespaces: dict[str, int]
    links: int
    ip: dict[str, int]
    tc: dict[str, int]
    sysctls: int
    processes: int
    open_files: int


def footprint(plan: Plan, options: FabricOptions) -> Footprint:
    """Of a fabric with these options. Routes that BGP finds are not among them."""
    nodes = plan.node_names
    return Footprint(
        namespaces=limits.namespaces_needed(plan.shape),
        links=len(plan.links),
        ip=_by_object(chain.from_iterable(commands.node_lines(plan, node, options) for node in nodes)),
        tc=_by_object(chain.from_iterable(_tc_lines(plan, node, options) for node in nodes)),
        sysctls=sum(len(sysctls(plan, node, options)) for node in nodes),
        processes=limits.processes_needed(plan.shape, plan.learns),
        open_files=limits.files_needed(plan.shape),
    )


def _tc_lines(plan: Plan, node: str, options: FabricOptions) -> Iterator[str]:
    yield from commands.queue_lines(plan, node, options)
    if options.port_program:
        yield from attach_lines(plan, node, Path())


def _by_object(lines: Iterable[str]) -> dict[str, int]:
    """By the first word of `ip -batch` and `tc -batch` lines, such as `route`."""
    return dict(sorted(Counter(line.partition(" ")[0] for line in lines).items()))
