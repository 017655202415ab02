"""The key `qps`: one number of queue pairs for every entry of `workload`, in place of theirs."""

from __future__ import annotations

from typing import Any

from mrc_testbed.testbed.scenario.model.flow_models import Latency
from mrc_testbed.testbed.scenario.model.graph_model import GraphEntry
from mrc_testbed.testbed.scenario.model.presets import QPS as PRESET_QPS
from mrc_testbed.testbed.scenario.model.presets import preset_of
from mrc_testbed.testbed.scenario.model.programs import Programs
from mrc_testbed.testbed.scenario.text.fields import MAX_QPS
from mrc_testbed.testbed.transports import registry

QPS = "qps"
_WITH_ONE = (Latency.kind, GraphEntry.kind, Programs.kind)


def spread_qps(data: Any) -> None:
    """Writes the number of QPs, where it is a possible one, into each flow and collective of raw data, in place.

    `latency` keeps its one: it sends a message at a time. Programs have one to each peer, which keeps their packets in
    order; a graph has as many as its messages need. Over TCP `tcp.connections` takes their place. Those of the preset
    of `endpoint` hold where an entry writes none.
    """
    qps, workload = _qps(data), data.get("workload")
    of_preset = qps is None
    if of_preset:
        qps = _preset_qps(data)
    if type(qps) is not int or not 1 <= qps <= MAX_QPS or not isinstance(workload, list):
        return
    for item in workload:
        for kind, entry in item.items() if isinstance(item, dict) else ():
            if isinstance(entry, dict) and kind not in _WITH_ONE:
                _set(entry, qps, of_preset)


def _preset_qps(data: dict[str, Any]) -> int | None:
    """Of the preset of `endpoint`, which counts for transports with its settings alone."""
    spoken = registry.known().get(str(data.get("transport", registry.USUAL)))
    return PRESET_QPS.get(preset_of(data.get("endpoint"))) if spoken and spoken.has_paths else None


def _qps(data: dict[str, Any]) -> Any:
    spoken = registry.known().get(str(data.get("transport")))
    own = data.get(spoken.group) if spoken and spoken.of_kernel else None
    connections = own.get("connections") if isinstance(own, dict) else None
    return data.get(QPS) if connections is None else connections


def _set(entry: dict[str, Any], qps: int, if_none: bool) -> None:
    for one in (*_exchanges(entry.get("step")), *(() if "step" in entry else (entry,))):
        if not if_none or QPS not in one:
            one[QPS] = qps


def _exchanges(parts: Any) -> list[dict[str, Any]]:
    """The collectives of a step, and of those that begin together."""
    found: list[dict[str, Any]] = []
    for part in parts if isinstance(parts, list) else ():
        for value in part.values() if isinstance(part, dict) else ():
            found += [value] if isinstance(value, dict) else _exchanges(value)
    return found
