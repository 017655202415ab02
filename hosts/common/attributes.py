"""What a peer says of its QP, checked before it is believed."""

from __future__ import annotations

from collections.abc import Mapping

from mrc_testbed.hosts.common.errors import PeerAttributeError


def check_integers(values: Mapping[str, object], ranges: Mapping[str, tuple[int, int]]) -> None:
    """`ranges`: least and most of each attribute. Raises `PeerAttributeError` for the first that is out of its own. It
    reads values before they have a type: the compiled core takes `true` for 1, and other types with a TypeError."""
    for name, (least, most) in ranges.items():
        value = values.get(name, least)
        if type(value) is not int or not least <= value <= most:
            raise PeerAttributeError(name, value, f"an integer from {least} to {most}")
