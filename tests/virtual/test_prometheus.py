"""A real Prometheus scrapes a run, answers the queries of the dashboard, and its checker takes the text of a run."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.metrics.test_dashboard import queries

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests/unit/small_virtual.yaml"
LIMIT_S = 60
CONFIG = """
global: {{scrape_interval: 250ms, scrape_timeout: 200ms, evaluation_interval: 10s}}
scrape_configs:
  - {{job_name: mrc, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def mrc(*words: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-m", "mrc_testbed", *words]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class Prometheus:
    """The server, asked by its API."""

    def __init__(self, place: Path, scraped: int) -> None:
        self.port = free_port()
        (place / "prometheus.yml").write_text(CONFIG.format(port=scraped))
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={place / 'prometheus.yml'}",
                f"--storage.tsdb.path={place / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The result of an instant query; none while the server is not there yet."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                content = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []
            raise AssertionError(f"{query}: {error.read().decode()}") from None
        except OSError:
            return []
        found: list[dict[str, Any]] = content["data"]["result"]
        return found

    def wait_for(self, query: str) -> list[dict[str, Any]]:
        deadline = time.monotonic() + LIMIT_S
        while not (found := self.ask(query)):
            assert time.monotonic() < deadline, query
            time.sleep(0.1)
        return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[Prometheus, Path]]:
    port = free_port()
    prometheus = Prometheus(tmp_path, port)
    out = tmp_path / "results"
    changes = ("--set", "workload.0.train.steps=4000")
    going = mrc("run", str(SMALL), "--virtual", "--quiet", "--metrics", str(port), "--out", str(out), *changes)
    try:
        yield prometheus, out
    finally:
        for process in (going, prometheus.process):
            process.terminate()
            process.wait()


@pytest.mark.slow
def test_prometheus_scrapes_a_run_and_answers_the_dashboard(run: tuple[Prometheus, Path]) -> None:
    prometheus, _ = run
    prometheus.wait_for("mrc_steps_total > 2")
    (info,) = prometheus.ask("mrc_run_info")
    assert (info["metric"]["scenario"], info["metric"]["world"]) == ("small", "virtual")
    # Only where the run's clock went on between two scrapes: on a busy machine it may not have.
    rate = "sum(rate(mrc_host_delivered_bytes_total[2s])) / (sum(rate(mrc_run_clock_seconds_total[2s])) > 0)"
    (goodput,) = prometheus.wait_for(f"{rate} > 0")
    line_rate = 4 * 2 * 12.5e6 / 8
    assert 0.01 * line_rate < float(goodput["value"][1]) < line_rate, "in the run's own seconds"
    for query in queries():
        prometheus.ask(query.replace("$__rate_interval", "2s").replace("$plane", ".*"))
    assert prometheus.ask("scrape_samples_scraped > 500")


@pytest.mark.slow
@pytest.mark.nightly
def test_its_checker_takes_what_a_finished_run_exports(tmp_path: Path) -> None:
    ran, _ = mrc("run", str(SMALL), "--virtual", "--quiet", "--out", str(tmp_path)).communicate()
    assert ran.startswith("PASS")
    text, _ = mrc("metrics", str(tmp_path / "latest"), "--format", "prom").communicate()
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
