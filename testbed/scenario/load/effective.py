"""The effective text of a scenario, written into the run folder, so that the run can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario.model.matrix import AXES
from mrc_testbed.testbed.scenario.text.source import Override, Source, apply_override
from mrc_testbed.testbed.scenario.text.yaml_text import STUMBLES, parse_source

WIDTH = 200
"""Longer lines would be folded."""


def effective_text(source: Source, overrides: Sequence[Override], data: Any) -> str:
    """The file's own text or, with overrides, the same with values replaced and comments kept. Without the keys
    of axes, because a run is one cell of them.

    `data` is what the text must mean. If keeping comments would change that (an override reached into an alias, or
    replaced a list that held comments) or cannot be done (a date without quotes that is none), they are dropped.
    """
    if not overrides and not any(key in source.data for key in AXES):
        return source.text
    try:
        text = _with_comments(source, overrides)
    except (YAMLError, *STUMBLES):
        return plain_text(data)
    return text if _means(text, data) else plain_text(data)


def plain_text(data: Any) -> str:
    """Plain data as YAML."""
    return _dumped(_writer(), data)


def on_one_line(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, for `plain_text` to write in braces."""
    line = CommentedMap(data)
    line.fa.set_flow_style()
    return line


def _with_comments(source: Source, overrides: Sequence[Override]) -> str:
    """Raises YAMLError and STUMBLES: here values have types, which they have not where a scenario is read."""
    yaml = _writer()
    document = yaml.load(source.text)
    for change in overrides:
        apply_override(document, change)
    for key in AXES:
        document.pop(key, None)
    return _dumped(yaml, document)


def _means(text: str, data: Any) -> bool:
    """A replacement can leave comments in places that make the text invalid YAML."""
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
