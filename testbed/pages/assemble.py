"""A page as one file: templates, styles, scripts and data go into it, and it may ask for nothing else.

The Content-Security-Policy in its head makes the browser hold it to that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mrc_testbed.testbed.pages.names import whole_names
from mrc_testbed.testbed.pages.terms import definitions, term

_PAGES = Path(__file__).resolve().parent
_OFFLINE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def assemble(
    template: str,
    values: dict[str, Any],
    data: Any,
    styles: Iterable[str] = (),
    scripts: Iterable[str] = (),
    connect_self: bool = False,
    terms: Iterable[str] = (),
) -> str:
    """The page as text.

    `template`, `styles` and `scripts` are files below this folder, as in `report/report.html`, or another room's, as in
    `planner/pages/plan.html`. Templates extend `base.html`, and the shared `base.css` and `scrolling.js` are always
    there, first and last. Values are escaped but for `Markup`; the filter `names` keeps names in a text from being
    broken at their hyphens, and `term` gives one its definition from the glossary. `terms`: those that scripts use
    (`terms.js`).
    `data` (JSON types) is found by scripts in the element `data`. `connect_self`: the page may talk to the server that
    it came from.
    """
    policy = f"{_OFFLINE}; connect-src 'self'" if connect_self else _OFFLINE
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            policy=policy,
            styles=[_text(name) for name in ("base.css", *styles)],
            scripts=[_text(name) for name in (*scripts, "scrolling.js")],
            data=_as_json(data),
            terms=_as_json(definitions(terms)),
        )
    )


@cache
def _environment() -> Environment:
    loader = FileSystemLoader((_PAGES, _PAGES.parent))
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["names"] = whole_names
    made.filters["term"] = term
    return made


def _text(name: str) -> Markup:
    made = _environment()
    assert made.loader is not None
    return Markup(made.loader.get_source(made, name)[0])


def _as_json(data: Any) -> Markup:
    """JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))
