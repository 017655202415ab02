"""Files that people write: `-` is standard input, and a byte order mark or line ends of Windows mean nothing."""

from __future__ import annotations

import io
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.captures import every_vector, pcapng
from tests.unit.calls import Call
from tests.unit.recorded import record_run

SMALL = Path(__file__).parents[1] / "small_virtual.yaml"
PLAN = ("plan", "--gpus", "1024", "--nic", "800G", "--planes", "8", "--switch", "51.2T")
PRICES = 'currency = "EUR"\nswitch = 1\ntransceiver = 2\n'
BASELINES = "mrc: {}\nslow: {seed: 3}\n"
Piped = Callable[[bytes], None]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Piped:
    """What a command finds on standard input."""

    def pipe(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))

    return pipe


def as_on_windows(path: Path) -> None:
    content = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    path.write_bytes(BOM_UTF8 + content.removeprefix(BOM_UTF8))


@pytest.mark.parametrize(
    ("command", "content", "shown"),
    [
        (("validate", "-"), SMALL.read_bytes(), "-: ok: "),
        (("validate", "quickstart", "--against", "-"), BASELINES.encode(), "2 cells"),
        (("topo", "show", "-"), SMALL.read_bytes(), "Every T0"),
        (("schema", "-"), SMALL.read_bytes(), '"workload"'),
        ((*PLAN, "--prices", "-"), PRICES.encode(), "price of switches"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_dash_is_standard_input(
    call: Call, piped: Piped, command: tuple[str, ...], content: bytes, shown: str
) -> None:
    piped(content)
    ended = call(*command)
    assert ended.status == 0, ended.err
    assert shown in ended.out


def test_a_capture_may_come_from_a_pipe(call: Call, piped: Piped, tmp_path: Path) -> None:
    piped(pcapng(tmp_path / "c.pcapng", every_vector()).read_bytes())
    assert f"{len(every_vector())} packets" in call("decode", "-").out


def test_a_scenario_from_a_pipe_is_run_and_kept(call: Call, piped: Piped, tmp_path: Path) -> None:
    piped(SMALL.read_bytes())
    ended = call("run", "-", "--virtual", "-q", "--out", str(tmp_path / "results"))
    (folder,) = (path for path in (tmp_path / "results").iterdir() if not path.is_symlink())
    assert (folder / "verdict.json").exists(), ended.err
    assert call("validate", str(folder / "scenario.yaml")).status == 0


def test_mistakes_of_standard_input_have_their_lines(call: Call, piped: Piped) -> None:
    piped(SMALL.read_bytes() + b"foo: 1\n")
    number = SMALL.read_bytes().count(b"\n") + 1
    ended = call("validate", "-")
    assert ended.status == 2
    assert ended.said[0].startswith(f"-:{number}:1: foo: unknown key")
    assert "foo: 1" in ended.said[1]


def test_the_prompt_needs_standard_input(call: Call, piped: Piped) -> None:
    piped(SMALL.read_bytes())
    assert call("shell", "-").said == [
        "mrc-testbed: shell -: standard input is for what you type; name a file, or give commands with -c"
    ]


@pytest.mark.parametrize(
    ("options", "file"),
    [(("validate", "FILE"), SMALL), (("topo", "show", "FILE"), SMALL), (("validate", "quickstart", "--against"), None)],
    ids=["validate", "topo", "against"],
)
def test_scenarios_of_windows(call: Call, tmp_path: Path, options: tuple[str, ...], file: Path | None) -> None:
    written = tmp_path / "own.yaml"
    written.write_text(file.read_text() if file else BASELINES)
    as_on_windows(written)
    words = [str(written) if word == "FILE" else word for word in options]
    ended = call(*words, *(() if file else (str(written),)))
    assert ended.status == 0, ended.err


@pytest.mark.parametrize("option", ["--prices", "--parts"])
def test_tables_of_the_planner_of_windows(call: Call, tmp_path: Path, option: str) -> None:
    written = tmp_path / "own.toml"
    shipped = Path(sys.modules["mrc_testbed.testbed"].__path__[0]) / "planner/arithmetic/parts.toml"
    written.write_text(PRICES if option == "--prices" else shipped.read_text())
    as_on_windows(written)
    ended = call(*PLAN, option, str(written))
    assert ended.status == 0, ended.err


def test_a_lesson_of_windows(call: Call, tmp_path: Path) -> None:
    work = tmp_path / "anna"
    assert call("lesson", "start", "1", str(work)).status == 0
    asked = call("lesson", "check", str(work), "--run", str(tmp_path / "none"))
    for path in work.iterdir():
        as_on_windows(path)
    again = call("lesson", "check", str(work), "--run", str(tmp_path / "none"))
    assert again.said == asked.said


def test_a_run_folder_of_windows_says_the_same(call: Call, tmp_path: Path) -> None:
    run = record_run(tmp_path / "results" / "20260801T000000Z-small")
    before = call("report", str(run))
    for path in run.iterdir():
        if path.suffix in (".yaml", ".json", ".csv", ".jsonl"):
            as_on_windows(path)
    after = call("report", str(run))
    assert (after.status, after.out, after.err) == (before.status, before.out, before.err)


def test_frames_of_windows(tmp_path: Path) -> None:
    from mrc_testbed.testbed.report.frames.run import load_run

    run = record_run(tmp_path / "20260801T000000Z-small")
    samples = load_run(run).samples
    for path in run.iterdir():
        if path.suffix in (".json", ".csv", ".jsonl"):
            as_on_windows(path)
    assert load_run(run).samples.equals(samples)
    assert json.loads((run / "plan.json").read_text("utf-8-sig"))


@pytest.mark.parametrize("name", [".", "..", "there"])
@pytest.mark.parametrize(
    "command",
    [
        (*PLAN, "--json"),
        (*PLAN, "--html"),
        ("plan", "--flows", "64", "--links", "64", "--json"),
        ("topo", "show", "quickstart", "--svg"),
        ("run", "quickstart", "--virtual", "--json"),
        ("run", "quickstart", "--virtual", "--junit"),
        ("worlds", "quickstart", "--json"),
        ("bounds", "RUN", "--json"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
@pytest.mark.nightly(keep=8)
def test_a_folder_is_no_file_to_write(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str
) -> None:
    run = record_run(tmp_path / "results" / "20260801T000000Z-small")
    here = tmp_path / "here"
    (here / "there").mkdir(parents=True)
    monkeypatch.chdir(here)
    ended = call(*(str(run) if word == "RUN" else word for word in command), name)
    assert ended.status == 2
    assert ended.said[-1] == f"mrc-testbed: {command[-1]} {name}: cannot be written: Is a directory"
    assert [path.name for path in here.iterdir()] == ["there"]
    assert not list((here / "there").iterdir())


@pytest.mark.parametrize(
    "command", [(*PLAN, "--html"), ("topo", "show", "quickstart", "--svg"), ("run", "quickstart", "--junit")]
)
def test_only_json_goes_to_standard_output(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call(*command, "-")
    assert ended.status == 2
    assert ended.said[-1].startswith(f"mrc-testbed: {command[-1]} -: give the name of a file")
    assert not list(tmp_path.iterdir())
