"""What `run --dry-run` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mrc_testbed.topos.units import plural, time_text

_MOST_FAULTS = 20
_INDENT = 12


def dry_run_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Of one run (`mrc_testbed.testbed.app.dry_run`): a heading, and a line for each kind of change."""
    where = "on this kernel, in namespaces of its own" if document["world"] == "kernel" else "in virtual time"
    least_s, most_s = document["seconds"]
    takes = f"about {most_s:.0f} s" if least_s == most_s else f"{least_s:g} to {most_s:g} s"
    yield f"{document['name']}, seed {document['seed']}: {where}, {takes}; nothing was done"
    for name, text in (*_of_world(document), *_writes(document), *_faults(document["faults"])):
        yield f"  {name:<{_INDENT}}{text}"


def _of_world(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    nodes = f"{plural(document['hosts'], 'host')}, {document['switches']} switches"
    if document["world"] != "kernel":
        yield "fabric", f"{nodes}, in the memory of this process"
        return
    yield "namespaces", f"{_counts(document['namespaces'])}; for {nodes}"
    yield "links", f"{document['links']} pairs of veth devices"
    yield "ip", _counts(document["ip"])
    yield "tc", f"{_counts(document['tc'])}; switch ports by {document['switch_ports']}"
    yield "sysctls", f"{document['sysctls']}, all inside of namespaces"
    most = f"at most {document['processes']} with threads, {document['open_files']} open files"
    yield "processes", f"{plural(document['daemons'], 'daemon')}; {most}"
    for one in document["programs"]:
        yield "program", f"{one['host']}: {' '.join(one['command'])}"
    yield from _machine(document["needs"], document["has"])


def _machine(needs: Mapping[str, Any], has: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    carried = f"{has['carries_cpus']:g} to {has['most_cpus']:g}"
    yield "CPU", f"{needs['cpus']:g} s a second; carried here: {carried} ({has['known_by']})"
    yield "memory", f"about {needs['memory_mib']} MiB"
    yield "meanwhile", "idle CPUs stay awake (/dev/cpu_dma_latency); modules that the kernel lacks are loaded"
    yield "as root", "with every part; `mrc-testbed doctor` tries what this machine has, and you may do"


def _writes(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    writes = document["writes"]
    yield "writes", f"{writes['folder']}/, and the link {writes['link']}"
    if captures := document["captures"]:
        yield "captures", f"{', '.join(captures)}: about {sum(captures.values()) / 1e6:.0f} MB"


def _faults(faults: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for one in faults[:_MOST_FAULTS]:
        lasts = time_text(one["end_ns"] - one["begin_ns"])
        yield "fault", f"at {time_text(one['begin_ns'])} for {lasts}: {one['kind']} {' '.join(one['targets'])}"
    if len(faults) > _MOST_FAULTS:
        yield "", f"and {len(faults) - _MOST_FAULTS} more"


def _counts(by_name: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in by_name.items())
