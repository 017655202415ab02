"""Names stay whole, and whatever a text holds is shown as text."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.pages.names import whole_names


@pytest.mark.parametrize("name", ["flap-plane-0", "p0-t0-0:p0-t1-2", "h0->h4", "p1-t1-3"])
def test_a_name_is_one_word(name: str) -> None:
    shown = unescape(str(whole_names(f"during {name}, and after")))
    assert shown == f'during <span class="name">{name}</span>, and after'


@given(st.text())
def test_the_text_is_what_it_was(text: str) -> None:
    shown = str(whole_names(text))
    assert unescape(re.sub(r'<span class="name">|</span>', "", shown)) == unescape(text.replace("&", "&amp;"))
    assert "<" not in re.sub(r'<span class="name">|</span>', "", shown)
