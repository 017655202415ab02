"""What `ip`, `tc`, tshark and /proc said of small fabrics, by the version that said it: `make.py` writes these files.

A test replays a recording in place of `mrc_testbed.testbed.fabric.batch.query`, so the parser is the one that a run
uses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.fabric.readback import IP_JSON
from mrc_testbed.testbed.switching.expected import Expected
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import Clos2, clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing

FOLDER = Path(__file__).parent
SHAPE = clos2_shape(planes=2, t0_groups=1, t1=0, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000)
PLAN = build_plan(SHAPE)
ECMP_SHAPE = replace(SHAPE, family=Clos2(2, 2, 1))
PLANS = {Routing.SRV6: PLAN, Routing.ECMP_STATIC: build_plan(ECMP_SHAPE, Routing.ECMP_STATIC)}
ECMP_FABRICS = tuple(sorted(FOLDER.glob("iproute2-*/ecmp*.json")))
FABRICS = tuple(sorted(set(FOLDER.glob("iproute2-*/*.json")) - set(ECMP_FABRICS)))
DISSECTED = tuple(sorted(FOLDER.glob("tshark-*/vectors.txt")))


def named(path: Path) -> str:
    """For the ids of tests: `iproute2-6.1/plain`."""
    return f"{path.parent.name}/{path.stem}"


def single(line: str) -> list[str]:
    """The command that asks what this line of a batch asks."""
    return ["ip", *([] if line == "link show" else ["-6"]), "-j", *line.split()]


class Recording:
    """One fabric at one moment: what was asked of it and answered, and the state that the answers should show."""

    def __init__(self, path: Path) -> None:
        text: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        self.answers: dict[str, dict[str, dict[str, str]]] = text["answers"]
        self.proc: dict[str, dict[str, str]] = text["proc"]
        state = text["state"]
        plan = self.plan = PLANS[Routing(state.get("routing", Routing.SRV6))]
        self.pids = dict.fromkeys(plan.node_names, 1)
        self.expected = Expected(
            plan,
            FabricOptions(state["sid_device"], state["delay"], state["switch_ports"], hash_seed=state.get("hash_seed")),
            state["rates_bps"],
            state["programs"],
            [own for ports in plan.ports.values() for own, _ in ports if [own.node, own.name] in state["down"]],
            state["off"],
        )

    def query(
        self, command: list[str], pids: Mapping[str, int], stdin: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """As batch.query; a question that was not recorded fails. Lines of a batch of `ip` were recorded one by one."""
        if command == IP_JSON:
            assert stdin is not None
            return {node: "".join(self._single(line, node) for line in stdin[node].splitlines()) for node in pids}
        told = self.answers[" ".join(command)]
        for node in pids:
            assert told[node]["stdin"] == (stdin or {}).get(node, ""), "another question was recorded: make it again"
        return {node: told[node]["stdout"] for node in pids}

    def _single(self, line: str, node: str) -> str:
        return self.query(single(line), {node: self.pids[node]})[node]
