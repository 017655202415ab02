"""A small bench.json, written by hand."""

from __future__ import annotations

from typing import Any

SIZE = "workload.0.allreduce.size"


def kpi(transport: str, mean: float | None = 2.0, **more: Any) -> dict[str, Any]:
    """A figure of one transport; one without a mean was not measured."""
    known = {"p50": mean, "p95": mean, "p99": mean, "cv": None if mean is None else 0.01}
    usual = {
        "name": "bus bandwidth",
        "unit": "Gb/s",
        "transport": transport,
        "parameters": {SIZE: "1MiB"},
        "mean": mean,
    }
    return {**usual, **known, "n": 0 if mean is None else 2, "runs": 0 if mean is None else 2, "why": "", **more}


def one_test(ref: str = "9.1", **more: Any) -> dict[str, Any]:
    """A test of two transports."""
    return {
        "ref": ref,
        "title": "AllReduce",
        "status": "adapted",
        "why": "our own ring",
        "fabric": ["8 hosts, 4 planes"],
        "parameters": {SIZE: ["1MiB", "4MiB"]},
        "iterations": 2,
        "kpis": [kpi("mrc", 4.0), kpi("roce-1", 1.0)],
        "deviations": ["Sums are XOR."],
        "runs": ["runs/cells/160e/1"],
        "anomalies": [],
        **more,
    }


def bench_document(*tests: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The whole, of these tests, or of one."""
    return {
        "format": 1,
        "draft": "draft-of-a-benchmark",
        "revision": "04",
        "made": "2026-11-28T06:36:14+00:00",
        "version": "0.2.0",
        "commit": None,
        "world": "virtual",
        "size": "small",
        "fabric": ["8 hosts, 4 planes"],
        "transports": {"mrc": {"transport": "mrc"}, "roce-1": {"transport": "roce", "qps": 1}},
        "environment": {"host": "machine", "cpus": 2},
        "tests": list(tests) or [one_test()],
        "left_out": [],
        **more,
    }
