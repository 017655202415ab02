"""The modules of the core can be read one after the other: their imports form no loop, not even those for types."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def module_of(path):
    parts = ("mrc_testbed", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source, known):
    """Modules among `known` that the source imports, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            yield from {name, name.rpartition(".")[0]} & known


def order(sources):
    """Every module after those that it imports. Raises CycleError."""
    known = set(sources)
    return list(TopologicalSorter({name: set(imports(text, known)) for name, text in sources.items()}).static_order())


def test_the_imports_of_the_core_form_no_loop():
    sources = {module_of(path): path.read_text() for path in (ROOT / "hosts/mrc").rglob("*.py")}
    reading = order(sources)
    assert len(reading) == len(sources) > 30
    assert reading[-1] == "mrc_testbed.hosts.mrc.transport"


def test_a_loop_through_types_is_seen():
    types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mrc_testbed.hosts.mrc.b import B"
    with pytest.raises(CycleError):
        order({"mrc_testbed.hosts.mrc.a": types, "mrc_testbed.hosts.mrc.b": "from mrc_testbed.hosts.mrc import a"})
