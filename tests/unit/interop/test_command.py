"""`mrc-testbed interop`: the matrix as lines, as JSON and as a page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.unit.calls import Call
from tests.unit.interop.judged import HERE


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    file = tmp_path / "list.json"
    rows = [
        {"name": "good", "program": [sys.executable, "-m", "mrc_testbed.hosts.contract"]},
        {"name": "none yet", "program": [sys.executable, str(HERE / "hostile.py"), "unsupported"]},
        {"name": "bad", "program": [sys.executable, str(HERE / "hostile.py"), "no json"]},
    ]
    file.write_text(json.dumps(rows))
    return file


def test_a_matrix(tmp_path: Path, listed: Path, call: Call) -> None:
    done = call("interop", str(listed), "-o", str(tmp_path / "m" / "matrix.html"), "--only", "1,3")
    assert done.status == 1
    assert "good  1 lines        pass\ngood  3 stream       pass\n" in done.out
    assert "none yet  1 lines        n/a\n    `step`: no streams yet\n" in done.out
    assert "bad  3 stream       fail\n    not JSON: hello world\n" in done.out
    page = (tmp_path / "m" / "matrix.html").read_text()
    assert "3 endpoints: 2 steps passed, 2 failed, 2 n/a" in page
    assert 'href="good/stream/"' in page
    document = json.loads((tmp_path / "m" / "matrix.json").read_text())
    marks = {row["name"]: [step["mark"] for step in row["steps"]] for row in document["rows"]}
    assert marks == {"good": ["pass", "pass"], "none yet": ["n/a", "n/a"], "bad": ["fail", "fail"]}
    assert (tmp_path / "m" / "good" / "stream" / "report.html").exists()
    assert (tmp_path / "m" / "good" / "stream" / "pcap" / "h0_p0-t0-0.pcapng").exists()


def test_our_own_as_json(tmp_path: Path, call: Call) -> None:
    done = call("interop", "-o", str(tmp_path / "matrix.html"), "--only", "1", "--json")
    document = json.loads(done.out)
    assert [(row["name"], row["says"], row["steps"][0]["mark"]) for row in document["rows"]] == [
        ("mrc-testbed", "mrc-testbed", "pass")
    ]


def test_what_cannot_be(tmp_path: Path, call: Call) -> None:
    assert call("interop", "--only", "x").status == 2
    assert "there is no step '9'" in call("interop", "--only", "9").err
    assert "must end in .html" in call("interop", "-o", str(tmp_path / "matrix.txt")).err
    (tmp_path / "mrc-testbed").mkdir()
    assert "is there already" in call("interop", "-o", str(tmp_path / "matrix.html")).err
