"""The rooms have one order and import only down it; the pure ones import nothing that touches the machine.

docs/architecture.md draws the order and says what each room is for. Names here are without `mrc_testbed.`, the package
that holds all of them.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from itertools import islice
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = "mrc_testbed"
SOURCE = ROOT / "src" / PACKAGE
ROOMS = ("topos", "hosts", "testbed")
ORDER = (
    *("topos", "hosts"),
    *(
        "testbed.isolated",
        "testbed.errors",
        "testbed.interrupts",
        "testbed.version",
        "testbed.state",
        "testbed.consent",
        "testbed.folders",
        "testbed.whole_files",
        "testbed.kept",
        "testbed.terminal",
        "testbed.inputs",
        "testbed.launcher",
    ),
    *("testbed.cpus", "testbed.arrays", "testbed.xor", "testbed.calibration"),
    *(
        "testbed.planner.arithmetic",
        "testbed.wireview",
        "testbed.workloads",
        "testbed.expect",
        "testbed.interchange",
        "testbed.switching",
        "testbed.switchview",
        "testbed.mapper",
        "testbed.oam",
        "testbed.scenario.text",
        "testbed.transports",
        "testbed.fabric",
        "testbed.virtual",
        "testbed.scenario",
    ),
    *(
        "testbed.faults",
        "testbed.rundir",
        "testbed.evidence",
        "testbed.checks",
        "testbed.pcap",
        "testbed.report",
        "testbed.compare",
    ),
    "testbed.metrics",
    "testbed.export",
    *("testbed.planner.report", "testbed.lessons", "testbed.incidents"),
    *(
        "testbed.pages",
        "testbed.planner.pages",
        "testbed.runner",
        "testbed.live",
        "testbed.web",
        "testbed.app",
        "testbed.sweep",
        "testbed.interop",
        "testbed.bench",
    ),
    *(
        "testbed.pytest_plugin",
        "testbed.commands",
        "testbed.planner.commands",
        "testbed.cli",
        "api",
        "verbs",
        "torch",
        "__main__",
    ),
)
"""From low to high. A room imports itself and rooms before it, so no loop between rooms is possible."""
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
STDLIB = sys.stdlib_module_names | {"distutils"}
"""Python 3.11 still has distutils; from 3.12 on setuptools has it."""
OTHER_FOLDERS = ("tests", "benchmarks", "tools", "docs")


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imported(source: str, package: str) -> Iterator[str]:
    """Names of everything a module of `package` imports, also inside functions and under TYPE_CHECKING."""
    return (name.removeprefix(f"{PACKAGE}.") for name in named_in_full(source, package))


@cache
def named_in_full(source: str, package: str) -> tuple[str, ...]:
    """As they are written; relative ones get the full name of `package`."""
    return tuple(_named(ast.parse(source), package))


def _named(tree: ast.AST, package: str) -> Iterator[str]:
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = [PACKAGE, *package.split(".")]
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All that are in it, at any depth: no expression holds an import, and most of a file is expressions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from _statements(node)


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
    [
        *ROOMS,
        "hosts/common",
        "hosts/mrc",
        "hosts/rc",
        "testbed/fabric",
        "testbed/virtual",
        "testbed/faults",
        "testbed/checks",
        "testbed/evidence",
        "testbed/expect",
        "testbed/mapper",
        "testbed/wireview",
        "testbed/pcap",
        "testbed/planner/arithmetic",
    ],
)
def test_the_room_is_there(room: str) -> None:
    assert sources(room)


def module_of(path: Path) -> str:
    """Its name."""
    inside = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT)
    return ".".join(inside.with_suffix("").parts)


def modules() -> list[Path]:
    """All of ours."""
    return [*(path for room in ROOMS for path in sources(room)), *sorted(SOURCE.rglob("*.py"))]


def room_of(module: str) -> str:
    """The room that a module or a name in it belongs to; empty for what is none of ours."""
    return next((room for room in ORDER if within(module, room)), "")


def climbs(importer: str, source: str, package: str) -> list[str]:
    """What a module of the room `importer` imports from rooms above it."""
    above = ORDER[ORDER.index(importer) + 1 :]
    return [name for name in imported(source, package) if room_of(name) in above]


def test_every_module_is_in_a_room_of_the_order() -> None:
    rooms = {name: room_of(name) for name in map(module_of, modules())}
    assert [name for name, room in rooms.items() if not room] == [
        "testbed.__init__",
        "testbed.planner.__init__",
        "__init__",
    ]
    assert set(rooms.values()) - {""} == set(ORDER)


def test_no_import_runs_up_the_order_of_rooms() -> None:
    found = []
    for path in modules():
        package, _, _ = module_of(path).rpartition(".")
        room = room_of(module_of(path))
        if room:
            found += [f"{path.relative_to(ROOT)} imports {name}" for name in climbs(room, path.read_text(), package)]
    assert not found


def test_nobody_imports_a_room_without_the_package_that_holds_it() -> None:
    """There it would be the module of somebody else, or the same file as a second module."""
    files = [*modules(), *(path for folder in OTHER_FOLDERS for path in (ROOT / folder).rglob("*.py"))]
    assert not [f"{path.relative_to(ROOT)} imports {name}" for path in files for name in bare(path.read_text())]


BARE = re.compile(rf"\b(?:from|import)\s[\w., ]*?(?<!\.)\b(?:{'|'.join((*ROOMS, 'scenarios'))})\b")
"""Where one may be: nearly no file has such a line, and only those are read as Python."""


def bare(source: str) -> list[str]:
    """Names of rooms, or of what is in them, that are imported without the package."""
    named = named_in_full(source, "") if BARE.search(source) else ()
    return [name for name in named if top(name) in (*ROOMS, "scenarios")]


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("import hosts", ["hosts"]),
        ("import os, testbed.app as app", ["testbed.app"]),
        ("if x:\n    from topos.names import host", ["topos.names.host"]),
        ("from mrc_testbed.testbed.virtual import hosts", []),
        ("from . import scenarios", []),
    ],
)
def test_a_room_without_the_package_is_seen(source: str, named: list[str]) -> None:
    assert bare(source) == named


def test_the_picture_of_the_rooms_has_the_same_order() -> None:
    """A line of it may hold several rooms, in any order."""
    picture = (ROOT / "docs/architecture.md").read_text().partition("```\nhigh ")[2].partition("```")[0]
    lines = [re.split(r" {2,}", line.removeprefix("low").strip())[:-1] for line in picture.splitlines()]
    drawn = [
        [room if room in (*ROOMS, "api", "verbs", "torch", "__main__") else f"testbed.{room}" for room in line]
        for line in reversed(lines)
    ]
    assert [sorted(line, key=ORDER.index) for line in drawn] == list(_in_pieces(ORDER, map(len, drawn)))


def _in_pieces(rooms: Iterable[str], lengths: Iterable[int]) -> Iterator[list[str]]:
    left = iter(rooms)
    yield from (list(islice(left, length)) for length in lengths)
    yield from ([room] for room in left)


def test_the_package_above_the_rooms_imports_nothing() -> None:
    assert list(imported((ROOT / "testbed/__init__.py").read_text(), "testbed")) == []
    assert list(imported((SOURCE / "__init__.py").read_text(), "")) == ["os"]


@pytest.mark.parametrize(
    ("room", "source", "climbed"),
    [
        (
            "testbed.report",
            "from mrc_testbed.testbed.runner.results import run_folder",
            ["testbed.runner.results.run_folder"],
        ),
        ("testbed.runner", "def f():\n    from mrc_testbed.testbed import live", ["testbed.live"]),
        ("testbed.runner", "if TYPE_CHECKING:\n    import mrc_testbed.testbed.app.run", ["testbed.app.run"]),
        ("hosts", "from mrc_testbed.testbed.errors import ExitCode", ["testbed.errors.ExitCode"]),
        (
            "testbed.app",
            "import json\nfrom mrc_testbed.testbed.app.judge import f\nfrom mrc_testbed.topos import g",
            [],
        ),
    ],
)
def test_imports_up_the_order_are_seen(room: str, source: str, climbed: list[str]) -> None:
    assert climbs(room, source, room) == climbed


def test_topos_imports_only_itself_and_pure_modules() -> None:
    assert not breaches("topos", lambda name: top(name) != "topos" and top(name) not in STDLIB - MACHINE)


def test_hosts_import_only_themselves_and_the_standard_library() -> None:
    assert not breaches("hosts", lambda name: top(name) != "hosts" and top(name) not in STDLIB)


PROTOCOLS = ("hosts/common", "hosts/mrc", "hosts/rc")
"""The protocols, and what they share."""


@pytest.mark.parametrize("room", PROTOCOLS)
def test_a_protocol_has_no_socket_no_clock_and_no_chance(room: str) -> None:
    assert not breaches(room, lambda name: top(name) in NO_CLOCK_NO_SOCKET)


OF_THE_DAEMON = {f"hosts/{name}.py" for name in ("mrc/transport", "mrc/denylist", "mrc/settings", "rc/transport")}
"""Modules of a protocol that make it the network of a daemon."""


@pytest.mark.parametrize("room", PROTOCOLS)
def test_a_protocol_imports_of_hosts_only_itself_and_what_is_shared(room: str) -> None:
    rooms = (room.replace("/", "."), "hosts.common")
    found = breaches(room, lambda name: top(name) == "hosts" and not any(within(name, room) for room in rooms))
    assert not [line for line in found if line.partition(" ")[0] not in OF_THE_DAEMON]


def test_every_foreign_module_belongs_to_a_declared_dependency() -> None:
    """What another package happens to bring is not there for ever."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    entries = [*project["dependencies"], *extras["sweep"], *extras["otel"]]
    declared = {_plain(re.split(r"[^\w.-]", entry, maxsplit=1)[0]) for entry in entries}
    makers = packages_distributions()

    def undeclared(name: str) -> bool:
        return not _ours(name) and not declared & {_plain(maker) for maker in makers.get(top(name), [])}

    found = [line for room in ROOMS for line in breaches(room, undeclared)]
    # The plugin for pytest is loaded by pytest alone, so pytest is there.
    assert [line for line in found if not line.startswith("testbed/pytest_plugin.py imports pytest")] == []


def test_dask_is_imported_by_its_engine_and_by_workers_alone() -> None:
    """It takes half a second, and is there only with the extra."""
    found = breaches("testbed", lambda name: top(name) in {"dask", "distributed"})
    files = {line.partition(" ")[0] for line in found}
    assert files == {f"testbed/sweep/{name}.py" for name in ("engine_dask", "hunting", "scheduler", "worker")}


def _ours(name: str) -> bool:
    return top(name) in STDLIB or top(name) in (*ROOMS, PACKAGE)


def _plain(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_only_the_fabric_knows_mininet_and_netlink() -> None:
    assert not breaches("testbed", lambda name: top(name) in {"mininet", "pyroute2"}, but_not="testbed/fabric")


def test_what_a_switch_port_is_is_pure() -> None:
    """Both worlds have it, and it is there without Linux."""
    known = ("topos", "testbed.errors", "testbed.switching")
    pure = STDLIB - MACHINE
    assert not breaches(
        "testbed/switching", lambda name: top(name) not in pure and not any(within(name, room) for room in known)
    )


def test_the_mapper_knows_the_plan_of_a_fabric_and_nothing_else() -> None:
    """It hears of hosts and never asks them."""
    pure = STDLIB - MACHINE
    assert not breaches(
        "testbed/mapper", lambda name: top(name) not in {*pure, "topos"} and not within(name, "testbed.mapper")
    )


def test_the_virtual_world_has_no_machine_and_a_chance_of_its_own() -> None:
    known = ("topos", "hosts", "testbed.errors", "testbed.oam", "testbed.switching", "testbed.virtual", "testbed.xor")
    pure = STDLIB - MACHINE | {"random"}
    assert not breaches(
        "testbed/virtual",
        lambda name: not any(within(name, room) for room in known) and top(name) not in pure,
    )


def test_what_is_asked_of_switches_touches_no_machine() -> None:
    known, pure = ("topos", "testbed.errors", "testbed.oam"), STDLIB - MACHINE
    assert not breaches(
        "testbed/oam", lambda name: not any(within(name, room) for room in known) and top(name) not in pure
    )


def test_the_virtual_network_is_imported_without_linux() -> None:
    barred = ("ctypes", "fcntl", "mininet", "mmap", "pyroute2", "resource", "select", "socket", "subprocess")
    program = f"import sys; sys.modules.update(dict.fromkeys({barred})); import mrc_testbed.testbed.virtual.fabric"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_wire_view_knows_packets_and_names_only() -> None:
    rooms = (
        "testbed.wireview",
        "testbed.errors",
        "testbed.inputs",
        "testbed.terminal",
        "hosts.common.bth",
        "hosts.mrc.wire",
        "hosts.rc.wire",
        "topos",
    )
    assert not breaches(
        "testbed/wireview",
        lambda name: top(name) in ROOMS and not any(within(name, room) for room in rooms),
    )


def test_the_scapy_layers_are_an_oracle_for_the_wire() -> None:
    source = (ROOT / "testbed/wireview/layers.py").read_text()
    assert not any(within(name, "hosts") for name in imported(source, "testbed.wireview"))


def test_captures_are_made_of_what_a_run_left() -> None:
    rooms = ("testbed.faults", "testbed.wireview", "socket", "time", "subprocess")
    assert not breaches("testbed/pcap", lambda name: any(within(name, room) for room in rooms))


def test_the_server_of_the_live_view_knows_nothing_of_runs() -> None:
    """It goes on beside them, in a process that is soon there and small."""
    own = ("__main__", "channel", "metrics_server", "rpc", "server", "sse_state", "visitors")
    web = {f"testbed/web/{name}.py" for name in own}
    web |= {f"testbed/metrics/{name}.py" for name in ("exposition", "readings", "registry")}
    pages = {f"testbed/pages/{name}.py" for name in ("assemble", "glossary", "names", "terms", "live/page")}
    rooms = ["testbed.terminal", *(name.removesuffix(".py").replace("/", ".") for name in web | pages)]
    found = [
        f"{file} imports {name}"
        for file in sorted(web | pages)
        for name in imported((ROOT / file).read_text(), file.rpartition("/")[0].replace("/", "."))
        if top(name) in ROOMS and not any(within(name, room) for room in rooms)
    ]
    assert not found


def test_the_language_of_expectations_knows_names_of_hosts_and_nothing_else() -> None:
    known = ("testbed.expect", "testbed.errors", "topos.names")
    pure = STDLIB - MACHINE
    assert not breaches(
        "testbed/expect",
        lambda name: not any(within(name, room) for room in known) and top(name) not in pure,
    )


def test_the_planner_is_arithmetic() -> None:
    """No machine and no run: names and shapes at most, arrays, and the errors that a user meets."""
    rooms = ("testbed.planner.arithmetic", "testbed.errors", "testbed.arrays", "topos")
    assert not breaches(
        "testbed/planner/arithmetic",
        lambda name: top(name) in MACHINE or (top(name) in ROOMS and not any(within(name, room) for room in rooms)),
    )


SCENARIO = ("text", "faults", "model", "plugins", "rules", "load", "cells")
"""The folders of testbed/scenario, from low to high."""


def test_the_folders_of_scenarios_stand_in_one_order() -> None:
    within_it = "testbed.scenario"
    found = []
    for floor, folder in enumerate(SCENARIO):
        above = [f"{within_it}.{name}" for name in SCENARIO[floor + 1 :]]
        found += breaches(
            f"testbed/scenario/{folder}",
            lambda name, above=above: any(within(name, room) for room in above),  # type: ignore[misc]
        )
    assert not found
    assert {path.name for path in (ROOT / "testbed/scenario").iterdir() if path.is_dir()} >= set(SCENARIO)


def test_scenarios_are_read_without_the_checks() -> None:
    """They are below them: a check reads the scenario of a run, never the other way round."""
    assert not breaches("testbed/scenario", lambda name: within(name, "testbed.checks"))


def test_a_run_that_goes_on_is_heard_without_the_checks() -> None:
    """A mapper hears, while a run goes on, the evidence that checks hear when it is over."""
    assert not breaches("testbed/runner", lambda name: within(name, "testbed.checks"))


def test_checks_know_what_stands_below_them() -> None:
    below = ("checks", "errors", "evidence", "expect", "mapper", "rundir", "scenario", "transports", "workloads")
    rooms = ("topos", *(f"testbed.{room}" for room in below))
    assert not breaches(
        "testbed/checks", lambda name: top(name) in ROOMS and not any(within(name, room) for room in rooms)
    )


def test_faults_do_not_know_the_checks() -> None:
    assert not breaches("testbed/faults", lambda name: within(name, "testbed.checks"))


def test_scenarios_do_not_know_how_faults_are_done() -> None:
    assert not breaches("testbed/scenario", lambda name: within(name, "testbed.faults"))


def test_checks_know_neither_faults_nor_the_machine() -> None:
    rooms = ("testbed.faults", "testbed.fabric", "subprocess")
    assert not breaches("testbed/checks", lambda name: any(within(name, room) for room in rooms))


@pytest.mark.parametrize(
    ("source", "package", "names"),
    [
        ("import a.b, c", "x", ["a.b", "c"]),
        ("from a.b import c as d", "x", ["a.b.c"]),
        ("from mrc_testbed.testbed import checks", "testbed.faults", ["testbed.checks"]),
        ("from . import y", "x.z", ["x.z.y"]),
        ("from ..checks import run", "testbed.faults", ["testbed.checks.run"]),
        ("def f():\n    import socket", "x", ["socket"]),
    ],
)
def test_the_reader_sees_every_form_of_import(source: str, package: str, names: list[str]) -> None:
    assert list(imported(source, package)) == names
