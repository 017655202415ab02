"""Switches, transceivers, links, latency and what fails how often: the shipped list, and a user's over it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import inf
from typing import Any

from mrc_testbed.testbed.errors import Problem, UsageError
from mrc_testbed.testbed.planner.arithmetic.numbers import LARGEST, MarkedNumber, Provenance
from mrc_testbed.testbed.planner.arithmetic.quantities import rate_gbps

SHIPPED = "parts.toml"
LEAST_CHECKPOINT_S = 1e-3
"""What writing a checkpoint costs at least: Young's interval needs one."""
_KEYS = {
    "switch": {"name", "logical_ports", "watts"},
    "transceiver": {"rate", "watts"},
    "link": {"lane", "lasers_a_lane"},
    "latency": {"one_switch", "three_switches"},
    "qp": {"evs"},
    "failures": {"nic_link", "nic_transceiver", "t0", "t1", "alone", "flaps", "other"},
    "job": {"exposed", "checkpoint", "restart", "repair", "rtt", "step"},
    "recovery": {"mrc", "mrc_timeout", "bfd", "bgp_carrier", "bgp_hold", "nic_retries"},
}
_MONTHLY = ("nic_link", "nic_transceiver", "t0", "t1")
_UNITS = {
    **{"logical_ports": "ports", "watts": "W", "lasers_a_lane": "lasers", "evs": "EVs"},
    **{"one_switch": "us", "three_switches": "us", "rtt": "us", "mrc": "RTT", "exposed": "of a step"},
    **dict.fromkeys(_MONTHLY, "% a month"),
    **{"alone": "failures a link", "flaps": "a minute", "other": "in 1000 GPU-days"},
}
"""Of numbers; those that are not here are durations in s."""
_LIMITS = {
    **{"exposed": (0.0, 1.0), "alone": (0.0, 1.0), "checkpoint": (LEAST_CHECKPOINT_S, inf), "step": (1e-3, inf)},
    **dict.fromkeys(_MONTHLY, (0.0, 100.0)),
}
"""What numbers may be, where not anything from 0 on."""
_NAMED = ("switch", "transceiver")
"""Tables that hold one table a part."""
_FIELDS = {"value", "low", "high", "mark", "source"}


@dataclass(frozen=True, slots=True)
class SwitchPart:
    """A switch. `capacity_gbps`: of all its ports, one direction; `watts` without transceivers."""

    name: str
    capacity_gbps: int
    logical_ports: MarkedNumber
    watts: MarkedNumber


@dataclass(frozen=True, slots=True)
class Transceiver:
    """A pluggable module, one on each end of a fibre."""

    rate_gbps: int
    watts: MarkedNumber


@dataclass(frozen=True, slots=True)
class PartsList:
    """Everything that designs are made of, and what befalls them. `latency`: through one switch, and through three.
    `failures`: the numbers of [failures] and [job]; `recovery`: those of [recovery]."""

    switches: Mapping[str, SwitchPart]
    transceivers: Mapping[str, Transceiver]
    lane_gbps: int
    lasers_a_lane: MarkedNumber
    latency: tuple[MarkedNumber, MarkedNumber]
    evs: MarkedNumber
    failures: Mapping[str, MarkedNumber]
    recovery: Mapping[str, MarkedNumber]


def shipped_text() -> str:
    """The list that lies beside the code."""
    return files("mrc_testbed.testbed.planner.arithmetic").joinpath(SHIPPED).read_text(encoding="utf-8")


def load_parts(text: str = "", file: str = SHIPPED) -> PartsList:
    """The shipped parts with those of `text` over them, a table of numbers at a time. `file`: named in errors and as
    the source of plain numbers. Raises UsageError with the place of a mistake."""
    shipped = _Reader(shipped_text(), SHIPPED)
    own = _Reader(text, file)
    tables = {name: {**shipped.table(name), **own.table(name)} for name in _KEYS}
    own.refuse_others(_KEYS)
    switches = _own_spelling(tables["switch"], own.table("switch"))
    return PartsList(
        switches={_capacity_name(name, own): _switch(name, one, own) for name, one in switches.items()},
        transceivers={name: _transceiver(name, one, own) for name, one in tables["transceiver"].items()},
        lane_gbps=own.rate("link.lane", tables["link"].get("lane")),
        lasers_a_lane=tables["link"]["lasers_a_lane"],
        latency=(tables["latency"]["one_switch"], tables["latency"]["three_switches"]),
        evs=tables["qp"]["evs"],
        failures={**tables["failures"], **tables["job"]},
        recovery=tables["recovery"],
    )


def _own_spelling(switches: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A switch is the same one however its capacity is written, `51.2t` or `51.2T`: the user's is taken."""
    spelled = {name.lower(): name for name in own}
    return {name: switches[name] for name in dict.fromkeys(spelled.get(each.lower(), each) for each in switches)}


def _capacity_name(name: str, reader: _Reader) -> str:
    reader.rate(f"switch.{name}", name)
    return name


def _switch(name: str, table: Mapping[str, Any], reader: _Reader) -> SwitchPart:
    for key in ("logical_ports", "watts"):
        reader.need(f"switch.{name}", table, key)
    capacity = reader.rate(f"switch.{name}", name)
    return SwitchPart(str(table.get("name", name)), capacity, table["logical_ports"], table["watts"])


def _transceiver(name: str, table: Mapping[str, Any], reader: _Reader) -> Transceiver:
    for key in ("rate", "watts"):
        reader.need(f"transceiver.{name}", table, key)
    return Transceiver(reader.rate(f"transceiver.{name}.rate", table["rate"]), table["watts"])


class _Reader:
    """One TOML text; its numbers become marked ones, and its mistakes have a place."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._lines = text.splitlines()
        try:
            self._content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"line (\d+), column (\d+)", str(error))
            line, column = map(int, found.groups()) if found else (max(len(self._lines), 1), 1)
            said = str(error).partition(" (at")[0]
            raise UsageError(str(Problem(file, line, column, "--parts", f"not TOML: {said}"))) from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
            raise UsageError(str(Problem(file, 1, 1, "--parts", f"not TOML that can be read: {error}"))) from None

    def refuse_others(self, known: Mapping[str, set[str]]) -> None:
        for name in self._content:
            if name not in known:
                raise self.mistake(name, f"no such table; there are {', '.join(known)}")

    def table(self, name: str) -> dict[str, Any]:
        """A table of numbers, or of parts with their tables of numbers."""
        found = self._content.get(name, {})
        if not isinstance(found, dict):
            raise self.mistake(name, f"write a table, [{name}]")
        if name not in _NAMED:
            return self._numbers(name, name, found)
        for part, one in found.items():
            if not isinstance(one, dict):
                raise self.mistake(f"{name}.{part}", f'write a table a part, as in [{name}."{part}"]')
        return {part: self._numbers(name, f"{name}.{part}", one) for part, one in found.items()}

    def _numbers(self, kind: str, place: str, table: Mapping[str, Any]) -> dict[str, Any]:
        for key in table:
            if key not in _KEYS[kind]:
                raise self.mistake(f"{place}.{key}", f"no such key; there are {', '.join(sorted(_KEYS[kind]))}")
        words = {"name", "rate", "lane"}
        return {
            key: value if key in words else self._number(f"{place}.{key}", value, key) for key, value in table.items()
        }

    def _number(self, place: str, given: Any, key: str) -> MarkedNumber:
        unit = _UNITS.get(key, "s")
        entry = given if isinstance(given, dict) else {"value": given}
        if unknown := sorted(entry.keys() - _FIELDS):
            raise self.mistake(place, f"{unknown[0]} is none of {', '.join(sorted(_FIELDS))}")
        value: Any = entry.get("value")
        low: Any = entry.get("low", value)
        high: Any = entry.get("high", value)
        if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, low, high)):
            raise self.mistake(place, f"write a number of {unit}, or {{ value = 15, low = 14, high = 16 }}")
        if not 0 <= low <= value <= high <= LARGEST:
            raise self.mistake(place, f"low <= value <= high, and none below 0; here {low}, {value}, {high}")
        least, most = _LIMITS.get(key, (0.0, inf))
        if not least <= low <= high <= most:
            raise self.mistake(place, f"{least:g} to {most:g} {unit}; here {low}, {value}, {high}")
        return MarkedNumber(value, unit, self._mark(place, entry), str(entry.get("source", self.file)), low, high)

    def _mark(self, place: str, entry: Mapping[str, Any]) -> Provenance:
        word = entry.get("mark", Provenance.GIVEN.value)
        if word not in {mark.value for mark in Provenance}:
            raise self.mistake(place, f"mark {word!r} is none of {', '.join(mark.value for mark in Provenance)}")
        return Provenance(word)

    def need(self, place: str, table: Mapping[str, Any], key: str) -> None:
        if key not in table:
            raise self.mistake(place, f"has no {key}; add it")

    def rate(self, place: str, text: Any) -> int:
        try:
            return rate_gbps(str(text), "")
        except UsageError as error:
            raise self.mistake(place, str(error).strip()) from None

    def mistake(self, place: str, message: str) -> UsageError:
        return UsageError(str(Problem(self.file, *self._where(place), place, message)))

    def _where(self, place: str) -> tuple[int, int]:
        """Line and column of a key, or of the last table above it that is there."""
        wanted, table, best = place.replace('"', ""), "", (1, 1)
        for number, line in enumerate(self._lines, 1):
            head, key = re.match(r"\s*\[([^]]+)\]", line), re.match(r'\s*([\w."-]+)\s*=', line)
            if head:
                table = head[1].replace('"', "").strip()
                best = (number, head.start(1) + 1) if f"{wanted}.".startswith(f"{table}.") else best
            elif key and f"{table}.{key[1]}".strip(".").replace('"', "") == wanted:
                return number, key.start(1) + 1
        return best
