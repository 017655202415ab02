"""Counts of an endpoint as a flat table."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any, ClassVar


class Counted:
    """A dataclass of counts, and of tables of counts by reason; `refused`, of packets without effect, is one."""

    __slots__ = ()

    __dataclass_fields__: ClassVar[dict[str, Any]]
    refused: dict[Enum, int]

    def refuse(self, reason: Enum) -> None:
        """Count one packet that had no effect."""
        self.refused[reason] += 1

    def as_dict(self) -> dict[str, int]:
        """Flat copy; the tables become `lost_<reason>`, `retransmitted_<reason>`, `refused_<reason>`."""
        flat: dict[str, int] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, dict):
                prefix = each.name.removesuffix("_for")
                flat |= {f"{prefix}_{reason.value}": count for reason, count in value.items()}
            else:
                flat[each.name] = value
        return flat
