"""What the daemon does not do for a program, and when it ends the program's connection."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from mrc_testbed.hosts.common.errors import CoreError


class RequestRefused(Exception):
    """A request that cannot be carried out: its REPLY has `number`, an errno, and these words."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(words)
        self.number = number


class Malformed(Exception):
    """What no verbs library sends. The connection ends, and nothing else."""


@contextlib.contextmanager
def refusals(number: int = errno.EINVAL) -> Iterator[None]:
    """What the endpoint does not do is a `RequestRefused` of this errno."""
    try:
        yield
    except CoreError as error:
        raise RequestRefused(number, str(error)) from None
