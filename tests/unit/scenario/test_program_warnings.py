"""What `validate` warns of in commands, patterns and files of programs, and what it leaves alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.scenario.model.programs import NUMBER, Programs
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings
from mrc_testbed.testbed.scenario.text.shell_syntax import CommandLine

SHIPPED = Path(__file__).parents[3] / "scenarios/programs"
HEAD = "name: x\nfabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1}\n"


def warned(folder: Path, programs: str, rest: str = "") -> list[str]:
    path = folder / "x.yaml"
    path.write_text(f"{HEAD}workload:\n  - programs:\n      {programs}\n{rest}", encoding="utf-8")
    return [line for line in scenario_warnings(load_scenario(path)) if "packet of the workload" not in line]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train | tee out", "`|`"),
        ("train > out.log", "`>`"),
        ("train >out.log", "`>out.log`"),
        ("train 2>&1", "`2>&1`"),
        ("train 2>/dev/null", "`2>/dev/null`"),
        ("train < in", "`<`"),
        ("cd data && train", "`&&`"),
        ("train || true", "`||`"),
        ("train; sleep 1", "`train;`"),
        ("train ; sleep 1", "`;`"),
        ("train &", "`&`"),
        ("train& sleep 1", "`train&`"),
        ("ls *.log", "`*.log`"),
        ("pytest tests/test_?.py", "`tests/test_?.py`"),
        ("cat ~/data", "`~/data`"),
        ("train --rank $RANK", "`$RANK`"),
        ('train --rank "$RANK"', "`$RANK`"),
        ("train ${WORLD_SIZE}", "`${WORLD_SIZE}`"),
        ("train $(hostname)", "`$(hostname)`"),
        ("train `hostname`", "``hostname``"),
        ("(train)", ""),
        ("EPOCHS=3 python3 train.py", '`EPOCHS=3` is taken for the command; write `env: {EPOCHS: "3"}`'),
    ],
)
def test_what_a_shell_would_do_is_told(line: str, said: str) -> None:
    assert said in "; ".join(CommandLine.of(line.split(), line).shell)


@pytest.mark.parametrize(
    "line",
    [
        'python3 -c "a = 1; print(a > 0 and a & 1)"',
        "sh -c 'until train | tee out; do sleep 1; done &'",
        "awk '{print $1}' data",
        "curl http://h0:8080/?a=1&b=2",
        "curl http://[fd00:3::1]:8080/x",
        "grep --include=*.py a|b .",
        "find . -name *.py",
        r"echo \$HOME \> \*",
        "echo 'a' \"it's > b\"",
        "iperf3 -c h0 -t 12 -f m",
        "mpirun --host h0,h1 -x A=b ring",
        "train --lr=1e-3 data~1 a.b:c",
        "tr a-z A-Z",
    ],
)
def test_an_honest_command_is_left_alone(line: str) -> None:
    assert CommandLine.of(line.split(), line).shell == ()


@pytest.mark.parametrize(("words", "said"), [(["echo", "|", "tee"], True), (["echo", "$RANK", "*"], False)])
def test_of_a_list_of_words_only_operators_are_certain(words: Sequence[str], said: bool) -> None:
    assert bool(CommandLine.of(list(words)).shell) is said


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ("command: python3 train.py", "train.py is not among `files`, so no host has it; write `files: [train.py]`"),
        ("command: ./train.sh", "./train.sh is not among `files`"),
        ("command: torchrun --standalone train.py", "train.py is not among `files`"),
        (
            "command: env\n      metric: 'loss=([0-9.]+)'",
            "([0-9.]+) does not see nan, inf, -0.3, 1e-05; write 'loss=<value>'",
        ),
        ("command: env\n      metric: '(?P<rate>[0-9.]+) Mb'", "write '<rate> Mb'"),
    ],
)
def test_files_and_patterns_are_told(tmp_path: Path, programs: str, said: str) -> None:
    (warning,) = warned(tmp_path, programs)
    assert warning.startswith("job-1: ")
    assert said in warning


@pytest.mark.parametrize(
    "programs",
    [
        "command: python3 -m http.server",
        "command: python3 -c 'print(1)' train.py",
        "command: python3 /opt/train.py",
        "command: cat train.py",
        "command: env\n      metric: 'sent=(?P<sent>\\d+)'",
        "command: env\n      metric: 'loss=<loss> after <seconds> s'",
        "command: env\n      metric: 'loss=(?P<loss>\\S+)'",
    ],
)
def test_honest_files_and_patterns_are_left_alone(tmp_path: Path, programs: str) -> None:
    assert warned(tmp_path, programs) == []


def test_a_step_time_without_steps_is_told(tmp_path: Path) -> None:
    (warning,) = warned(tmp_path, "command: env", "expect: [step_time.p100 <= 2 s]\n")
    assert warning == (
        "step_time.p100 <= 2 s: nothing will be known of it: no program has `step`, the line that ends one"
    )
    assert warned(tmp_path, "command: env\n      step: 'done'", "expect: [step_time.p100 <= 2 s]\n") == []


@pytest.mark.parametrize(
    "text", ["2", "2.5", "-0.3", "+1", ".5", "1.", "1e-05", "3E+8", "nan", "-inf", "Infinity", "NaN"]
)
def test_a_number_is_what_programs_print(text: str) -> None:
    assert re.fullmatch(NUMBER, text)
    float(text)


def test_a_place_stands_for_a_number(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(f"{HEAD}workload: [{{programs: {{command: env, metric: 'loss=<loss> <unit>s'}}}}]\n")
    entry = load_scenario(path).jobs[0].entry
    assert isinstance(entry, Programs)
    assert list(entry.figures) == ["loss", "unit"]
    (pattern,) = entry.metric
    found = re.search(pattern, "step 3 loss=-1e-05 4.s")
    assert found is not None
    assert found.groupdict() == {"loss": "-1e-05", "unit": "4."}


def test_no_shipped_program_is_warned_of() -> None:
    for path in SHIPPED.glob("*.yaml"):
        assert not [line for line in scenario_warnings(load_scenario(path)) if "shell" in line or "metric" in line]
