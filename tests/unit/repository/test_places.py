"""Each test of tests/unit lies in the folder of the room that it is about, as far as its imports tell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.unit.repository.test_imports import ORDER, PACKAGE, ROOT, named_in_full, room_of, within

UNIT = ROOT / "tests/unit"
REPOSITORY = "repository"
"""The folder of what is about the repository: docs, tools, rules for all rooms."""
OTHERWISE = {
    "commands/test_import.py": "calls the command",
    "commands/test_landing.py": "calls the command",
    "commands/test_scenarios.py": "calls the command",
    "fabric/test_bgp_locators.py": "plans of all families, and what FRR is told of them",
    "incidents/test_set.py": "commands and library score the same sets of cases",
    "planner/test_bridge_command.py": "calls the command",
    "repository/test_hooks.py": "hooks for commits, one of which reads shipped scenarios",
    "repository/test_results_doc.py": "docs/results.md, held against whole runs",
    "runner/test_options.py": "all capabilities that the fabric knows of",
    "testbed/test_inputs.py": "calls the command",
    "testbed/test_pytest_plugin.py": "pytest loads the plugin",
    "virtual/test_run.py": "a whole run in virtual time",
}
"""Tests whose imports tell of another room, and why they do."""


def folder_of(room: str) -> str:
    """The folder of its tests. That of `testbed` is for modules that lie in testbed/ itself."""
    first, _, rest = room.partition(".")
    below = rest.partition(".")[0]
    return below if (ROOT / first / below).is_dir() and below else first


def files() -> list[Path]:
    return sorted(UNIT.rglob("test_*.py"))


def named(path: Path) -> str:
    return path.relative_to(UNIT).as_posix()


def fitting(source: str) -> set[str]:
    """Folders for a test with these imports: of the room with most names, of the highest room, and those whose helpers
    it uses. Errors are everybody's."""
    names = named_in_full(source, "")
    rooms = [room_of(name.removeprefix(f"{PACKAGE}.")) for name in names if within(name, PACKAGE)]
    rooms = [room for room in rooms if room and room != "testbed.errors"]
    helpers = {name.split(".")[2] for name in names if name.startswith("tests.unit.")}
    count = Counter(map(folder_of, rooms))
    fits = {folder for folder, number in count.items() if number == max(count.values())}
    fits |= {folder for folder in helpers if (UNIT / folder).is_dir()}
    if len(rooms) <= 1:
        fits.add(REPOSITORY)
    return fits | ({folder_of(max(rooms, key=ORDER.index))} if rooms else set())


def test_every_folder_is_that_of_a_room_and_every_test_lies_in_one() -> None:
    folders = {REPOSITORY, *map(folder_of, ORDER)}
    assert not [named(path) for path in files() if named(path).count("/") != 1 or path.parent.name not in folders]


def test_every_test_lies_with_the_room_that_its_imports_tell() -> None:
    """One that imports nothing of ours tells nothing."""
    wrong = {}
    for path in files():
        fits = fitting(path.read_text(encoding="utf-8"))
        if fits - {REPOSITORY} and path.parent.name not in fits:
            wrong[named(path)] = sorted(fits)
    assert wrong.keys() == OTHERWISE.keys(), wrong


def test_no_name_says_the_folder_again() -> None:
    assert not [named(path) for path in files() if path.name.startswith(f"test_{path.parent.name}_")]


def test_helpers_outside_of_the_folders_serve_several() -> None:
    users: dict[str, set[str]] = {path.stem: set() for path in UNIT.glob("*.py") if path.stem[:2] != "__"}
    for path in [*UNIT.rglob("*.py"), *(ROOT / "tests/browser").glob("*.py")]:
        for name in named_in_full(path.read_text(encoding="utf-8"), ""):
            if name.startswith("tests.unit.") and name.split(".")[2] in users:
                users[name.split(".")[2]].add(path.parent.name)
    assert not [name for name, folders in users.items() if len(folders) < 2 and name != "conftest"]


@pytest.mark.parametrize(
    ("source", "folders"),
    [
        ("import json", {REPOSITORY}),
        ("from mrc_testbed.testbed.errors import ExitCode", {REPOSITORY}),
        ("from mrc_testbed.testbed.checks.flows import a, b", {"checks"}),
        (
            "from mrc_testbed.testbed.checks.flows import a, b\nfrom mrc_testbed.testbed.app.run import c",
            {"checks", "app"},
        ),
        ("from mrc_testbed.testbed.cli import main\nfrom mrc_testbed.hosts.mrc import wire", {"testbed", "hosts"}),
        (
            "from mrc_testbed.topos.nodes import a\nfrom tests.unit.virtual.virtual_stage import b, c",
            {"virtual", "topos", REPOSITORY},
        ),
        ("from tests.unit.recorded import record_run", {REPOSITORY}),
    ],
)
def test_imports_tell_the_room(source: str, folders: set[str]) -> None:
    assert fitting(source) == folders
