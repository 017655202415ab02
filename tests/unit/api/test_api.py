"""mrc_testbed.api: what users may import stays as it is, and what we tell them to import is of it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from make_api import PAGE, text
from mrc_testbed import api
from tests.unit.api.api_signatures import FILE, lines

ROOT = Path(__file__).parents[3]
DOCS = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.py"))
ALLOWED = {"mrc_testbed.testbed.wireview.layers", "mrc_testbed.verbs", "mrc_testbed.torch"}
"""Layers of scapy, which need scapy and are documented as what they are (docs/wireshark.md)."""
RENEW = (
    "renew it by `.venv/bin/python tests/unit/api/api_signatures.py`; the changelog says what went, for it breaks users"
)


def test_names_and_signatures_are_those_that_were_promised() -> None:
    promised = FILE.read_text(encoding="utf-8").splitlines()
    assert lines() == promised, RENEW


def test_every_name_is_where_the_table_says_and_says_what_it_is() -> None:
    assert sorted(api.__all__) == dir(api)
    for name in api.__all__:
        value = getattr(api, name)
        assert isinstance(value, int) or (getattr(value, "__doc__", None) or "").strip(), name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = api.Nothing


def test_the_page_has_a_row_for_each_name() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(api.__all__)


def test_the_reference_is_that_of_the_docstrings() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "run: python tools/make_api.py"


def ours(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("mrc_testbed"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mrc_testbed"):
            # What the package itself gives are its modules.
            whole = node.module == "mrc_testbed"
            yield from (f"mrc_testbed.{each.name}" if whole else str(node.module) for each in node.names)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.name)
def test_examples_import_nothing_else_of_ours(file: Path) -> None:
    assert set(ours(file.read_text(encoding="utf-8"))) <= {"mrc_testbed.api"}


def test_pages_tell_nobody_to_import_anything_else_of_ours() -> None:
    said = [line for page in DOCS for line in re.findall(r"^(?:from|import) mrc_testbed\S*.*$", page.read_text(), re.M)]
    assert said
    found = {name for line in said for name in ours(line.partition("  #")[0])}
    assert found <= {"mrc_testbed.api", *ALLOWED}


def test_a_daemon_that_loads_a_plugin_loads_little() -> None:
    """The standard library and our own: hosts have nothing else."""
    program = (
        "import sys; from mrc_testbed.api import NO_PLANE, EvSelection;"
        "print([name for name in ('pydantic', 'pandas', 'mrc_testbed.testbed') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"
