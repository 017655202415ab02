"""The fabric of a scenario for labs: by the formats' rules, with every link, route and uSID of the plan in it once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.export.lab.lab import Lab, LabTool, lab_of
from mrc_testbed.topos import plain, usid
from mrc_testbed.topos.plan import Plan
from mrc_testbed.topos.routes import RouteKind
from mrc_testbed.topos.tables import routes_of
from tests.labs import HASHED, SMALL, lab, scenario_of
from tests.unit.calls import Call

TEXT, TEXTS = {"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "string"}}
NODE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "image"],
    "properties": {"kind": {"enum": ["linux", "sonic-vs"]}, "image": TEXT, "exec": TEXTS, "binds": TEXTS},
}
END = {"type": "string", "pattern": r"^[a-zA-Z0-9][a-zA-Z0-9._-]*:[a-z0-9]{2,15}$"}
LINK = {
    "type": "object",
    "required": ["endpoints"],
    "properties": {
        "endpoints": {"type": "array", "minItems": 2, "maxItems": 2, "items": END},
        "mtu": {"type": "integer", "minimum": 1, "maximum": 65535},
    },
}
CLAB = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "topology"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9-]+$"},
        "topology": {
            "type": "object",
            "required": ["nodes", "links"],
            "properties": {
                "nodes": {"patternProperties": {"^[a-zA-Z0-9][a-zA-Z0-9._|-]*$": NODE}, "additionalProperties": False},
                "links": {"type": "array", "minItems": 1, "items": LINK},
            },
        },
    },
}
"""What of containerlab's schema the file uses, in words of our own (schemas/clab.schema.json)."""
PORT, ADDRESS = r"Ethernet\d+", r"[0-9a-f:]+"
ROUTE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "nexthop": {"type": "string", "pattern": f"^{ADDRESS}(,{ADDRESS})*$"},
        "ifname": {"type": "string", "pattern": f"^{PORT}(,{PORT})*$"},
        "blackhole": {"const": "true"},
    },
}
CONFIG_DB = {
    "type": "object",
    "additionalProperties": False,
    "required": ["DEVICE_METADATA", "PORT", "INTERFACE", "STATIC_ROUTE", "SWITCH_TRIMMING"],
    "properties": {
        "DEVICE_METADATA": {"required": ["localhost"]},
        "PORT": {"patternProperties": {f"^{PORT}$": {"required": ["admin_status"]}}, "additionalProperties": False},
        "INTERFACE": {
            "patternProperties": {rf"^{PORT}(\|{ADDRESS}/\d+)?$": {"type": "object"}},
            "additionalProperties": False,
        },
        "LOOPBACK_INTERFACE": {"type": "object"},
        "STATIC_ROUTE": {
            "patternProperties": {rf"^default\|{ADDRESS}/\d+$": ROUTE},
            "additionalProperties": False,
        },
        "SRV6_MY_LOCATORS": {"additionalProperties": {"required": ["prefix"]}},
        "SRV6_MY_SIDS": {
            "patternProperties": {
                rf"^[A-Z]+\|{ADDRESS}/48$": {
                    "required": ["action", "decap_dscp_mode"],
                    "properties": {"action": {"const": "uN"}, "decap_dscp_mode": {"enum": ["uniform", "pipe"]}},
                }
            },
            "additionalProperties": False,
        },
        "SWITCH_TRIMMING": {"properties": {"GLOBAL": {"required": ["size", "dscp_value", "queue_index"]}}},
    },
}
"""What of SONiC's models the file uses (srv6, static routes, switch trimming)."""


def plan() -> Plan:
    return scenario_of().plan(prompt=True)


def topology_of(made: Lab) -> dict[str, Any]:
    (name,) = [name for name in made.files if name.endswith(".clab.yml")]
    found: dict[str, Any] = YAML(typ="safe").load(made.files[name])
    return found


@pytest.mark.parametrize("shaped", [False, True], ids=["fast", "shaped"])
@pytest.mark.parametrize("tool", LabTool)
def test_the_topology_is_valid_and_has_every_node_and_link_once(tool: LabTool, shaped: bool) -> None:
    made = lab(tool, shaped=shaped)
    topology = topology_of(made)
    jsonschema.validate(topology, CLAB)
    assert topology["name"] == "lab-1"
    assert set(topology["topology"]["nodes"]) == set(plan().node_names)
    ends = [tuple(end.split(":")[0] for end in link["endpoints"]) for link in topology["topology"]["links"]]
    assert ends == [(link.near.node, link.far.node) for link in plan().links]
    every_end = [end for link in topology["topology"]["links"] for end in link["endpoints"]]
    assert len(set(every_end)) == len(every_end)


@pytest.mark.parametrize("tool", LabTool)
def test_every_file_is_bound_and_every_bound_file_is_there(tool: LabTool) -> None:
    made = lab(tool, shaped=True)
    bound = {bind.split(":")[0] for row in topology_of(made)["topology"]["nodes"].values() for bind in row["binds"]}
    assert bound == {name for name in made.files if not name.endswith(".clab.yml")}


@pytest.mark.parametrize("text", [SMALL, HASHED], ids=["srv6", "ecmp"])
def test_sonic_has_the_routes_and_the_usid_of_the_plan(text: str) -> None:
    scenario = scenario_of(text)
    found = scenario.plan(prompt=True)
    made = lab(LabTool.SONIC, text)
    for switch in found.switches:
        tables = json.loads(made.files[f"{switch.name}.json"])
        jsonschema.validate(tables, CONFIG_DB)
        routes = [route for route in routes_of(found, switch.name) if route.kind is not RouteKind.END]
        assert list(tables["STATIC_ROUTE"]) == [f"default|{route.prefix}" for route in routes]
        for route in routes:
            row = tables["STATIC_ROUTE"][f"default|{route.prefix}"]
            hops = len(route.hops) or (route.kind is RouteKind.VIA)
            assert len(row.get("nexthop", "").split(",")) == max(hops, 1)
        sids = [route.prefix for route in routes_of(found, switch.name) if route.kind is RouteKind.END]
        assert [key.split("|")[1] for key in tables.get("SRV6_MY_SIDS", {})] == sids
        assert all(int(sid.split(":")[2], 16) < 0xE000 for sid in sids)  # the global range of F3216


def test_next_hops_are_addresses_of_the_neighbours_ports() -> None:
    made, found = lab(LabTool.SONIC), plan()
    for switch in found.switches:
        tables = json.loads(made.files[f"{switch.name}.json"])
        peers = {
            f"Ethernet{4 * number}": plain.transfer_address(peer.ifindex)
            for number, (_, peer) in enumerate(found.ports[switch.name])
        }
        for row in tables["STATIC_ROUTE"].values():
            pairs = zip(row.get("ifname", "").split(","), row.get("nexthop", "").split(","), strict=True)
            assert all(peers[port] == address for port, address in pairs if port)


FRR_KNOWS = {"static-sids": 10.4, "sid": 10.4, "prefix": 8.5, "behavior": 8.5}
"""Since which version FRR takes lines that begin so, as we write them; all others it always took."""


@pytest.mark.skipif(shutil.which("vtysh") is None, reason="FRR is not installed")
@pytest.mark.parametrize("text", [SMALL, HASHED], ids=["srv6", "ecmp"])
def test_frr_takes_every_line_that_its_version_knows(text: str, tmp_path: Path) -> None:
    told = subprocess.run(["/usr/lib/frr/zebra", "--version"], capture_output=True, text=True, check=True).stdout
    version = float(re.search(r"version (\d+\.\d+)", told)[1])  # type: ignore[index]
    made = lab(LabTool.FRR, text)
    for name in [name for name in made.files if name.endswith(".frr.conf")]:
        file = tmp_path / name
        file.write_text(made.files[name])
        done = subprocess.run(["vtysh", "-C", "-f", str(file)], capture_output=True, text=True, check=False)
        refused = re.findall(r"Unknown command\[\d+\]: +(\S+)", done.stdout + done.stderr)
        assert set(refused) == {
            word for word, since in FRR_KNOWS.items() if version < since and "srv6" in file.read_text()
        }


def test_frr_has_the_own_usid_of_each_switch() -> None:
    made = lab(LabTool.FRR)
    for switch in plan().switches:
        sids = re.findall(r"sid (\S+) locator MAIN behavior uN", made.files[f"{switch.name}.frr.conf"])
        assert sids == [usid.locator(switch.usid)]


@pytest.mark.parametrize("tool", LabTool)
def test_what_is_lost_is_said_in_the_file_too(tool: LabTool) -> None:
    made = lab(tool)
    assert len(made.lost) >= 3
    assert all(f"#   - {each}\n" in made.files["lab-1.clab.yml"] for each in made.lost)


def test_routes_that_are_learned_are_refused() -> None:
    scenario = scenario_of(SMALL + "transport: roce\nrouting: bgp\n")
    with pytest.raises(UsageError, match="routing: bgp; only tables that are written are exported"):
        lab_of(scenario, LabTool.CONTAINERLAB)


def test_the_command_writes_a_folder_and_touches_no_stranger(tmp_path: Path, call: Call) -> None:
    file, folder = tmp_path / "a.yaml", tmp_path / "lab"
    file.write_text(SMALL)
    done = call("export", str(file), "--to", "containerlab", "--file", str(folder))
    assert done.status == 0, done.err
    assert "not in it: Workload, faults and expectations." in done.err
    assert (folder / "lab-1.clab.yml").exists()
    again = call("export", str(file), "--to", "containerlab", "--file", str(folder))
    assert (again.status, "already exists; give another name, or --force" in again.err) == (2, True)
    assert call("export", str(file), "--to", "containerlab", "--file", str(folder), "--force").status == 0
    refused = call("export", str(file), "--to", "sonic", "--file", str(folder))
    assert refused.status == 2
    assert "has other files" in refused.err
    (folder / "mine").touch()
    assert call("export", str(file), "--to", "containerlab", "--file", str(folder)).status == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "perfetto", "--shape"), "--shape is for labs"),
        (("--to", "frr", "--file", "-"), "--file -: a lab is a folder"),
        (("--to", "frr", "--otlp", "http://x"), "--otlp sends a run"),
        ((), "export needs --to"),
    ],
)
def test_options_that_do_not_fit(words: tuple[str, ...], said: str, tmp_path: Path, call: Call) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SMALL)
    done = call("export", str(file), *words)
    assert done.status == 2
    assert said in " ".join(done.err.split())
