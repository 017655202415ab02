"""The rooms import in one direction only, and the pure ones nothing that touches the machine (docs/architecture.md)."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("topos", "hosts", "testbed")
MACHINE = {
    "asyncio",
    "ctypes",
    "fcntl",
    "glob",
    "io",
    "logging",
    "mmap",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
}
"""Modules through which code reads the machine, the clock or chance."""
NO_CLOCK_NO_SOCKET = {"socket", "time", "random", "logging", "select", "threading", "selectors", "asyncio", "datetime"}
STDLIB = sys.stdlib_module_names


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imported(source: str, package: str) -> Iterator[str]:
    """Full names of everything a module of `package` imports, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def sources(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def breaches(room: str, forbidden: Callable[[str], bool], but_not: str = "") -> list[str]:
    """`file imports module` for every forbidden import in a room, the folder `but_not` left out."""
    found = []
    for path in sources(room):
        if but_not and path.is_relative_to(ROOT / but_not):
            continue
        package = ".".join(path.parent.relative_to(ROOT).parts)
        found += [
            f"{path.relative_to(ROOT)} imports {name}"
            for name in imported(path.read_text(), package)
            if forbidden(name)
        ]
    return found


def top(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize(
    "room",
    [*ROOMS, "hosts/core", "testbed/fabric", "testbed/faults", "testbed/checks", "testbed/wireview", "testbed/pcap"],
)
def test_the_room_is_there(room: str) -> None:
    assert sources(room)


def test_topos_imports_only_itself_and_pure_modules() -> None:
    assert not breaches("topos", lambda name: top(name) != "topos" and top(name) not in STDLIB - MACHINE)


def test_hosts_import_only_themselves_and_the_standard_library() -> None:
    assert not breaches("hosts", lambda name: top(name) != "hosts" and top(name) not in STDLIB)


def test_the_core_has_no_socket_no_clock_and_no_chance() -> None:
    assert not breaches("hosts/core", lambda name: top(name) in NO_CLOCK_NO_SOCKET)


def test_the_core_imports_of_hosts_only_itself_and_the_wire() -> None:
    rooms = ("hosts.core", "hosts.wire")
    assert not breaches(
        "hosts/core", lambda name: top(name) == "hosts" and not any(within(name, room) for room in rooms)
    )


def test_every_foreign_module_belongs_to_a_declared_dependency() -> None:
    """What another package happens to bring is not there for ever."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {_plain(re.split(r"[^\w.-]", entry, maxsplit=1)[0]) for entry in project["dependencies"]}
    makers = packages_distributions()

    def undeclared(name: str) -> bool:
        return not _ours(name) and not declared & {_plain(maker) for maker in makers.get(top(name), [])}

    found = [line for room in ROOMS for line in breaches(room, undeclared)]
    # The plugin for pytest is loaded by pytest alone, so whoever loads it has it.
    assert [line for line in found if not line.startswith("testbed/pytest_plugin.py imports pytest")] == []


def _ours(name: str) -> bool:
    return top(name) in STDLIB or top(name) in ROOMS


def _plain(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_only_the_fabric_knows_mininet_and_netlink() -> None:
    assert not breaches("testbed", lambda name: top(name) in {"mininet", "pyroute2"}, but_not="testbed/fabric")


def test_the_wire_view_knows_packets_and_names_only() -> None:
    rooms = ("testbed.wireview", "testbed.errors", "hosts.wire", "topos")
    assert not breaches(
        "testbed/wireview",
        lambda name: top(name) in ROOMS and not any(within(name, room) for room in rooms),
    )


def test_the_scapy_layers_are_an_oracle_for_the_wire() -> None:
    source = (ROOT / "testbed/wireview/layers.py").read_text()
    assert not any(within(name, "hosts") for name in imported(source, "testbed.wireview"))


def test_captures_are_made_of_what_a_run_left() -> None:
    rooms = ("testbed.runner", "testbed.faults", "testbed.wireview", "socket", "time", "subprocess")
    assert not breaches("testbed/pcap", lambda name: any(within(name, room) for room in rooms))


def test_the_server_of_the_live_view_knows_nothing_of_runs() -> None:
    """It goes on beside them, in a process that is soon there and small."""
    serving = {"__main__", "board", "channel", "desk", "page", "server"}
    rooms = ("testbed.pages", *(f"testbed.web.{name}" for name in serving))
    found = [
        f"{path.name} imports {name}"
        for path in sources("testbed/web")
        if path.stem in serving
        for name in imported(path.read_text(), "testbed.web")
        if top(name) in ROOMS and not any(within(name, room) for room in rooms)
    ]
    assert not found


def test_faults_do_not_know_the_checks() -> None:
    assert not breaches("testbed/faults", lambda name: within(name, "testbed.checks"))


def test_scenarios_do_not_know_how_faults_are_done() -> None:
    assert not breaches("testbed/scenario", lambda name: within(name, "testbed.faults"))


def test_checks_know_neither_faults_nor_the_machine() -> None:
    rooms = ("testbed.faults", "testbed.runner", "testbed.fabric", "subprocess")
    assert not breaches("testbed/checks", lambda name: any(within(name, room) for room in rooms))


@pytest.mark.parametrize(
    ("source", "package", "names"),
    [
        ("import a.b, c", "x", ["a.b", "c"]),
        ("from a.b import c as d", "x", ["a.b.c"]),
        ("from testbed import checks", "testbed.faults", ["testbed.checks"]),
        ("from . import y", "x.z", ["x.z.y"]),
        ("from ..checks import run", "testbed.faults", ["testbed.checks.run"]),
        ("def f():\n    import socket", "x", ["socket"]),
    ],
)
def test_the_reader_sees_every_form_of_import(source: str, package: str, names: list[str]) -> None:
    assert list(imported(source, package)) == names
