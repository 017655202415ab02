"""Metrics over HTTP: slow clients keep nobody out, and a verdict stays until it was scraped."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mrc_testbed.testbed.web.metrics_server import MetricsServer, NewestSeries
from tests.hangs import HANGS_S

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"


@pytest.fixture
def served() -> Iterator[MetricsServer]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = MetricsServer(listening, NewestSeries(truth=False))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def address(server: MetricsServer) -> tuple[str, int]:
    host, port = server.socket.getsockname()
    return host, port


def test_slow_clients_keep_no_scraper_out(served: MetricsServer) -> None:
    with ExitStack() as held:
        for _ in range(40):
            slow = held.enter_context(socket.create_connection(address(served), timeout=HANGS_S))
            slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        for _ in range(3):
            scraper = http.client.HTTPConnection(*address(served), timeout=HANGS_S)
            scraper.request("GET", "/metrics")
            assert scraper.getresponse().status == 200


@pytest.mark.parametrize("path", ["/", "/metrics", "/nowhere"])
def test_a_head_is_the_answer_without_its_body(served: MetricsServer, path: str) -> None:
    found = {}
    for method in ("GET", "HEAD"):
        connection = http.client.HTTPConnection(*address(served), timeout=HANGS_S)
        connection.request(method, path)
        answer = connection.getresponse()
        found[method] = answer.status, answer.headers["Content-Length"], answer.headers["Content-Type"]
        assert not (method == "HEAD" and answer.read())
    assert found["HEAD"] == found["GET"]


def test_who_waits_for_scrapers() -> None:
    newest = NewestSeries(truth=False)
    newest.wait_for_scrapers(HANGS_S, always=False)
    newest.wait_for_scrapers(0.01, always=True)
    newest.end({})
    newest.scraped(1)
    threading.Timer(0.05, newest.scraped, [1]).start()
    newest.wait_for_scrapers(HANGS_S, always=False)


def test_a_text_from_before_the_end_is_no_scrape_of_the_end() -> None:
    newest = NewestSeries(truth=False)
    newest.end({})
    for _ in range(2):
        newest.scraped(0)
    begun = time.monotonic()
    newest.wait_for_scrapers(0.05, always=False)
    assert time.monotonic() - begun >= 0.05


def test_a_verdict_is_scraped_after_the_run(tmp_path: Path) -> None:
    words = ["run", str(SMALL), "--out", str(tmp_path), "--metrics", "0", "--metrics-linger", str(HANGS_S)]
    command = [sys.executable, "-P", "-m", "mrc_testbed", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr
        said = iter(process.stderr)
        url = next(found[1] for line in said if (found := re.match(r"metrics: (http\S+)", line)))
        assert any("waiting until the verdict was scraped twice" in line for line in said)
        seen = 0
        while seen < 2:  # a server that is still starting serves before it has heard of the run
            with urllib.request.urlopen(url, timeout=HANGS_S) as answer:
                seen += 'mrc_verdict{mrc_verdict="pass"} 1' in answer.read().decode()
        assert process.wait(HANGS_S) == 0
