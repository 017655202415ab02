"""Plugins in the run folder: copies of their files for the hosts, their hashes, and changes since."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.consent import not_noted, notes_file
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.rundir.files import MOST_DOCUMENT_BYTES, RecordError, open_plain, read_json
from mrc_testbed.testbed.rundir.ownership import write_given
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.offered import COPIES, PluginSource
from mrc_testbed.testbed.whole_files import open_new


def keep_plugins(scenario: Scenario, folder: Path) -> None:
    """Copy the bytes that are run into the run folder, and note them as run. Raises RunError."""
    copy_plugins(scenario, folder)
    note_plugins(scenario)


def copy_plugins(scenario: Scenario, folder: Path) -> None:
    """Copy the checked bytes into the folder of a run or of a sweep. Raises RunError."""
    for source in scenario.offered.sources:
        path = folder / COPIES / source.copy_name
        try:
            path.parent.mkdir(exist_ok=True)
            with open_new(path) as file:
                file.write(source.content)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from error


def note_plugins(*scenarios: Scenario) -> None:
    """Mark their files as run by this user on this machine, so that all commands may run them. Raises RunError."""
    note_hashes(source.sha256 for scenario in scenarios for source in scenario.offered.sources)


def note_hashes(hashes: Iterable[str]) -> None:
    """Mark what has these hashes as run here. Raises RunError."""
    wanted = not_noted(hashes)
    if not wanted:
        return
    path = notes_file()
    try:
        there = path.read_text(encoding="ascii") if path.exists() else ""
        write_given(path, there + "".join(f"{each}\n" for each in wanted))
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot note plugins in {path}: {error}") from error


def plugin_records(scenario: Scenario) -> dict[str, Any]:
    """For environment.json; empty without plugins."""
    rows = [
        {"name": one.name, "kind": one.kind, "file": str(one.source.file), "sha256": one.source.sha256}
        for one in scenario.offered.plugins
    ]
    return {"plugins": rows} if rows else {}


def plugin_rows(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """For `configure`: the plugins that the endpoints use, loaded from the copies in the run folder."""
    endpoint = scenario.endpoint
    chosen = {
        ("congestion_control", endpoint.congestion_control),
        ("ev_selection", endpoint.ev_selection),
        *([("transport", scenario.transport.word)] if scenario.transport.endpoint else []),
    }
    rows = [
        {
            "name": one.name,
            "kind": one.kind,
            "attribute": one.attribute,
            **_place(one.source, folder),
            **({"keys": endpoint.keys_of(one.name)} if one.has_keys else {}),
        }
        for one in scenario.offered.plugins
        if (one.kind, one.name) in chosen
    ]
    return {"plugins": rows} if rows else {}


def _place(source: PluginSource, folder: Path) -> dict[str, str]:
    if source.module:
        return {"module": source.module}
    return {"file": str((folder / COPIES / source.copy_name).resolve()), "sha256": source.sha256}


def changed_plugins(folder: Path) -> list[str]:
    """A line for each plugin file that has changed since this run. Raises RecordError."""
    path = folder / "environment.json"
    try:
        files = {str(row["file"]): str(row["sha256"]) for row in (read_json(path) or {}).get("plugins") or ()}
    except (KeyError, TypeError):
        raise RecordError(path, "its `plugins` are not files with their hashes") from None
    return [
        f"{file} has changed since this run, which has a copy in {folder / COPIES}"
        for file, hash_then in files.items()
        if (now := _hash(Path(file))) and now != hash_then
    ]


def _hash(file: Path) -> str:
    """Hash of a file; empty if it is gone, or nothing that was ever run. Any file may be named in a run folder."""
    try:
        with open_plain(file.resolve(), MOST_DOCUMENT_BYTES) as content:
            return sha256(content.read(MOST_DOCUMENT_BYTES)).hexdigest()
    except (OSError, ValueError, RuntimeError, RecordError):
        return ""
