"""Mermaid's state diagrams as tables: a browser draws Mermaid only with a script from another server."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.M | re.S)
_STEP = re.compile(r"^ *(\S+) --> (\w+)(?:: (.*))?$", re.M)


def tabled(text: str) -> str:
    """Markdown with a table, one row a transition, for each state diagram."""
    return _FENCE.sub(lambda fence: _table(fence[1]), text)


def _table(steps: str) -> str:
    rows = [f"| {'(new)' if old == '[*]' else old} | {on} | {new} |" for old, new, on in _STEP.findall(steps)]
    return "\n".join(["| state | on | next state |", "|---|---|---|", *rows])
