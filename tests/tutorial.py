"""docs/tutorial.md as data: the files it writes, its commands, the output it shows, and a shell that runs them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
PROMPT = "$ "
ELIDED = "..."
"""A line of output in place of any number of lines."""


class Block(NamedTuple):
    """A fenced block: `console` (run by a test), `sh` (for a person only), `yaml` (a file)."""

    kind: str
    lines: tuple[str, ...]


class Command(NamedTuple):
    """A command and the lines of output that the page shows below it."""

    text: str
    output: tuple[str, ...]


def blocks() -> list[Block]:
    """All fenced blocks, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [Block(kind, tuple(text.splitlines())) for kind, text in found]


def scenario_file(block: Block) -> tuple[str, str]:
    """Name and text of a `yaml` block, whose first line is `# NAME`."""
    name = block.lines[0].removeprefix("# ")
    return name, "\n".join(block.lines) + "\n"


def console(block: Block) -> Iterator[Command]:
    """The commands of a `console` block. A line that ends in a backslash goes on in the next one."""
    lines = list(block.lines)
    while lines:
        assert lines[0].startswith(PROMPT), f"output without a command: {lines[0]}"
        text = lines.pop(0).removeprefix(PROMPT)
        while text.endswith("\\"):
            text = f"{text[:-1]}{lines.pop(0).removeprefix('> ').lstrip()}"
        output = []
        while lines and not lines[0].startswith(PROMPT):
            output.append(lines.pop(0))
        yield Command(text, tuple(output))


def commands() -> list[Command]:
    """Those of all `console` blocks."""
    return [command for block in blocks() if block.kind == "console" for command in console(block)]


def is_exact(command: Command) -> bool:
    """Is its output the same on every machine? What runs on the kernel needs root."""
    return not command.text.startswith("sudo")


def typed() -> list[str]:
    """Every command line of the page, run by a test or not."""
    by_hand = [line for block in blocks() if block.kind == "sh" for line in block.lines]
    return [line.partition(" #")[0].rstrip() for line in by_hand if line] + [one.text for one in commands()]


def run_all(folder: Path, environment: Mapping[str, str]) -> list[tuple[Command, list[str]]]:
    """Write the files and run the commands in one shell, in the page's order. Each command with what it printed."""
    script, ran = [], []
    for block in blocks():
        if block.kind == "yaml":
            name, text = scenario_file(block)
            script += [f"cat > {name} <<'END_OF_FILE'\n{text}END_OF_FILE"]
        elif block.kind == "console":
            for command in console(block):
                # The mark keeps the exit status, so that `echo $?` means the command before.
                script += [f"status=$?; printf '{_MARK}\\n'; (exit $status)", command.text]
                ran.append(command)
    shell = subprocess.run(
        ["bash", "-s"],
        input="\n".join(script) + "\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=dict(environment),
        check=False,
    )
    _, *outputs = shell.stdout.split(f"{_MARK}\n")
    assert len(outputs) == len(ran), shell.stdout
    return list(zip(ran, map(str.splitlines, outputs), strict=True))


def unlike(shown: Iterable[str], printed: Iterable[str], exact: bool = False) -> list[str]:
    """Lines that the page shows and that were not printed in this order. Blanks and the names of run folders do not
    count, and figures only if `exact`."""
    form = _plain if exact else _shape
    rest = "\n".join(map(form, printed))
    missing = []
    for line in shown:
        if line.strip() and line != ELIDED:
            _, found, after = rest.partition(form(line))
            if found:
                rest = after
            else:
                missing.append(line)
    return missing


def verdicts(lines: Iterable[str]) -> dict[str, str]:
    """Check -> its word, of a summary; and scenario -> its verdict."""
    found = (re.match(r"(pass|PASS|FAIL|\?|INCONCLUSIVE) {2,}(\S.*?) {2,}", line) for line in lines)
    return {match[2]: match[1] for match in found if match}


_MARK = "@@@ next command @@@"


_NEAREST = re.compile(r" \[[^]]* this packet\]")
"""How far a comment of a capture is from its packet, on either side. Comments on one packet are in one line."""


def _plain(line: str) -> str:
    """A line without the name of its run folder, and runs of blanks as one."""
    return " ".join(re.sub(r"\b\d{8}T\d{6}Z", "UTC", line).split())


def _shape(line: str) -> str:
    """A line with every figure, with its sign, as N, and runs of blanks and the rule of a table as one character."""
    words = re.sub(r"-?\d[\d.,]*", "N", _NEAREST.sub("", line)).split()
    return re.sub("─+", "─", " ".join(words))
