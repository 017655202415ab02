"""The parts of Mininet that the fabric uses, loaded without setuptools.

Mininet 2.3 asks distutils for one class, with which it compares versions of Open vSwitch. By that name setuptools is
loaded, which takes longer than all of Mininet; no run here has an Open vSwitch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_NAMES = ("distutils", "distutils.version")


def _strict_version(text: str) -> Any:
    """The class itself, once somebody compares versions."""
    from distutils.version import StrictVersion

    return StrictVersion(text)


@contextmanager
def _distutils_later() -> Iterator[None]:
    """In the block distutils is there and loads nothing; behind it, it is what it was."""
    before = {name: sys.modules[name] for name in _NAMES if name in sys.modules}
    stand_ins = {name: ModuleType(name) for name in _NAMES}
    stand_ins["distutils.version"].StrictVersion = _strict_version  # type: ignore[attr-defined]
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in _NAMES:
            del sys.modules[name]
        sys.modules.update(before)


with _distutils_later():
    from mininet import log
    from mininet.link import Intf, Link
    from mininet.net import Mininet
    from mininet.node import Node

__all__ = ["Intf", "Link", "Mininet", "Node", "log"]
