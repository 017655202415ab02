"""Text of files that somebody sent: a terminal shows it and does not obey it, whichever command prints it."""

from __future__ import annotations

import ast
import json
import struct
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from mrc_testbed.testbed.live.terminal import _painted
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.testbed.terminal import plain, say
from tests.captures import every_vector, pcapng
from tests.unit.calls import Call
from tests.unit.recorded import record_run

ROOT = Path(__file__).parents[3]
OBEYED = ["\x1b]0;x\x07", "\x1b[2J", "\x07", "\x9b2J", "\x08", "\x7f", "\u202e", "\u2066", "\u200f", "\x85"]
EVIL = "".join(OBEYED)
BAD = frozenset(EVIL) - set("]0;x[2J")
SEAMS = {"testbed/terminal.py", "testbed/report/console.py"}
"""Where text is printed."""
WAYS_ROUND = {"print", "echo", "secho", "print_exc", "print_exception", "Console", "echo_via_pager", "launch"}


def clean(text: str) -> bool:
    return not BAD & set(text)


@given(st.text())
def test_plain_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = plain(text + EVIL)
    assert clean(shown)
    assert len(shown) == len(text + EVIL)
    assert all(ord(character) >= 32 or character in "\t\n" for character in shown)
    assert plain(shown) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert plain(f"{text}\n\t{text}") == f"{text}\n\t{text}"


def test_what_is_said_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    say(EVIL)
    say(EVIL, err=True)
    out, err = capsys.readouterr()
    assert clean(out)
    assert clean(err)


@pytest.mark.parametrize("markup", [True, False])
def test_a_console_shows_text_and_keeps_its_colours(markup: bool) -> None:
    out = StringIO()
    console = PatientConsole(file=out, force_terminal=True, color_system="standard", width=60, legacy_windows=False)
    table = Table(EVIL)
    table.add_row(Text(EVIL, style="red"))
    console.print(EVIL, markup=markup, soft_wrap=True)
    console.print(table, Text(EVIL))
    console.print("over", end="\r")
    shown = out.getvalue()
    assert "\x1b[31m" in shown, "what the console itself says to the terminal stays"
    assert shown.endswith("over\r")
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown
    assert not (BAD - {"\x1b"}) & set(shown)


def test_the_live_display_is_plain() -> None:
    assert clean(_painted(EVIL, "", None))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return record_run(tmp_path / "results" / "20260801T000000Z-small")


def test_a_verdict_is_shown_and_not_obeyed(call: Call, run: Path) -> None:
    verdict = json.loads((run / "verdict.json").read_text())
    verdict |= {"headline": f"fine{EVIL}\nremoved 9 runs", "scenario": EVIL, "death": EVIL}
    (run / "verdict.json").write_text(json.dumps(verdict))
    for command in (["results", str(run.parent)], ["results", "rm", run.name, "--yes", "--out", str(run.parent)]):
        ended = call(*command)
        assert ended.status == 0
        assert clean(ended.out + ended.err)
        assert "\nremoved 9 runs" not in ended.out


@pytest.mark.parametrize(
    "name", ["history.jsonl", "counters.json", "environment.json", "scenario.yaml", "verdict.json"]
)
def test_an_error_about_a_file_is_shown_and_not_obeyed(call: Call, run: Path, name: str) -> None:
    line = json.dumps({"t_ns": EVIL, "op": EVIL, "type": EVIL, "hosts": {EVIL: {}}, "plugins": [EVIL], EVIL: EVIL})
    (run / name).write_text(f"{line}\n{line}\n")
    for command in (["report", str(run)], ["compare", str(run), str(run.parent / "x" / EVIL)], ["--debug", "report"]):
        ended = call(*command, str(run))
        assert clean(ended.out + ended.err)


def test_the_name_of_a_folder_is_shown_and_not_obeyed(call: Call, run: Path) -> None:
    odd = run.rename(run.with_name(f"20260801T000000Z-{EVIL}"))
    (odd / "owner.json").write_text("{}")
    (odd / "plan.json").write_text("[")
    for command in (
        ["results"],
        ["clean"],
        ["report", str(odd)],
        ["replay", str(odd)],
        ["results", "rm", "--keep", "0"],
    ):
        ended = call(*command, "--out", str(odd.parent))
        assert clean(ended.out + ended.err)


def test_a_scenario_is_shown_and_not_obeyed(call: Call, run: Path, tmp_path: Path) -> None:
    text = (run / "scenario.yaml").read_text()
    path = tmp_path / "evil.yaml"
    path.write_text(f'about: "\\e]0;x\\a\\u202e"\n{text}\nodd: "\\e[2J"\n"\\x9b\\e": 1\n')
    ended = call("validate", str(path))
    assert ended.status == 2
    assert clean(ended.out + ended.err)
    path.write_text(f'about: "\\e]0;x\\a\\u202e"\n{text}')
    assert clean(call("validate", str(path)).out)


def test_the_comments_of_a_capture_are_shown_and_not_obeyed(call: Call, tmp_path: Path) -> None:
    path = pcapng(tmp_path / "c.pcapng", every_vector()[:1])
    comment = EVIL.encode()
    options = struct.pack("<HH", 1, len(comment)) + comment + bytes(-len(comment) % 4)
    frame = every_vector()[0]
    body = struct.pack("<IIIII", 0, 0, 0, len(frame), len(frame)) + frame + bytes(-len(frame) % 4) + options
    with path.open("ab") as file:
        file.write(struct.pack("<II", 6, 12 + len(body)) + body + struct.pack("<I", 12 + len(body)))
    for options_ in ([], ["--json"], ["--fields"]):
        ended = call("decode", str(path), *options_)
        assert ended.status == 0
        assert "\N{REPLACEMENT CHARACTER}" in ended.out or "--json" in options_
        assert clean(ended.out)


def test_nothing_is_printed_past_the_filter() -> None:
    """Mininet's prompt shows what commands on the nodes print, and is no output of ours."""
    found = []
    for path in sorted((ROOT / "testbed").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if name not in SEAMS:
            calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            found += [f"{name}:{node.lineno}" for node in calls if goes_round(node)]
    assert found == []


def goes_round(call: ast.Call) -> bool:
    """`print(...)`, `typer.echo(...)`, `Console(...)`, `sys.stdout.write(...)` and the like; not `console.print`."""
    if isinstance(call.func, ast.Name):
        return call.func.id in WAYS_ROUND - {"launch"}  # ours starts programs
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in WAYS_ROUND | {"write", "writelines"}:
        return False
    whose = ast.unparse(call.func.value)
    if whose in ("sys.stdout", "sys.stderr"):
        return call.func.attr in ("write", "writelines")
    return whose in ("typer", "click", "traceback", "rich", "rich.console") and call.func.attr in WAYS_ROUND
