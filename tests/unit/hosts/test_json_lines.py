"""JSON in one line is what the standard library makes of it, with its encoder in C and without."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts import json_lines

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text() | st.integers(), inside) | st.tuples(inside),
)


@given(VALUES)
def test_a_line_is_that_of_the_standard_library(value: Any) -> None:
    assert json_lines.as_line(value) == json.dumps(value, separators=(",", ":"))


def test_what_json_has_no_text_for_is_refused() -> None:
    with pytest.raises(TypeError, match="set is not JSON serializable"):
        json_lines.as_line({"peers": {1}})


@pytest.fixture
def without_c(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    importlib.reload(json_lines)
    yield
    monkeypatch.undo()
    importlib.reload(json_lines)


@pytest.mark.usefixtures("without_c")
def test_without_an_encoder_in_c_lines_are_the_same() -> None:
    assert json_lines.as_line({"a": [1, "\N{LATIN SMALL LETTER A WITH ACUTE}"]}) == '{"a":[1,"\\u00e1"]}'
