"""A transport is a value: other code asks it for a property, and never for its name."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrc_testbed.hosts.protocols import PROTOCOLS
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.transports.registry import TRANSPORTS, USUAL, usual_packet

ROOT = Path(__file__).parents[3]
OWN = ("testbed/transports", "hosts/mrc", "hosts/rc", "hosts/ktcp")
"""Where a transport's name may decide something: its file here, and its protocol's room."""
OTHER_MEANINGS = {
    "hosts/protocols.py": "finds the module of a protocol by its name, for all alike",
    "testbed/planner/arithmetic/parts.py": "a number about MRC on paper",
    "testbed/planner/commands/plan.py": "the same number",
    "testbed/sweep/address.py": "the scheme of a URL",
    "testbed/virtual/ways.py": "IP's number of a protocol",
}
"""Files in which such a word is a key of something else."""
SMALL = """
name: small
transport: {transport}
workload: [{{sendrecv: {{size: 64KiB, iterations: 2}}}}]
"""

each = pytest.mark.parametrize("transport", TRANSPORTS.values(), ids=str)


def conditions(tree: ast.AST) -> Iterator[ast.expr]:
    """What code decides by: operands of comparisons, patterns, keys of tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.MatchValue):
            yield node.value
        elif isinstance(node, ast.Dict):
            yield from (key for key in node.keys if key is not None)


def names_in(condition: ast.expr) -> Iterator[str]:
    """Words of transports, as texts or as the values themselves."""
    values = {word.upper().replace("-", "_") for word in TRANSPORTS}
    parts = condition.elts if isinstance(condition, ast.Tuple | ast.List | ast.Set) else [condition]
    for part in parts:
        if isinstance(part, ast.Constant) and part.value in TRANSPORTS:
            yield str(part.value)
        elif isinstance(part, ast.Name) and part.id in values:
            yield part.id


def test_no_condition_outside_asks_for_the_name_of_a_transport() -> None:
    found = []
    for room in ("topos", "hosts", "testbed"):
        for path in sorted((ROOT / room).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(OWN) and file not in OTHER_MEANINGS:
                named = asked_for(path.read_text(encoding="utf-8"))
                found += [f"{file}:{line}: {name}" for line, name in named]
    assert found == []


def asked_for(source: str) -> Iterator[tuple[int, str]]:
    """(line, name) of the transports for which a source asks by name. It is read as Python where such a word is."""
    words = "|".join(TRANSPORTS)
    values = words.upper().replace("-", "_")
    if re.search(rf"""["'](?:{words})["']|\b(?:{values})\b""", source):
        yield from ((one.lineno, name) for one in conditions(ast.parse(source)) for name in names_in(one))


@pytest.mark.parametrize(
    "code",
    [
        'if kind == "roce": pass',
        'if kind in ("tcp", "mptcp"): pass',
        "if kind is MRC: pass",
        'table = {"mrc": 1}',
        'match kind:\n    case "mrc-hashed": pass',
    ],
)
def test_such_a_condition_is_seen(code: str) -> None:
    assert [name for _, name in asked_for(code)]


@each
def test_it_is_its_word_and_one_value_in_every_process(transport: Transport) -> None:
    assert transport == transport.word == f"{transport}"
    assert pickle.loads(pickle.dumps(transport)) is transport
    assert copy.deepcopy(transport) is transport


@each
def test_a_scenario_asks_it_for_all_that_it_needs(transport: Transport) -> None:
    scenario: Scenario = load_scenario_text(SMALL.format(transport=transport))
    assert scenario.transport is transport
    assert scenario.routing is transport.usual_routing
    assert scenario.layout is transport.layout
    shape = scenario.shape()
    assert (shape.payload_bytes, shape.header_bytes) == usual_packet(transport)
    assert scenario.congestion_control
    assert transport.cost.of == transport.word
    assert transport.called(scenario.own)
    assert transport.protocol in PROTOCOLS
    assert bool(transport.request(scenario.own, scenario.endpoint.settings()))


def test_the_usual_one_is_mrc() -> None:
    assert load_scenario_text(SMALL.format(transport="mrc").replace("transport: mrc\n", "")).transport is USUAL
