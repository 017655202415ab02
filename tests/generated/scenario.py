"""A seed as the text of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import Cell, load_cells
from mrc_testbed.testbed.scenario.load.effective import plain_text
from mrc_testbed.testbed.scenario.model.bgp import BgpSettings
from mrc_testbed.testbed.scenario.model.controller import ControllerSettings
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.fabric import FabricSettings
from mrc_testbed.testbed.scenario.model.families import FLAT, keys_of
from mrc_testbed.testbed.scenario.model.mapper import MapperSettings
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.paper import Paper
from mrc_testbed.testbed.scenario.model.transports import EcmpSettings, VirtualSettings
from mrc_testbed.testbed.scenario.model.trimming import TrimSettings
from mrc_testbed.testbed.transports.roce import RoceSettings
from mrc_testbed.testbed.transports.tcp import TcpSettings
from tests.generated import parts
from tests.generated.keys import mapping
from tests.generated.sketch import Sketch

LISTS = ("faults", "capture", "expect")
"""Of these a draw that the language refuses is left out: whether a path may be denied depends on all others."""
GROUPS = ("roce", "mapper")
"""Of these keys that the language refuses are left out: whether ports can fail over, and how many hosts below a T0 can
look after it, depends on the fabric."""
_TIMES = 8


class InvalidError(Exception):
    """The generator wrote what the language refuses, outside of LISTS: the generator is to be mended."""


class Drawn(NamedTuple):
    """A scenario as text, and the data files that it names."""

    text: str
    files: Mapping[str, str]


def drawn_scenario(seed: int, kernel: bool = False) -> Drawn:
    """A whole valid scenario. Raises InvalidError."""
    sketch = Sketch(seed, kernel)
    data: dict[str, Any] = {"name": f"generated-{seed}", "world": "kernel" if kernel else "virtual"}
    data |= mapping(sketch, "scenario", Scenario, never=[*COMPOSED, "time_limit"])
    data |= _sections(sketch)
    data["workload"] = parts.workload(sketch) or [{"write": {"from": "h0", "to": "h1", "bytes": "64KiB"}}]
    (cell,) = _cells_now(_valid(data, (), sketch.files))
    sketch.estimate_ns = cell.scenario.estimate_ns
    data["faults"] = parts.faults(sketch)
    data["capture"] = parts.captures(sketch)
    data["expect"] = parts.expectations(sketch)
    return _valid(data | _beside(sketch, data), LISTS, sketch.files)


def cells_of(drawn: Drawn, file: Path) -> tuple[Cell, ...]:
    """The scenario, or each of its cells; written to a file first, as a user has it, with its data beside it."""
    for name, content in drawn.files.items():
        (file.parent / name).write_text(content, encoding="utf-8")
    file.write_text(drawn.text, encoding="utf-8")
    return load_cells(file)


def _cells_now(drawn: Drawn) -> tuple[Cell, ...]:
    with TemporaryDirectory() as folder:
        return cells_of(drawn, Path(folder) / "scenario.yaml")


def _sections(sketch: Sketch) -> dict[str, Any]:
    """Fabric, transport, and the settings of all of them."""
    sizes = ("planes", *keys_of(FLAT), "family", "port_rate", "rtt")
    found: dict[str, Any] = {"fabric": mapping(sketch, "fabric", FabricSettings, always=sizes)}
    if sketch.transport != "mrc" or sketch.often(0.3):
        found["transport"] = sketch.transport
    if sketch.often(0.2):
        found["routing"] = sketch.spoken.usual_routing.value
    found["endpoint"] = mapping(sketch, "endpoint", EndpointSettings, always=("payload", "icrc"))
    settings = (("roce", RoceSettings), ("ecmp", EcmpSettings), ("tcp", TcpSettings), ("bgp", BgpSettings))
    for key, model in settings:
        if sketch.often(0.5):
            found[key] = mapping(sketch, key, model)
    if found["fabric"].get("switch") != "plain" and sketch.often(0.3):
        found["trimming"] = mapping(sketch, "trimming", TrimSettings)
    if not sketch.kernel:
        found |= {"virtual": mapping(sketch, "virtual", VirtualSettings)} if sketch.often(0.2) else {}
        found |= {"scale": sketch.one(_scales(sketch))} if sketch.often(0.3) else {}
    return found


def _scales(sketch: Sketch) -> list[Any]:
    """Those at which T keeps a microsecond and ports stay below 100 Gb/s."""
    times: dict[str | int, int] = {"real": 10**11 // sketch.rate_bps}
    times |= {number: number for number in (1, 3, 100, 8000)}
    return [
        word
        for word, speed in times.items()
        if (not sketch.rtt_ns or sketch.rtt_ns >= 1000 * speed) and sketch.rate_bps * speed <= 10**11
    ]


def _beside(sketch: Sketch, data: dict[str, Any]) -> dict[str, Any]:
    """What is about the file as a whole: its paper, its cells."""
    found: dict[str, Any] = {}
    if sketch.often(0.2) and not _denies(data):
        # Without a round trip there is no usual period.
        found["mapper"] = mapping(sketch, "mapper", MapperSettings, always=() if sketch.rtt_ns else ("period",))
    elif sketch.often(0.1) and not _denies(data) and sketch.transport == "mrc":
        found["controller"] = mapping(sketch, "controller", ControllerSettings)
    sketch.shown = len(data["expect"])
    cells = _cells(sketch, data) if sketch.often(0.1) else {}
    several = "variants" in cells  # what the paper has beside a variant is said of those that there are
    if sketch.shown and sketch.often(0.5 if several else 0.1):
        beside = ("beside",)
        found["paper"] = mapping(sketch, "paper", Paper, beside if several else (), () if several else beside)
    if sketch.often(0.2):
        found |= mapping(sketch, "scenario", Scenario, always=("time_limit",), never=[*COMPOSED, *_DRAWN_BEFORE])
    return found | cells


def _denies(data: dict[str, Any]) -> bool:
    """Whether a mapper could not: something else does, or there is one plane."""
    by_fault = any("deny" in fault for fault in data.get("faults", ()))
    return by_fault or "denylist" in data["endpoint"] or data["fabric"]["planes"] == 1


def _cells(sketch: Sketch, data: dict[str, Any]) -> dict[str, Any]:
    """A few of them: each is run."""
    found: dict[str, Any]
    if sketch.often(0.3):
        return {"matrix": {"endpoint.mpr": [sketch.dice.randint(2, 9), 16]}}
    if sketch.often(0.2):
        found = {"cases": {"usual": {}, "other": {"endpoint.trim_nack": False}}}
        return found if sketch.often(0.8) else {"case": "usual"}
    of_mrc = {"routing", "congestion_control", "ev_selection"} & {*data, *data.get("endpoint", {})}
    other = {"transport": "roce"} if not of_mrc and sketch.often(0.5) else {"endpoint.trim_nack": False}
    found = {"variants": {"usual": {}, "other": other}}
    if sketch.often(0.5):
        found["judge"] = [sketch.one(["usual", "other", sketch.transport])]
    return found if sketch.often(0.8) else {"variant": "usual", "judge": ["usual"]}


_DRAWN_BEFORE = ("about", "seed", "qps")
COMPOSED = {
    **dict.fromkeys(
        ("name", "world", "scale", "fabric", "transport", "routing", "endpoint", "trimming", "mapper", "workload"),
        "here",
    ),
    **dict.fromkeys(
        (
            "controller",
            "roce",
            "tcp",
            "ecmp",
            "bgp",
            "virtual",
            "paper",
            "matrix",
            "variants",
            "variant",
            "cases",
            "case",
            "judge",
        ),
        "here",
    ),
    "controller": "here",
    **dict.fromkeys(LISTS, "parts.py"),
    "plugins": "left out: what a plugin adds is drawn by no table of the language",
}
"""Keys of a scenario that `mapping` does not draw, and who does."""


def _valid(data: dict[str, Any], lists: tuple[str, ...], files: Mapping[str, str]) -> Drawn:
    """The scenario, without items of `lists` and without cells that the language refuses."""
    for _ in range(_TIMES):
        drawn = Drawn(plain_text(data), files)
        try:
            _cells_now(drawn)
            return drawn
        except ScenarioError as error:
            data = _without(data, error, lists)
    raise InvalidError(f"after {_TIMES} times something is still refused:\n{drawn.text}")


def _without(data: dict[str, Any], error: ScenarioError, lists: tuple[str, ...]) -> dict[str, Any]:
    """Without what is refused: items, or all that makes cells."""
    wrong: dict[str, set[int]] = {}
    for problem in error.problems:
        key, *rest = problem.path.split(".")
        if key in lists and rest:
            wrong.setdefault(key, set()).add(int(rest[0]))
        elif rest[:1] == ["denylist"]:
            endpoint = {name: value for name, value in data[key].items() if name != "denylist"}
            return data | {key: endpoint}
        elif key in GROUPS and rest:
            return data | {key: {name: value for name, value in data[key].items() if name != rest[0]}}
        elif not any(axis in data for axis in _OF_CELLS):
            raise InvalidError(f"{problem}\n{plain_text(data)}")
    if not wrong:
        return {key: value for key, value in data.items() if key not in _OF_CELLS}
    kept = {key: [item for index, item in enumerate(data[key]) if index not in bad] for key, bad in wrong.items()}
    return data | kept


_OF_CELLS = ("matrix", "variants", "variant", "cases", "case", "judge", "paper")
