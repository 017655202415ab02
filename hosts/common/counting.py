"""Counts of an endpoint as a flat table."""

from __future__ import annotations

from dataclasses import MISSING, Field
from typing import Any, ClassVar


class Counted:
    """A dataclass of counts, and of tables of counts by reason."""

    __slots__ = ()

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_dict(self) -> dict[str, int]:
        """Flat copy; the tables become `lost_<reason>`, `retransmitted_<reason>`, `refused_<reason>`."""
        flat: dict[str, int] = {}
        for name, of_reasons in _columns(type(self)):
            value = getattr(self, name)
            if of_reasons is None:
                flat[name] = value
            else:
                flat.update(zip(of_reasons, value.values(), strict=True))
        return flat


_Columns = list[tuple[str, list[str] | None]]
_known: dict[type[Counted], _Columns] = {}


def _columns(counted: type[Counted]) -> _Columns:
    """Name of each field; for a table of counts also the name of each, in the order of its reasons."""
    if counted not in _known:
        _known[counted] = [(each.name, _of_reasons(each)) for each in counted.__dataclass_fields__.values()]
    return _known[counted]


def _of_reasons(table: Field[Any]) -> list[str] | None:
    if table.default_factory is MISSING:
        return None
    prefix = table.name.removesuffix("_for")
    return [f"{prefix}_{reason.value}" for reason in table.default_factory()]
