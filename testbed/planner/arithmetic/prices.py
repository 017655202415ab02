"""Prices of the user's; the planner has none of its own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.numbers import LARGEST

_KEYS = ("switch", "transceiver", "copper")
_FIX = 'write `currency = "USD"`, and numbers for `switch`, `transceiver` and `copper` (a cable), a unit each'


@dataclass(frozen=True, slots=True)
class Prices:
    """What one switch, one transceiver and one copper cable with the rate of a transceiver cost."""

    file: str
    currency: str
    switch: float
    transceiver: float
    copper: float

    def of(self, clos: Clos, transceivers: float, copper: float) -> float:
        """Of a whole design."""
        return self.switch * clos.switches + self.transceiver * transceivers + self.copper * copper


def load_prices(text: str, file: str, copper: bool) -> Prices:
    """Of a TOML text. `copper`: some cables are of it; else its price may be left out. Raises UsageError."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--prices {file}: not TOML: {error}") from None
    if unknown := sorted(found.keys() - {*_KEYS, "currency"}):
        raise UsageError(f"--prices {file}: {unknown[0]}: no such key; {_FIX}")
    numbers: dict[str, Any] = {key: found.get(key, None if copper or key != "copper" else 0) for key in _KEYS}
    for key, value in numbers.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LARGEST:
            raise UsageError(f"--prices {file}: {key}: not a price; {_FIX}")
    return Prices(file, str(found.get("currency", "")), **{key: float(value) for key, value in numbers.items()})
