from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic_core import SchemaError
from ruamel.yaml import YAML

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.app import run as run_module
from mrc_testbed.testbed.app.clean import Cleaned
from mrc_testbed.testbed.errors import ExitCode, MissingCapability, RunError
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.capabilities import SANDBOX, Capability
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.runner import options
from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.load.shipped import shipped
from mrc_testbed.testbed.switching.options import FabricOptions
from tests.unit.calls import Call

ROOT = Path(__file__).parents[3]
QUICKSTART = str(ROOT / "scenarios" / "quickstart.yaml")
COMMAND = str(Path(sys.executable).with_name("mrc-testbed"))
COMMANDS = (
    *(
        "run",
        "validate",
        "import",
        "schema",
        "completion",
        "doctor",
        "calibrate",
        "topo show",
        "shell",
        "attach",
        "exec",
        "clean",
    ),
    *("decode", "replay", "report", "metrics", "map", "show", "export", "paper", "scenarios show", "scenarios copy"),
    *("results rm", "compare", "bounds", "worlds", "plan", "hunt", "interop"),
    *(
        "incident kinds",
        "incident draw",
        "incident observe",
        "incident answer",
        "incident serve",
        "incident score",
        "incident set",
    ),
    *(f"bench {name}" for name in ("list", "plan", "run", "page")),
    *(f"sweep {name}" for name in ("plan", "run", "cell", "matrix", "gather", "keys")),
    *(
        f"lesson {name}"
        for name in ("list", "show", "start", "check", "hint", "solution", "restore", "grade", "course", "new")
    ),
)
SCREEN = "import typer"
"""What a help cannot do without."""
HELP_TIMES = 3.0
"""Times that: a help that takes longer has loaded what only a run needs (1.7 times is usual)."""


def broken(tmp_path: Path, name: str = "broken.yaml") -> str:
    path = tmp_path / name
    path.write_text("name: broken\nfabric: {plains: 2}\nworkload: []\n")
    return str(path)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def names_in(app: Any, prefix: str = "") -> Iterator[str]:
    for command in app.registered_commands:
        yield prefix + (command.name or command.callback.__name__)
    for group in app.registered_groups:
        yield from names_in(group.typer_instance, f"{prefix}{group.name} ")


def test_every_command_is_tested_here() -> None:
    assert sorted(names_in(cli.app)) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_one_example_of_the_command(call: Call, command: str) -> None:
    ended = call(*command.split(), "--help")
    assert ended.status == 0
    text = " ".join(plain(ended.out).split())
    assert text.count("Example:") == 1
    assert f"Example: mrc-testbed {command}" in text


def test_the_help_of_run_tells_every_exit_status(call: Call) -> None:
    text = " ".join(plain(call("run", "--help").out).split())
    for code in ExitCode:
        assert re.search(rf"\b{code.value} [a-z]", text), code


def cpu_s(*command: str) -> float:
    """CPU time that a command takes."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_utime + used.ru_stime


def test_help_starts_quickly() -> None:
    """The best of up to twenty of each, in turn: neither a busy machine nor a slow one is taken for a slow start."""
    took = alone = math.inf
    for _ in range(20):
        took, alone = min(took, cpu_s(COMMAND, "--help")), min(alone, cpu_s(sys.executable, "-c", SCREEN))
        if took < HELP_TIMES * alone:
            return
    assert took < HELP_TIMES * alone


def test_a_run_begins_without_what_only_its_end_needs() -> None:
    begun = ("app.run", "app.batch", "commands.options", "runner.kernel_world")
    script = f"import sys, {', '.join(f'mrc_testbed.testbed.{name}' for name in begun)}\n"
    late = ("mrc_testbed.testbed.checks.judge", "mrc_testbed.testbed.pages", "jinja2")
    script += f"print([name for name in {late} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "[]"


def test_help_loads_nothing_that_only_a_run_needs() -> None:
    heavy = "rich pandas numpy mininet pyroute2 ruamel.yaml mrc_testbed.testbed.runner mrc_testbed.testbed.fabric"
    script = (
        "import sys; sys.argv = ['mrc-testbed', 'run', '--help']\n"
        "from mrc_testbed.testbed import cli\n"
        "try: cli.main()\n"
        f"finally: print([name for name in {heavy!r}.split() if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stderr.strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["run"], ["run", QUICKSTART, "--seed", "x"], ["topo", "nonsense"], ["validate", "--nonsense"]],
)
def test_a_wrong_command_line_is_status_2(call: Call, arguments: list[str]) -> None:
    ended = call(*arguments)
    assert ended.status == 2
    assert "Traceback" not in ended.err
    assert ended.out == ""


@pytest.mark.parametrize("command", ["run", "topo show", "shell"])
def test_a_scenario_with_mistakes_is_status_2(call: Call, tmp_path: Path, command: str) -> None:
    ended = call(*command.split(), broken(tmp_path))
    assert ended.status == 2
    assert "broken.yaml:2:10: fabric.plains: " in ended.err
    assert "Traceback" not in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["broken.yaml"]


def test_an_option_that_changes_nothing_known_is_status_2(call: Call) -> None:
    ended = call("run", QUICKSTART, "--set", "fabric.plains=2")
    assert ended.status == 2
    assert "fabric.plains" in ended.err
    assert "--set" in ended.err


def test_an_output_without_unicode_gets_what_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    with TextIOWrapper(BytesIO(), encoding="cp1252") as narrow:
        monkeypatch.setattr(sys, "stdout", narrow)
        monkeypatch.setattr(sys, "argv", ["mrc-testbed", "topo", "show", QUICKSTART])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        narrow.seek(0)
        shown = narrow.read()
    assert not stop.value.code
    assert "?? plane 0" in shown


def test_an_out_that_cannot_be_is_status_2(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capabilities, "probe", list)
    monkeypatch.setattr(options, "fabric_options", lambda *_: FabricOptions("ifb", "endpoint"))
    (tmp_path / "file").write_text("")
    ended = call("run", QUICKSTART, "--out", str(tmp_path / "file"))
    assert ended.status == 2
    assert ended.said == [f"mrc-testbed: --out {tmp_path}/file: is not a folder"]


@pytest.mark.parametrize(
    ("command", "also"), [("run", ", or `--virtual`, which needs neither Linux nor root"), ("shell", "")]
)
def test_a_machine_that_lacks_something_is_status_4(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, also: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lacking = Capability(SANDBOX, False, True, "no fabric", "run with sudo", "the kernel refused unshare")
    monkeypatch.setattr(capabilities, "probe", lambda: [lacking])
    ended = call(command, QUICKSTART)
    assert ended.status == 4
    why = "sandbox of namespaces is missing (no fabric): the kernel refused unshare. Fix: run with sudo"
    assert ended.said == [f"mrc-testbed: {why}{also}"]
    assert list(tmp_path.iterdir()) == [], "nothing was begun"


def test_attach_without_a_run_going_on_is_status_2(
    call: Call, tmp_path: Path, going_on: Callable[[Path], None]
) -> None:
    ended = call("attach", "--out", str(tmp_path))
    assert (ended.status, ended.said) == (2, [f"mrc-testbed: {tmp_path}: no run is going on there"])
    for name in ("20260101T000000Z-a", "20260101T000001Z-b"):
        (tmp_path / name / "logs").mkdir(parents=True)
        going_on(tmp_path / name)
    ended = call("attach", "--out", str(tmp_path))
    assert ended.status == 2
    assert "2 runs are going on there: say which one of 20260101T000000Z-a, 20260101T000001Z-b" in ended.err


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: Any, **__: Any) -> int:
        raise error

    monkeypatch.setattr(run_module, "run_scenario", fail)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (RunError("h0: no answer"), 3, "mrc-testbed: h0: no answer"),
        (MissingCapability("tc is missing", "apt-get install iproute2"), 4, None),
        (ZeroDivisionError("by 0"), 3, "mrc-testbed: internal error: ZeroDivisionError: by 0 (more with --debug)"),
        (OSError(5, "Input/output error"), 3, "mrc-testbed: a disk or another device failed (input/output error)"),
        (PermissionError(13, "Permission denied", Path("/far/off")), 2, "mrc-testbed: /far/off: Permission denied"),
        (OSError(36, "File name too long", "x" * 3), 2, "mrc-testbed: xxx: File name too long"),
    ],
)
def test_an_error_is_one_line_and_with_debug_a_traceback_before_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, line: str | None
) -> None:
    fails_with(monkeypatch, error)
    ended = call("run", QUICKSTART)
    assert ended.status == status
    assert len(ended.said) == 1
    assert line in (None, ended.said[0])
    assert line or str(error) in ended.err
    debugged = call("--debug", "run", QUICKSTART)
    assert debugged.status == status
    assert debugged.said[0] == "Traceback (most recent call last):"
    assert debugged.said[-1] == ended.said[0]


BUILDING = 'Error building "model" validator:\n  SchemaError: Error building "literal" validator:\n  KeyboardInterrupt:'
"""What pydantic says where Ctrl-C comes while it builds a validator."""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SchemaError(BUILDING)])
def test_ctrl_c_is_status_130_and_says_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fails_with(monkeypatch, error)
    ended = call("run", QUICKSTART)
    assert (ended.status, ended.out, ended.err) == (130, "", "")


def test_the_status_of_a_run_is_that_of_the_command(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run_scenario(scenario: Any, out: Path, quiet: bool, console: Any, audience: Any, name: str) -> RunOutcome:
        asked.append((scenario.name, scenario.seed, scenario.fabric.planes, out, quiet))
        return RunOutcome(ExitCode.FAIL, 1.0)

    monkeypatch.setattr(run_module, "run_scenario", run_scenario)
    options = ("--seed", "3", "--set", "fabric.planes=2", "--set", "faults=[]", "--set", "expect=[]")
    assert call("run", QUICKSTART, *options, "--out", "there", "-q").status == 1
    assert asked == [("quickstart", 3, 2, Path("there"), True)]


@pytest.mark.parametrize("arguments", [["schema"], ["topo", "show", QUICKSTART], ["--help"]])
@pytest.mark.nightly(keep=1)
def test_a_reader_that_leaves_is_no_failed_run(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as nobody:
        ran = subprocess.run([COMMAND, *arguments], stdout=nobody, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 128 + signal.SIGPIPE
    assert ran.stderr == ""


def test_validate_reports_every_file(call: Call, tmp_path: Path) -> None:
    ended = call("validate", broken(tmp_path), QUICKSTART, broken(tmp_path, "second.yaml"), str(tmp_path / "none.yaml"))
    assert ended.status == 2
    assert re.fullmatch(rf"{re.escape(QUICKSTART)}: ok: quickstart, takes about \d+ s\n", ended.out)
    needing = call("validate", QUICKSTART, "--set", "fabric.switch=program").out
    assert needing.endswith(" s; needs the port program, see `mrc-testbed doctor`\n")
    assert "broken.yaml:2:10: fabric.plains: " in ended.err
    assert "second.yaml:2:10: fabric.plains: " in ended.err
    assert "none.yaml:1:1: scenario: no such file" in ended.err
    assert "Traceback" not in ended.err


def test_validate_of_good_files_is_status_0(call: Call) -> None:
    ended = call("validate", QUICKSTART, QUICKSTART, "--seed", "5")
    assert (ended.status, ended.err) == (0, "")
    assert len(ended.out.splitlines()) == 2


def test_validate_says_what_is_drawn_and_warns_when_nothing_is(call: Call) -> None:
    often = "faults=[{at: 1s, for: 5s, chaos: {link-flap: OFTEN}, name: storm}]"
    kept = ("--set", "expect=[]", "--set")
    ended = call("validate", QUICKSTART, *kept, often.replace("OFTEN", "60/min"))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[1].startswith("  storm: chaos: ")
    ended = call("validate", QUICKSTART, *kept, often.replace("OFTEN", "0.0001/h"))
    assert ended.status == 0
    assert ended.err == "warning: storm: seed 7 draws nothing in 5s; raise the rate or make it longer\n"


def test_replay_of_no_run_is_status_2(call: Call, tmp_path: Path) -> None:
    ended = call("replay", str(tmp_path))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"mrc-testbed: {tmp_path}: has no scenario.yaml: not a run folder\n"


def test_validate_warns_of_more_packets_than_the_machine_carries(call: Call) -> None:
    options = ("--set", "fabric.port_rate=1gbit", "--set", "faults=[]", "--set", "expect=[]")
    ended = call("validate", QUICKSTART, *options)
    assert ended.status == 0
    assert all(line.startswith("warning: ") for line in ended.said)
    assert "packets" in ended.err


def accepts(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    """Is every key of `value` one that the schema knows? Values are not looked at."""
    if "$ref" in schema:
        return accepts(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return any(accepts(choice, value, root) for choice in choices)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return all(accepts(schema["items"], item, root) for item in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        required = set(schema.get("required", ()))
        return required <= value.keys() <= known.keys() and all(
            accepts(known[key], item, root) for key, item in value.items()
        )
    return schema.get("type") != "object"


def test_the_schema_knows_the_keys_of_the_quickstart(call: Call) -> None:
    ended = call("schema")
    assert ended.status == 0
    schema = json.loads(ended.out)
    assert schema["$schema"].startswith("http://json-schema.org/draft-07")
    scenario = YAML(typ="safe").load(Path(QUICKSTART).read_text())
    assert accepts(schema, scenario, schema)
    for change in ({"plains": 2}, {"fabric": {"plains": 2}}, {"faults": [{"at": "1s", "link-flop": "x"}]}):
        assert not accepts(schema, {**scenario, **change}, schema), change


def test_topo_show_and_shell_judge_nothing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    nic_port, over_tcp = str(ROOT / "scenarios" / "lessons" / "nic-port.yaml"), ("--set", "transport=tcp")
    assert "data_on_bad_ev" in call("validate", nic_port, *over_tcp).err
    ended = call("topo", "show", nic_port, *over_tcp)
    assert (ended.status, ended.err) == (0, "")
    assert "a T0 hashes each flow" in ended.out
    opened: list[Scenario] = []

    def open_shell(scenario: Scenario, _: list[str]) -> int:
        opened.append(scenario)
        return 0

    monkeypatch.setattr("mrc_testbed.testbed.app.shell.open_shell", open_shell)
    assert call("shell", nic_port, *over_tcp).status == 0
    assert opened[0].transport == "tcp"


def test_topo_show_prints_table_and_drawing_and_writes_svg(call: Call, tmp_path: Path) -> None:
    ended = call("topo", "show", QUICKSTART, "--svg", str(tmp_path / "fabric.svg"))
    assert (ended.status, ended.err) == (0, "")
    assert "4 planes x (2 T0 + 4 T1), 4 hosts a T0" in ended.out
    assert "┌─ plane 0 ─" in ended.out
    assert "│ group 1  h4  h5  h6  h7" in ended.out
    drawing = ElementTree.parse(tmp_path / "fabric.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert any("p0-t1-3" in (element.text or "") for element in drawing.iter())


def test_topo_show_follows_set(call: Call) -> None:
    options = ("--set", "fabric.planes=2", "--set", "faults=[]", "--set", "expect=[]")
    ended = call("topo", "show", QUICKSTART, *options)
    assert "2 planes x (2 T0 + 4 T1)" in ended.out
    assert "plane 2" not in ended.out


def test_a_drawing_that_cannot_be_written_is_one_line(call: Call, tmp_path: Path) -> None:
    (tmp_path / "no").touch()
    ended = call("topo", "show", QUICKSTART, "--svg", str(tmp_path / "no" / "fabric.svg"))
    assert ended.status == 2
    (said,) = ended.said
    assert said.startswith(f"mrc-testbed: --svg {tmp_path}/no/fabric.svg: cannot be written: ")


def test_a_drawing_makes_its_folder(call: Call, tmp_path: Path) -> None:
    drawing = tmp_path / "new" / "fabric.svg"
    assert call("topo", "show", QUICKSTART, "--svg", str(drawing)).status == 0
    assert drawing.read_text().startswith("<svg")


def test_doctor_and_clean_hand_on_what_they_found(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("mrc_testbed.testbed.report.doctor.show_doctor", lambda: 4)
    assert call("doctor").status == 4
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = call("clean", "--out", str(tmp_path))
    assert (ended.status, ended.out) == (0, f"{tmp_path}: nothing to clean\n")
    monkeypatch.setattr(
        "mrc_testbed.testbed.app.clean.finish_abandoned", lambda out: [Cleaned(out / "run", "was killed", True)]
    )
    ended = call("clean", "--out", str(tmp_path))
    assert (ended.status, ended.out) == (0, f"{tmp_path}/run: was killed\n")
    monkeypatch.setattr(
        "mrc_testbed.testbed.app.clean.finish_abandoned", lambda out: [Cleaned(out / "run", "is spoiled", False)]
    )
    ended = call("clean", "--out", str(tmp_path))
    assert (ended.status, ended.err) == (3, f"{tmp_path}/run: is spoiled\n")


def test_validate_predicts_on_request_with_formulas_and_once_for_equal_cells(call: Call) -> None:
    ended = call("validate", QUICKSTART, "--predict", "--matrix", "seed=1,2")
    said = ended.out.splitlines()
    assert ended.status == 0
    assert sum(line.startswith("    line rate ") for line in said) == 1
    assert "5.76 MiB/s of a host's data: 4 ports x 12.5 Mb/s x 4096 / 4238" in ended.out
    assert "2(N-1) to(size/N) + to(1), size = 4MiB, N = 8" in ended.out
    assert max(map(len, said)) <= 120


def test_validate_says_that_it_predicts_a_run_at_scale(call: Call) -> None:
    ended = call("validate", QUICKSTART, "--predict", "--set", "world=virtual", "--set", "scale=real")
    assert "  without faults, 8000 times as fast as written:\n    packet" in ended.out


@pytest.mark.nightly
def test_validate_predicts_for_every_shipped_scenario(call: Call) -> None:
    for one in shipped():
        lines = call("validate", one.name, "--predict").out.splitlines()
        assert any(line.startswith("    plane-BDP ") for line in lines), one.name
