"""Where a run took place, how to run it again, and what its folder holds."""

from __future__ import annotations

import shlex
from pathlib import Path

from mrc_testbed.testbed.checks.record import RunRecord
from mrc_testbed.testbed.report import facts
from mrc_testbed.testbed.report.capture_facts import capture_line
from mrc_testbed.testbed.report.hash_facts import hash_lines
from mrc_testbed.testbed.report.listing import size_words
from mrc_testbed.testbed.report.map_facts import mapper_lines
from mrc_testbed.testbed.report.packet_facts import packet_lines, refused_lines
from mrc_testbed.testbed.scenario import SCENARIO_FILE
from mrc_testbed.testbed.whole_files import UNFINISHED

_MACHINE = ("kernel", "machine", "cpus", "python", "version", "commit", "started", "command", "replays")
_NAMES = {"version": "mrc-testbed", "machine": "architecture", "cpus": "CPUs", "replays": "replays the run"}
_OWN = frozenset({"report.html", "owner.json", "owner.lock"})


def environment_rows(record: RunRecord) -> list[tuple[str, str]]:
    """The machine and the versions of the run, name and text."""
    known = [(_NAMES.get(key, key), str(record.environment[key])) for key in _MACHINE if record.environment.get(key)]
    captured = capture_line(record.folder)
    rootless = facts.rootless_line(record)
    lacking = [name for name, there in (record.environment.get("capabilities") or {}).items() if not there]
    return [
        ("fabric", facts.fabric_line(record)),
        ("network", facts.network_line(record)),
        *([("without root", rootless)] if rootless else []),
        ("endpoint", facts.endpoint_line(record)),
        *mapper_lines(record),
        *hash_lines(record),
        *packet_lines(record),
        *refused_lines(record),
        *facts.job_facts(record),
        *([("captures", captured)] if captured else []),
        *known,
        *([("not on this machine", ", ".join(lacking))] if lacking else []),
    ]


def warnings(record: RunRecord) -> list[str]:
    """What the machine was warned of before the run."""
    return [str(one) for one in record.environment.get("warnings") or ()]


def commands(folder: Path) -> list[tuple[str, str]]:
    """What a command does, and the command, to be called where the run was."""
    name = shlex.quote(str(folder))
    return [
        ("run the scenario again, faults drawn again from the same seed", f"mrc-testbed run {name}/{SCENARIO_FILE}"),
        ("the same faults at the very same times", f"mrc-testbed replay {name}"),
        ("make this page again", f"mrc-testbed report {name}"),
    ]


def files(folder: Path) -> list[tuple[str, str]]:
    """Path below the folder and size of what it holds."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not _own(path.name))
    return [(path.relative_to(folder).as_posix(), size_words(path.stat().st_size)) for path in found]


def _own(name: str) -> bool:
    return name in _OWN or name.endswith(UNFINISHED)
