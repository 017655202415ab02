"""The state diagrams of docs/protocol.md, drawn from the tables of the code.

    .venv/bin/python -m tests.sim.diagrams

writes them into the document, each between its own pair of comments (`test_transitions.py` compares).
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.common import qpstate
from mrc_testbed.hosts.common.transitions import diagram
from mrc_testbed.hosts.mrc import evstate, portstate

DOCUMENT = Path(__file__).parents[2] / "docs/protocol.md"
MACHINES: dict[str, tuple[Any, Enum]] = {
    "QP": (qpstate.TRANSITIONS, qpstate.QpState.RESET),
    "EV": (evstate.TRANSITIONS, evstate.EvState.GOOD),
    "port": (portstate.TRANSITIONS, portstate.PortState.UP),
}


def drawn(text):
    """The document with every diagram drawn again. ValueError for one that has no place in it."""
    for name, (table, first) in MACHINES.items():
        begin, end = f"<!-- diagram: {name} -->\n", "<!-- end of diagram -->"
        figure = f"{begin}```mermaid\n{diagram(table, first)}```\n{end}"
        text, places = re.subn(f"{begin}.*?{end}", lambda _, figure=figure: figure, text, flags=re.DOTALL)  # type: ignore[misc]
        if places != 1:
            raise ValueError(f"{DOCUMENT.name} has {places} places for the diagram of {name}")
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(drawn(DOCUMENT.read_text()))
