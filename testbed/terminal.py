"""Text for people on a terminal. It may come from a file that somebody sent: a terminal obeys control characters.

All output goes through `say` or through the console of testbed/report/console.py; a test forbids ways round them.
"""

from __future__ import annotations

import re
import sys

_OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 but for tab and end of line, DEL, C1, other ends of lines, and the controls of Unicode that turn the direction of
text (UAX 9), so that it reads as another."""
_SHOWN = "\N{REPLACEMENT CHARACTER}"


def plain(text: str) -> str:
    """The text with a sign in place of each character that a terminal obeys."""
    return _OBEYED.sub(_SHOWN, text)


def say(text: object = "", err: bool = False, end: str = "\n") -> None:
    """Print a text on standard output, or on standard error, at once."""
    print(plain(str(text)), end=end, file=sys.stderr if err else sys.stdout, flush=True)
