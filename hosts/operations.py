"""Operations of rank programs, read and checked (docs/architecture.md, "The control channel").

A mistake in a program is an answer to `load`, not a crash in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TAGS = 4096
"""Immediates that a step has for itself on each QP."""

PARAMETERS: dict[str, tuple[str, ...]] = {
    "begin": ("step",),
    "compute": ("ns",),
    "put": ("qp", "step", "place", "length", "remote_offset", "message_bytes", "tag"),
    "forward": ("qp", "step", "source", "offset", "length", "remote_offset", "message_bytes", "tag"),
    "signal": ("qp", "step", "tag"),
    "wait": ("qp", "step", "tag"),
    "take": ("qp", "step", "tag"),
    "mark": ("number",),
    "until": ("number",),
    "xor": ("qp", "offset", "length", "step", "place"),
    "drain": ("qp",),
    "check": ("qp", "offset", "length", "step", "place", "ranks"),
    "end": ("step",),
    "repeat": ("times", "every", "body"),
    "send": ("qp", "message_bytes", "slots", "depth", "after_ns", "for_ns", "messages"),
    "receive": ("qp", "message_bytes", "slots", "depth"),
    "send_flows": ("qps", "message_bytes", "slots", "depth", "flows"),
    "receive_flows": ("qp", "message_bytes", "slots", "depth", "sizes"),
}
"""What each operation takes; `together` takes any number of lists of operations."""
TOGETHER = "together"
REPEAT = "repeat"
_TEXT = {"qp", "source"}
_POSITIVE = {"message_bytes", "slots", "depth", "every"}
_OPTIONAL = {("send", "for_ns")}
_LISTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "ranks": ("integers of 0 or more", lambda each: type(each) is int and each >= 0),
    "qps": ("strings", lambda each: type(each) is str),
    "sizes": ("integers of 1 or more", lambda each: type(each) is int and each >= 1),
    "flows": ("[start_ns, bytes], integers of 0 and of 1 or more", lambda each: _is_flow(each)),
}
"""Parameters that are lists, none of them empty, and what is in them."""
_REGION = {"forward": "source", "xor": "qp", "check": "qp"}
"""The QP whose region an operation reads or changes from `offset` on."""
_RECEIVING = ("receive", "receive_flows")
"""What puts messages into slots of a region."""


class ProgramError(Exception):
    """A program that cannot be run, or that met an immediate it did not expect. The text is for the user."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`values` are in the order of PARAMETERS, the body of a `repeat` and the branches of a `together` read likewise.

    `step_at` is the index of the step among them, -1 where there is none.
    """

    name: str
    values: tuple[Any, ...]
    step_at: int = -1

    def after(self, steps: int) -> tuple[Any, ...]:
        """The values `steps` steps after those that the program was written with."""
        at = self.step_at
        return (*self.values[:at], self.values[at] + steps, *self.values[at + 1 :]) if at >= 0 else self.values

    @property
    def qps(self) -> list[str]:
        """The QPs at whose inputs it may go on."""
        return list(self.argument("qps")) if self.name == "send_flows" else [self.argument("qp")]

    def argument(self, parameter: str) -> Any:
        """The value by name. Raises ValueError for one that the operation does not have."""
        return self.values[PARAMETERS[self.name].index(parameter)]


Operations = tuple[Operation, ...]
RegionSize = Callable[[str], int]
"""Bytes of this side's region of a QP. Raises KeyError for an unknown QP."""


def read_operations(raw: Any, where: str, region_size: RegionSize, repeated: bool = False) -> Operations:
    """A list of operations as it came, `where` in the program. Raises ProgramError."""
    require(isinstance(raw, list), f"{where} must be a list of operations")
    found = []
    for number, one in enumerate(raw):
        place = f"{where}, operation {number}"
        try:
            require(
                isinstance(one, list) and one != [] and type(one[0]) is str,
                "must be a list of its name and its arguments",
            )
            name, *values = one
            require(
                name in PARAMETERS or name == TOGETHER,
                f"unknown operation; known operations: {', '.join(PARAMETERS)}, {TOGETHER}",
            )
        except ProgramError as error:
            raise ProgramError(f"{place} {one!r}: {error}") from error
        if name == TOGETHER:
            branches = (
                read_operations(branch, f"{place}, branch {index}", region_size, repeated)
                for index, branch in enumerate(values)
            )
            found.append(Operation(TOGETHER, tuple(branches)))
        else:
            found.append(_read(name, values, place, region_size, repeated))
    return tuple(found)


def _read(name: str, values: list[Any], place: str, region_size: RegionSize, repeated: bool) -> Operation:
    parameters = PARAMETERS[name]
    try:
        require(len(values) == len(parameters), f"takes {len(parameters)} arguments: {', '.join(parameters)}")
        arguments = dict(zip(parameters, values, strict=True))
        for parameter, value in arguments.items():
            _check_value(name, parameter, value)
        _check_memory(name, arguments, region_size)
        require(name != REPEAT or not repeated, "repeat must not contain another repeat")
    except ProgramError as error:
        raise ProgramError(f"{place} {[name, *values]!r}: {error}") from error
    if name == REPEAT:
        body = read_operations(arguments["body"], place, region_size, repeated=True)
        return Operation(name, (arguments["times"], arguments["every"], body))
    return Operation(name, tuple(values), parameters.index("step") if "step" in parameters else -1)


def _check_value(name: str, parameter: str, value: Any) -> None:
    if parameter in _TEXT:
        require(type(value) is str, f"{parameter} must be a string")
    elif parameter in _LISTS:
        what, good = _LISTS[parameter]
        require(
            isinstance(value, list) and value != [] and all(map(good, value)), f"{parameter} must be a list of {what}"
        )
    elif parameter != "body" and (value is not None or (name, parameter) not in _OPTIONAL):
        least = int(parameter in _POSITIVE)
        require(type(value) is int and value >= least, f"{parameter} must be an integer of {least} or more")
    if parameter == "tag":
        require(value < TAGS, f"tag must be less than {TAGS}")


def _check_memory(name: str, arguments: dict[str, Any], region_size: RegionSize) -> None:
    sizes = {parameter: _size(arguments[parameter], region_size) for parameter in _TEXT & arguments.keys()}
    for qp in arguments.get("qps", ()):
        _size(qp, region_size)
    if name in _REGION:
        end = arguments["offset"] + arguments["length"]
        size = sizes[_REGION[name]]
        require(end <= size, f"the operation ends at byte {end}, but the region has {size} bytes")
    if name in _RECEIVING:
        end = arguments["slots"] * arguments["message_bytes"]
        require(end <= sizes["qp"], f"the slots end at byte {end}, but the region has {sizes['qp']} bytes")
    if "slots" in arguments:
        require(arguments["depth"] < arguments["slots"], "slots must be greater than depth")


def _is_flow(value: Any) -> bool:
    whole = isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)
    return whole and value[0] >= 0 and value[1] >= 1


def _size(qp: str, region_size: RegionSize) -> int:
    try:
        return region_size(qp)
    except KeyError:
        raise ProgramError(f"unknown QP {qp!r}") from None


def require(condition: bool, otherwise: str) -> None:
    """Raises ProgramError with `otherwise` when the condition does not hold."""
    if not condition:
        raise ProgramError(otherwise)
