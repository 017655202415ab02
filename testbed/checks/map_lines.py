"""map.jsonl of a run as typed data: what the mapper said while the run went on, and what its policy did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.mapper import MapAction, MapChange
from mrc_testbed.testbed.rundir.files import RecordError, read_lines
from mrc_testbed.testbed.rundir.lines import MAP


@dataclass(frozen=True, slots=True)
class MapDecision:
    """The policy did something with what was accused. `op`: deny, allow or keep, for the reason `why`."""

    t_ns: int
    op: str
    name: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class MapRecord:
    """What is in the file, in order of time."""

    changes: tuple[MapChange, ...] = ()
    decisions: tuple[MapDecision, ...] = ()


def read_map(folder: Path) -> MapRecord:
    """Of a run folder; empty without the file. Raises RecordError."""
    path, said = folder / MAP.file, set(MapAction)
    changes, decisions = [], []
    for row in read_lines(path):
        try:
            if row["op"] in said:
                changes.append(_change(row))
            else:
                decisions.append(
                    MapDecision(int(row["t_ns"]), str(row["op"]), str(row["component"]), str(row.get("why") or ""))
                )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RecordError(path, f"a line lacks or misspells {error}: {row}") from None
    return MapRecord(tuple(changes), tuple(decisions))


def _change(row: Mapping[str, Any]) -> MapChange:
    direction = row.get("direction")
    if direction not in (None, "up", "down"):
        raise ValueError(f"direction {direction!r}")
    return MapChange(
        *(int(row["t_ns"]), MapAction(row["op"]), str(row["component"]), direction),
        *(float(row["loss"]), float(row["gain"]), int(row["since_ns"]), int(row["last_ns"])),
        *(tuple(map(str, row["alike"])), float(row["sure"]), tuple(map(Witness, row["evidence"]))),
        tuple(map(str, row["hosts"])),
    )
