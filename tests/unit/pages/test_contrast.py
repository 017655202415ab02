"""The colours of pages can be read: WCAG AA, 4.5 for text and 3 for what is drawn, in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mrc_testbed.testbed.pages

CSS = (Path(mrc_testbed.testbed.pages.__file__).parent / "base.css").read_text(encoding="utf-8")
PAPERS = ("page", "panel", "sunk")
"""And `band`: the page under a fault's band, which lines cross."""
TEXTS = [
    *((ink, paper) for ink in ("ink", "ink-2") for paper in (*PAPERS, "band")),
    *((word, paper) for word in ("focus", "pass", "fail", "unknown") for paper in PAPERS),
    *((word, f"{word}-bg") for word in ("pass", "fail", "unknown")),
    ("on-fault", "fault-bar"),
]
DRAWN = [
    (token, paper)
    for paper in ("page", "panel", "band")
    for token in (
        *(f"ev-{state}" for state in ("good", "skip", "bad", "denied")),
        *("up", "broken", "lossy", "slow", "fault-bar", "focus"),
        *(f"plane-{number}" for number in range(7)),
    )
]


def over(band: str, paper: str) -> str:
    """What rgba(r, g, b, a) looks like on a paper."""
    *parts, alpha = (float(part) for part in band.split(","))
    below = [int(paper[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(
        f"{round(alpha * part + (1 - alpha) * under):02x}" for part, under in zip(parts, below, strict=True)
    )


def themes() -> dict[str, dict[str, str]]:
    light_text, dark_text = CSS.split("@media screen and (prefers-color-scheme: dark)", 1)
    light, dark = (dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", text)) for text in (light_text, dark_text))
    bands = (re.findall(r"--fault-band:\s*rgba\(([^)]+)\)", text)[0] for text in (light_text, dark_text))
    found = {"light": light, "dark": {**light, **dark}}
    return {
        name: {**found[name], "band": over(band, found[name]["page"])} for name, band in zip(found, bands, strict=True)
    }


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other: str) -> float:
    dark, bright = sorted((luminance(colour), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_the_formula_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    colours = themes()[theme]
    assert {pair for pair in TEXTS if contrast(colours[pair[0]], colours[pair[1]]) < 4.5} == set()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_can_be_seen(theme: str) -> None:
    colours = themes()[theme]
    assert {pair for pair in DRAWN if contrast(colours[pair[0]], colours[pair[1]]) < 3} == set()
