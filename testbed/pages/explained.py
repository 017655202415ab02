"""Terms of the glossary in a text of lessons: each gets its definition where it is used first. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mrc_testbed.testbed.pages.glossary import TERMS, definition
from mrc_testbed.testbed.pages.markdown import Node

_WORDS = (
    *("plane", "uplink", "goodput", "incast", "cack", "denylist", "probe", "trim", "retransmission", "fair share"),
    *("step time", "warm-up", "grey failure", "inconclusive", "kept time", "port program", "virtual queue", "carrier"),
)
"""Those in small letters that mean nothing else in a lesson, as `link` and `window` may."""
_TOO_SHORT = ("T", "n/a")
_KNOWN = [name for name in TERMS if name in _WORDS or (name.lower() != name and name not in _TOO_SHORT)]
_TERM = re.compile(rf"(?<![\w/.-])({'|'.join(sorted(map(re.escape, _KNOWN), key=len, reverse=True))})(s?)(?![\w/-])")
_AS_IT_IS = ("pre", "code", "a", "h2", "h3", "h4", "h5", "h6", "th")


class Explained:
    """Explains each term once, in all that is handed to `nodes`."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def nodes(self, given: Sequence[Node]) -> list[Node]:
        """The same nodes, with `abbr` around terms."""
        return [made for node in given for made in self._node(node)]

    def _node(self, node: Node) -> Iterator[Node]:
        if isinstance(node, str):
            yield from self._text(node)
        elif node[0] in _AS_IT_IS:
            yield node
        else:
            yield [node[0], node[1], *self.nodes(node[2:])]

    def _text(self, text: str) -> Iterator[Node]:
        at = 0
        for found in _TERM.finditer(text):
            name = found[1]
            if name not in self._seen:
                self._seen.add(name)
                yield text[at : found.start()]
                yield ["abbr", {"class": "term", "tabindex": "0", "title": definition(name)}, found[0]]
                at = found.end()
        yield text[at:]
