"""`sweep plan`: the cases of `run`, written as a folder; nothing is run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.app.pack import expected_s
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.folders import make_own
from mrc_testbed.testbed.report.outcome import Case
from mrc_testbed.testbed.rundir.ownership import give
from mrc_testbed.testbed.runner.plugins import copy_plugins
from mrc_testbed.testbed.runner.program_files import has_programs
from mrc_testbed.testbed.runner.traces import copy_traces
from mrc_testbed.testbed.scenario import SCENARIO_FILE, Scenario
from mrc_testbed.testbed.scenario.model.offered_load import offered_load
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from mrc_testbed.testbed.sweep.code import code_version
from mrc_testbed.testbed.sweep.folder import SCENARIOS, SWEEP_FILE, SweepCell, SweepFolder, write_sweep
from mrc_testbed.topos.cost import cpus

_ID_DIGITS = 12


def plan_sweep(cases: Sequence[Case], out: Path, asked: Mapping[str, Any]) -> SweepFolder:
    """Write the folder `out`, which is not there yet or empty. `asked`: what the command line said, for the record.
    Raises UsageError, RunError."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        what = "has a sweep already: `sweep run` goes on with it" if (out / SWEEP_FILE).exists() else "is not empty"
        raise UsageError(f"--out {out}: {what}; name a new folder")
    seen: Counter[str] = Counter()
    try:
        missing = make_own(out)
        cells = [_planned(case, out, seen) for case in map(portable, cases)]
        made = datetime.now(UTC).isoformat(timespec="seconds")
        write_sweep(out, {"made": made, **code_version(), "asked": dict(asked)}, cells)
        give((*missing, *out.rglob("*")))
    except OSError as error:
        raise RunError(f"cannot write {error.filename or out}: {error.strerror}") from error
    return SweepFolder(out)


def portable(case: Case) -> Case:
    """Raises UsageError for programs, whose files and commands lie on this machine."""
    if has_programs(case.scenario):
        raise UsageError(
            f"{case.file}: has programs of this machine; `mrc-testbed run` has --repeat and matrix for them"
        )
    return case


def _planned(case: Case, out: Path, seen: Counter[str]) -> SweepCell:
    scenario = case.scenario
    text = scenario.dump_yaml()
    same = _digest(text, scenario, "")
    seen[same] += 1
    name = _digest(text, scenario, str(seen[same]))[:_ID_DIGITS]
    folder = out / SCENARIOS / name
    folder.mkdir(parents=True)
    (folder / SCENARIO_FILE).write_text(text, encoding="utf-8", newline="\n")
    copy_plugins(scenario, folder)
    copy_traces(scenario, folder)
    on_kernel = scenario.world is WorldKind.KERNEL
    return SweepCell(
        name,
        sha256(text.encode()).hexdigest(),
        case.name,
        os.fspath(case.file),
        case.number,
        scenario.seed,
        {setting.key: setting.value for setting in case.settings},
        scenario.world.value,
        scenario.transport.word,
        round(cpus(scenario.shape(), offered_load(scenario), scenario.transport.cost), 3) if on_kernel else 0.0,
        round(expected_s([case]), 3),
        {source.copy_name: source.sha256 for source in scenario.offered.sources},
        {name: data.sha256 for name, data in scenario.data_files.items()},
    )


def _digest(text: str, scenario: Scenario, turn: str) -> str:
    data = (file.sha256 for file in scenario.data_files.values())
    parts = [text, *(source.sha256 for source in scenario.offered.sources), *data, turn]
    return sha256("\0".join(parts).encode()).hexdigest()
