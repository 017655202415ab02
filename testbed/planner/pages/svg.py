"""Pieces of SVG text. Pure."""

from __future__ import annotations

from markupsafe import Markup, escape

WIDTH = 340
"""Of every drawing of the page: three of them fill a screen, and one a telephone, at about the size of its text."""
COLOURS = 7
_LINES = (0, 1, 2, 3, 5, 6, 4)
"""Colours of lines, those that are alike far from each other."""
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2")


def element(tag: str, *children: str, **attributes: str | float) -> Markup:
    """An element; `_` in names of attributes is `-`, and at their end nothing. Children are escaped but for Markup."""
    named = ((name.strip("_").replace("_", "-"), value) for name, value in attributes.items())
    written = Markup("").join(Markup(' {}="{}"').format(name, _plain(value)) for name, value in named)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, Markup("").join(map(escape, children)))


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 1):g}"


def text(x: float, y: float, said: str, class_: str = "", anchor: str = "start") -> Markup:
    """A line of text."""
    return element("text", said, x=x, y=y, text_anchor=anchor, **({"class": class_} if class_ else {}))


def colour(number: int) -> str:
    """Of a plane."""
    return f"var(--plane-{number % COLOURS})"


def line_colour(number: int) -> str:
    """Of a line in a chart."""
    return colour(_LINES[number % COLOURS])


def dash(number: int) -> str:
    """Of a line, so that of two which lie on each other both are seen."""
    return _DASHES[number % len(_DASHES)]
