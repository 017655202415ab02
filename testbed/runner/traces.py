"""Data files of a scenario in the run folder: copies of what was read, and their hashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.text.beside import COPIES
from mrc_testbed.testbed.whole_files import open_new


def copy_traces(scenario: Scenario, folder: Path) -> None:
    """Copy the bytes that were read into the folder of a run or of a sweep. Raises RunError."""
    for name, data in scenario.data_files.items():
        path = folder / COPIES / name
        try:
            path.parent.mkdir(exist_ok=True)
            with open_new(path) as file:
                file.write(data.content)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from error


def trace_records(scenario: Scenario) -> dict[str, Any]:
    """For environment.json: hashes by name; empty without data files."""
    hashes = {name: data.sha256 for name, data in scenario.data_files.items()}
    return {"traces": hashes} if hashes else {}
