"""The folder of a benchmark that somebody sent."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from tests.unit.calls import Call

WORDS = ("bench", "run", "--tests", "5.2", "--transports", "mrc", "-q", "--out")
EVIL = "open({!r}, 'w')\nPLUGIN = {{}}\n"


def test_cells_that_somebody_has_changed_are_not_run(tmp_path: Path, call: Call) -> None:
    out, ran = tmp_path / "b", tmp_path / "was-run"
    assert call(*WORDS, str(out)).status == 0
    lines = [json.loads(line) for line in (out / "runs/cells.jsonl").read_text().splitlines()]
    folder = out / "runs/scenarios" / lines[0]["id"]
    (folder / "plugins").mkdir()
    (folder / "plugins/evil.py").write_text(EVIL.format(str(ran)))
    with (folder / "scenario.yaml").open("a") as scenario:
        scenario.write("plugins: [plugins/evil.py]\n")
    lines[0]["sha256"] = sha256((folder / "scenario.yaml").read_bytes()).hexdigest()
    lines[0]["plugins"] = {"evil.py": sha256((folder / "plugins/evil.py").read_bytes()).hexdigest()}
    (out / "runs/cells.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ended = call(*WORDS, str(out))
    assert ended.status == 2
    assert f"--out {out}: its cells are not those of the benchmark; name a new folder" in ended.err
    assert not ran.exists()
