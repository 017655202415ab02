"""Files of the user's programs in a run folder: copies with their hashes, and the rule who may run them again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.consent import TRUST, Consent, trusts
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.rundir.files import MOST_DOCUMENT_BYTES, RecordError, open_plain
from mrc_testbed.testbed.rundir.results import PROGRAMS_FOLDER
from mrc_testbed.testbed.runner.plugins import note_hashes
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.whole_files import open_new

_RUNS = 0o111
"""Who may run a file. A copy can be run where the file could."""


@dataclass(frozen=True, slots=True)
class ProgramFiles:
    """What programs of a scenario are, read once: what is judged is what is copied and run, although files may be
    swapped meanwhile. `contents`: by name; `run`: the names of those that can be run."""

    scenario: Scenario
    replays: Path | None
    contents: Mapping[str, bytes]
    run: frozenset[str]

    @staticmethod
    def read(scenario: Scenario, replays: Path | None) -> ProgramFiles:
        """From beside the scenario, or from the run that is repeated. Raises UsageError."""
        if not has_programs(scenario):
            return ProgramFiles(scenario, replays, {}, frozenset())
        source = replays / PROGRAMS_FOLDER if replays else Path(scenario.file).parent
        found = {name: _content(source / name, replays is None) for name in _names(scenario, source)}
        run = frozenset(name for name, (_, mode) in found.items() if mode & _RUNS)
        return ProgramFiles(scenario, replays, {name: content for name, (content, _) in found.items()}, run)

    def require_consent(self) -> None:
        """Where the caller has not asked for the scenario's code, as in a replay, the very same commands and files must
        have been run here before. Raises UsageError."""
        asked = Consent.of_scenarios and self.replays is None
        if asked or not has_programs(self.scenario) or trusts(self._digest()):
            return
        read = "read its scenario.yaml and programs/" if self.replays else "read it"
        why = f"its programs were never run on this machine; {read}: {TRUST}=1 in the environment runs them"
        raise UsageError(f"{self.replays or self.scenario.file}: {why}")

    def keep(self, folder: Path) -> None:
        """Copy them into the run folder, and note them as run. Raises RunError."""
        if not has_programs(self.scenario):
            return
        path = folder / PROGRAMS_FOLDER
        try:
            path.mkdir(parents=True, exist_ok=True)
            for name, content in self.contents.items():
                path = folder / PROGRAMS_FOLDER / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with open_new(path) as file:
                    file.write(content)
                    if name in self.run:
                        os.chmod(file.fileno(), os.fstat(file.fileno()).st_mode | _RUNS)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from error
        note_hashes([self._digest()])

    def _digest(self) -> str:
        """The hash of all that is executed: commands, variables and files."""
        programs = self.scenario.job.programs
        said = [[one.entry.command, one.entry.commands, one.entry.env, one.entry.files] for one in programs]
        said += [[_controller(self.scenario)]] if _controller(self.scenario) else []
        hashes = {name: sha256(content).hexdigest() for name, content in self.contents.items()}
        return sha256(json.dumps([said, hashes], sort_keys=True).encode()).hexdigest()


def has_programs(scenario: Scenario) -> bool:
    """It runs what is neither ours nor a plugin: programs on hosts, or a controller."""
    return bool(scenario.job.programs or _controller(scenario))


def _controller(scenario: Scenario) -> tuple[str, ...]:
    """The command of the controller; empty where it is none of the user's."""
    return (scenario.controller and scenario.controller.command) or ()


def program_records(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """For environment.json: the hashes of the copies; empty without programs."""
    if not has_programs(scenario):
        return {}
    names = _names(scenario, folder / PROGRAMS_FOLDER)
    hashes = {name: sha256((folder / PROGRAMS_FOLDER / name).read_bytes()).hexdigest() for name in names}
    return {"program_files": hashes}


def _names(scenario: Scenario, source: Path) -> list[str]:
    """Files of programs, and those that the controller's command names, as far as they are there."""
    of_programs = [name for one in scenario.job.programs for name in one.entry.files]
    words = [word for word in _controller(scenario) if not Path(word).is_absolute() and ".." not in Path(word).parts]
    return list(dict.fromkeys([*of_programs, *(word for word in words if (source / word).is_file())]))


def _content(path: Path, is_own: bool) -> tuple[bytes, int]:
    """The content of a file, and its mode. Beside a scenario of the caller's own it may be a link."""
    try:
        with open_plain(path.resolve() if is_own else path, MOST_DOCUMENT_BYTES) as file:
            return file.read(MOST_DOCUMENT_BYTES), os.fstat(file.fileno()).st_mode
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except RecordError as error:
        raise UsageError(f"cannot read {path}: {error}") from None
