"""How many examples of a property are tried."""

from __future__ import annotations

from hypothesis import settings


def examples(by_night: int) -> int:
    """All of them by night, a third by day."""
    return by_night if settings.get_current_profile_name() == "nightly" else by_night // 3
