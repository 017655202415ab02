"""The protocols that a daemon can speak, by the value of `transport` in `configure`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PROTOCOLS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("mrc", "mrc-hashed"), "mrc.transport"),
        "roce": "rc.transport",
        **dict.fromkeys(("tcp", "mptcp"), "ktcp.transport"),
    }
)
"""The module below hosts/ that has a function of this name, with underscores."""
USUAL = "mrc"
"""What `transport` is where it is left out."""
