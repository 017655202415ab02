"""Writes grafana/mrc.json, the dashboard of a run: `python tools/make_dashboard.py`. A test compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DASHBOARD = Path(__file__).resolve().parents[1] / "grafana/mrc.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
CLOCK = "scalar(sum(rate(mrc_run_clock_seconds_total[$__rate_interval])))"
"""Seconds of the run in one of the wall: 1 on the kernel, more or fewer in virtual time."""
PLANE = 'plane=~"$plane"'
HOSTS, SWITCHES = PLANE + ', tier=""', PLANE + ', tier!=""'
WIDTH = 24


def rate(metric: str, labels: str = "", by: str = "") -> str:
    """Of the run's own seconds."""
    summed = f"sum by ({by}) " if by else "sum"
    return f"{summed}(rate({metric}{{{labels}}}[$__rate_interval])) / {CLOCK}"


def panel(
    kind: str, title: str, size: tuple[int, int], queries: dict[str, str], unit: str = "short", **more: Any
) -> dict[str, Any]:
    """A panel without its place. `queries`: by legend; `size`: columns and rows; `more`: options of its kind."""
    targets = [
        {"refId": chr(65 + place), "expr": query, "legendFormat": legend, "datasource": SOURCE}
        for place, (legend, query) in enumerate(queries.items())
    ]
    return {
        "type": kind,
        "title": title,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "options": more,
        "gridPos": {"w": size[0], "h": size[1]},
    }


def panels() -> list[dict[str, Any]]:
    """In reading order."""
    chart, stat = "timeseries", "stat"
    lost = rate("mrc_host_lost_packets_total", "", "reason")
    late = 'mrc_daemon_lateness_seconds{stat="p99"}'
    busiest = f"topk(10, {rate('mrc_link_tx_bytes_total', SWITCHES, 'node, port')} * 8)"
    quantile = "histogram_quantile({}, sum by (le) (rate(mrc_step_duration_seconds_bucket[$__rate_interval])))"
    came, went = (rate(f"mrc_link_{way}_packets_total", SWITCHES, "node") for way in ("rx", "tx"))
    swallowed = f"1 - ({went}) / ({came}) > 0.05"
    name: dict[str, Any] = {"textMode": "name", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return [
        panel(stat, "Verdict", (6, 4), {"{{mrc_verdict}}": "mrc_verdict == 1"}, **name),
        panel(stat, "Did the machine keep time?", (6, 4), {"{{mrc_fidelity}}": "mrc_fidelity == 1"}, **name),
        panel(stat, "Phase", (6, 4), {"{{mrc_run_phase}}": "mrc_run_phase == 1"}, **name),
        panel(stat, "Steps", (6, 4), {"{{job}}": "sum by (job) (mrc_steps_total)"}),
        panel(chart, "Goodput", (12, 8), {"all hosts": f"{rate('mrc_host_delivered_bytes_total')} * 8"}, "bps"),
        panel(chart, "Step time", (12, 8), {"p50": quantile.format(0.5), "p99": quantile.format(0.99)}, "s"),
        panel("state-timeline", "Faults", (24, 5), {"{{fault}}": "mrc_fault_active"}),
        panel(chart, "EVs out of use", (12, 8), {"{{state}}": f'sum by (state) (mrc_evs{{{PLANE}, state!="good"}})'}),
        panel(
            chart,
            "Balance of planes: sent by hosts",
            (12, 8),
            {"plane {{plane}}": f"{rate('mrc_link_tx_bytes_total', HOSTS, 'plane')} * 8"},
            "bps",
        ),
        panel(
            chart,
            "Marks, trims and drops of switches",
            (12, 8),
            {
                f"{what}, T{{{{tier}}}}": rate(f"mrc_switch_{what}_packets_total", PLANE, "tier")
                for what in ("marked", "trimmed", "dropped")
            },
            "pps",
        ),
        panel(
            chart,
            "Lost, by what told it",
            (12, 8),
            {"{{reason}}": lost},
            "pps",
        ),
        panel(
            chart,
            "Sent again, and timers that ran out",
            (12, 8),
            {"sent again": rate("mrc_host_retransmitted_packets_total"), "timeouts": rate("mrc_host_timeouts_total")},
            "pps",
        ),
        panel(
            "bargauge",
            "The ten busiest ports of switches",
            (12, 8),
            {"{{node}} {{port}}": busiest},
            "bps",
        ),
        panel(chart, "Came in and did not go out", (24, 6), {"{{node}}": swallowed}, "percentunit"),
        panel(chart, "NIC ports down", (12, 6), {"{{host}} plane {{plane}}": f"mrc_port_up{{{PLANE}}} == 0"}),
        panel(chart, "Lateness of timers, p99", (12, 6), {"{{host}}": late}, "s"),
    ]


def dashboard() -> dict[str, Any]:
    """The whole file, in Grafana's classic model."""
    return {
        "uid": "mrc-testbed",
        "title": "mrc-testbed",
        "schemaVersion": 41,
        "editable": True,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "templating": {"list": [_datasource(), _variable("plane", "label_values(mrc_port_up, plane)")]},
        "annotations": {"list": [_faults()]},
        "panels": _placed(panels()),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "data source"}


def _variable(name: str, query: str) -> dict[str, Any]:
    values = {"multi": True, "includeAll": True, "current": {"text": ["All"], "value": ["$__all"]}}
    return {"name": name, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": name}, **values}


def _faults() -> dict[str, Any]:
    """Bands in all charts."""
    return {
        "name": "faults",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": "mrc_fault_active == 1",
        "titleFormat": "{{fault}}",
        "textFormat": "{{kind}}",
        "step": "1s",
    }


def _placed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From left to right, a new row where the width is used up."""
    x = y = height = 0
    for number, one in enumerate(rows, 1):
        place = one["gridPos"]
        if x + place["w"] > WIDTH:
            x, y, height = 0, y + height, 0
        one |= {"id": number}
        place |= {"x": x, "y": y}
        x, height = x + place["w"], max(height, place["h"])
    return rows


def text() -> str:
    """As the file has it."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    DASHBOARD.parent.mkdir(exist_ok=True)
    DASHBOARD.write_text(text(), encoding="utf-8")
