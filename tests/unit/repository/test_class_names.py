"""A public class name means one thing in the whole program."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
IN_TWO_PLACES = {"Incast", "Path"}
"""The core's, sans-IO, beside a scenario's entry and a way through the planned fabric."""


def public_classes(source: str) -> list[str]:
    return [
        node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_no_two_modules_define_a_public_class_of_the_same_name() -> None:
    """What programs of users import as `mrc_testbed.verbs` has the names that they expect, and is left out."""
    files = [
        path
        for room in ("topos", "hosts", "testbed")
        for path in (ROOT / room).rglob("*.py")
        if not (path.parent.name == "verbs" and path.name.startswith("client"))
    ]
    count = Counter(name for path in files for name in public_classes(path.read_text(encoding="utf-8")))
    assert {name for name, number in count.items() if number > 1} == IN_TWO_PLACES


def test_private_classes_and_those_inside_others_do_not_count() -> None:
    assert public_classes("class _A: ...\nclass B:\n    class C: ...\ndef f():\n    class D: ...") == ["B"]
