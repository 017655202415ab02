"""Files of the user's programs in a run folder: copies with their hashes, and the rule who may run them again."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.consent import TRUST, Consent
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.rundir.files import MOST_DOCUMENT_BYTES, RecordError, open_plain
from mrc_testbed.testbed.rundir.results import PROGRAMS_FOLDER
from mrc_testbed.testbed.runner.plugins import note_hashes
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.plugins.trust import is_trusted
from mrc_testbed.testbed.whole_files import open_new

_RUNS = 0o111
"""Who may run a file. A copy can be run where the file could."""


def require_consent(scenario: Scenario, replays: Path | None) -> None:
    """Where the caller has not asked for the scenario's code, as in a replay, the very same commands and files must
    have been run here before. Raises UsageError."""
    asked = Consent.of_scenarios and replays is None
    if asked or not _has_programs(scenario) or is_trusted(_digest(scenario, _contents(scenario, replays))):
        return
    read = "read its scenario.yaml and programs/" if replays else "read it"
    why = f"its programs were never run on this machine; {read}: {TRUST}=1 in the environment runs them"
    raise UsageError(f"{replays or scenario.file}: {why}")


def _has_programs(scenario: Scenario) -> bool:
    return bool(scenario.job.programs or _controller(scenario))


def _controller(scenario: Scenario) -> tuple[str, ...]:
    """The command of the controller; empty where it is none of the user's."""
    return (scenario.controller and scenario.controller.command) or ()


def keep_programs(scenario: Scenario, folder: Path, replays: Path | None) -> None:
    """Copy the files into the run folder: from beside the scenario, or from the run that is repeated. Raises
    UsageError, RunError."""
    if not _has_programs(scenario):
        return
    contents = _contents(scenario, replays)
    try:
        (folder / PROGRAMS_FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {folder / PROGRAMS_FOLDER}: {error.strerror}") from error
    for name, content in contents.items():
        path = folder / PROGRAMS_FOLDER / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_new(path) as file:
                file.write(content)
            if (_source(scenario, replays) / name).stat().st_mode & _RUNS:
                path.chmod(path.stat().st_mode | _RUNS)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from error
    note_hashes([_digest(scenario, contents)])


def program_records(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """For environment.json: the hashes of the copies; empty without programs."""
    if not _has_programs(scenario):
        return {}
    names = _names(scenario, folder / PROGRAMS_FOLDER)
    hashes = {name: sha256((folder / PROGRAMS_FOLDER / name).read_bytes()).hexdigest() for name in names}
    return {"program_files": hashes}


def _names(scenario: Scenario, source: Path) -> list[str]:
    """Files of programs, and those that the controller's command names, as far as they are there."""
    of_programs = [name for one in scenario.job.programs for name in one.entry.files]
    words = [word for word in _controller(scenario) if not Path(word).is_absolute() and ".." not in Path(word).parts]
    return list(dict.fromkeys([*of_programs, *(word for word in words if (source / word).is_file())]))


def _source(scenario: Scenario, replays: Path | None) -> Path:
    return replays / PROGRAMS_FOLDER if replays else Path(scenario.file).parent


def _contents(scenario: Scenario, replays: Path | None) -> dict[str, bytes]:
    source = _source(scenario, replays)
    return {name: _content(source / name) for name in _names(scenario, source)}


def _content(path: Path) -> bytes:
    try:
        with open_plain(path.resolve(), MOST_DOCUMENT_BYTES) as file:
            return file.read(MOST_DOCUMENT_BYTES)
    except (OSError, RecordError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def _digest(scenario: Scenario, contents: dict[str, bytes]) -> str:
    """Of all that is executed: commands, variables and files."""
    said = [[one.entry.command, one.entry.commands, one.entry.env, one.entry.files] for one in scenario.job.programs]
    said += [[_controller(scenario)]] if _controller(scenario) else []
    hashes = {name: sha256(content).hexdigest() for name, content in contents.items()}
    return sha256(json.dumps([said, hashes], sort_keys=True).encode()).hexdigest()
