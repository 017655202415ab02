"""The effective text of a scenario, as it is run: written into the run folder, so that the run can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from testbed.errors import ScenarioError
from testbed.scenario.matrix import MATRIX
from testbed.scenario.source import Override, Source, apply_override
from testbed.scenario.yaml_text import parse_source

WIDTH = 200
"""Longer lines would be folded."""


def effective_text(source: Source, overrides: Sequence[Override], data: Any) -> str:
    """The file's own text, or, with overrides, the same with comments kept and values replaced. Without the key
    `matrix`: what was run is one cell of it.

    `data` is what the text must mean. Where comments cannot be kept without changing that (an override reached into
    an alias, or replaced a list that held comments), the comments are given up.
    """
    if not overrides and MATRIX not in source.data:
        return source.text
    yaml = _writer()
    document = yaml.load(source.text)
    for change in overrides:
        apply_override(document, change)
    document.pop(MATRIX, None)
    text = _dumped(yaml, document)
    return text if _means(text, data) else _dumped(_writer(), data)


def _means(text: str, data: Any) -> bool:
    """Comments in the middle of what was replaced can come out so that the text is not even YAML any more."""
    try:
        return bool(parse_source(text, "scenario.yaml").data == data)
    except ScenarioError:
        return False


def _writer() -> YAML:
    yaml = YAML(pure=True)
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dumped(yaml: YAML, document: Any) -> str:
    out = StringIO()
    yaml.dump(document, out)
    return out.getvalue()
