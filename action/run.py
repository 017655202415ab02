"""What the steps of action.yml do: `set-up` installs mrc-testbed, `run` runs the scenarios, with the exit status of the
command. Inputs come as variables of the environment, MRC_*; it needs nothing but the standard library.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
"""The repository in the version of the action."""
LONGEST = 200_000
"""Characters of the job's summary; GitHub takes a megabyte of bytes for a step."""


def given(name: str) -> str:
    return os.environ.get(f"MRC_{name}", "").strip()


def is_virtual() -> bool:
    """In virtual time. Other words than true and false are a mistake, not a guess."""
    if given("VIRTUAL") not in ("true", "false"):
        sys.exit(f"mrc-testbed action: virtual: {given('VIRTUAL')!r} is neither true nor false")
    return given("VIRTUAL") == "true"


def tell(file: str, text: str) -> None:
    """Append to the file that GitHub names in this variable; nothing where there is none, as outside of it."""
    if path := os.environ.get(file):
        with open(path, "a", encoding="utf-8") as out:
            out.write(text)


def set_up() -> int:
    """Install it: in an environment of its own, or for the kernel by the repository's own set-up."""
    if is_virtual():
        python = _environment(Path(os.environ["RUNNER_TEMP"]) / "mrc-testbed")
        wanted = f"mrc-testbed=={given('VERSION')}" if given("VERSION") else str(ROOT)
        status = subprocess.run([python, "-P", "-m", "pip", "install", "--quiet", wanted], check=False).returncode
    elif given("VERSION"):
        sys.exit("mrc-testbed action: version: on the kernel it is that of the action; leave it out")
    else:
        python = str(ROOT / ".venv" / "bin" / "python")
        status = subprocess.run([ROOT / "tools" / "setup"], check=False).returncode
    tell("GITHUB_OUTPUT", f"python={python}\n")
    return status


def _environment(folder: Path) -> str:
    """The Python of a fresh environment."""
    subprocess.run([sys.executable, "-P", "-m", "venv", str(folder)], check=True)
    return str(next(path for path in (folder / "Scripts" / "python.exe", folder / "bin" / "python") if path.exists()))


def command(out: Path) -> list[str]:
    """The call of `mrc-testbed run`."""
    words = [given("PYTHON"), "-P", "-m", "mrc_testbed", "run", *scenarios(given("SCENARIOS"))]
    words += ["--junit", str(out / "junit.xml"), "--json", str(out / "results.json"), "--out", str(out / "runs")]
    words += ["--retry-inconclusive", given("RETRY") or "0", *words_of(given("ARGUMENTS"))]
    if is_virtual():
        return [*words, "--virtual"]
    return words if os.geteuid() == 0 else ["sudo", *words]


def scenarios(text: str) -> list[str]:
    """The words, with the matching files in place of each pattern."""
    return [name for word in words_of(text) for name in (sorted(glob.glob(word, recursive=True)) or [word])]


def words_of(text: str, windows: bool = os.name == "nt") -> list[str]:
    """As a shell splits them; a backslash is part of a path on Windows."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    if windows:
        lexer.escape = ""
    return list(lexer)


def run() -> int:
    """The runs, the verdicts in the job's summary, and the outputs of the action. A call that ended well without a run
    fails: nothing was tested."""
    out = Path(given("OUT") or "mrc-results")
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.json"
    results.unlink(missing_ok=True)
    words = command(out)
    print(shlex.join(words), flush=True)
    status = subprocess.run(words, check=False).returncode
    told: dict[str, Any] = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    if "verdict" not in told:  # as what --dry-run would do has none
        told = {}
    tell("GITHUB_STEP_SUMMARY", summary(told, status))
    print("\n".join(annotated(told)), flush=True)
    if not status and not told:
        print("::error::the call ended with status 0, and no run took place: look at `scenarios` and `arguments`")
        status = 1
    outputs = {
        "exit-code": status,
        "verdict": told.get("verdict", "bad input"),
        "results": results.as_posix(),
        "junit": (out / "junit.xml").as_posix(),
    }
    tell("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))
    return status


def annotated(told: dict[str, Any]) -> list[str]:
    """A command to GitHub for each run that did not pass: its cause, at the line of the expectation."""
    found = []
    for each in told.get("runs", ()):
        if not (reason := str(each.get("reason") or "")):
            continue
        cause: dict[str, Any] = next(iter(each.get("causes") or ()), {})
        file, line = place_of(str(cause.get("place") or ""))
        keys = {"file": file or each["file"], **({"line": line} if line else {}), "title": each["scenario"]}
        level = "notice" if each["verdict"] in ("measured", "died") else "error"
        where = ",".join(f"{key}={_escaped(value, ',:')}" for key, value in keys.items())
        found.append(f"::{level} {where}::{_escaped(reason)}")
    return found


def place_of(text: str) -> tuple[str, str]:
    """File and line, empty where there is none. A path on Windows has a colon of its own."""
    file, _, line = text.rpartition(":")
    return (file, line) if line.isascii() and line.isdecimal() else (text, "")


def _escaped(text: str, more: str = "") -> str:
    """As GitHub reads it in a command."""
    return "".join(f"%{ord(each):02X}" if each in f"%\r\n{more}" else each for each in text)


def summary(told: dict[str, Any], status: int) -> str:
    """Markdown: a row for each run, and the whole summary of those that did not pass."""
    if not told:
        return f"mrc-testbed ended with status {status} before any run; the log of the step says why.\n"
    rows = ["| verdict | scenario | figures or reason |", "|---|---|---|"]
    for each in told["runs"]:
        why = str(each.get("reason") or each.get("headline") or "").replace("|", "\\|").replace("\n", " ")
        rows.append(f"| {each['verdict']} | {each['scenario']} | {why} |")
    text = "\n".join(rows) + "\n"
    for each in told["runs"]:
        page = Path(each["folder"] or "") / "summary.txt" if each.get("folder") else None
        if each["verdict"] != "pass" and page and page.exists() and len(text) < LONGEST:
            text += f"\n```\n{page.read_text(encoding='utf-8')[:20_000]}\n```\n"
    return text


if __name__ == "__main__":
    sys.exit({"set-up": set_up, "run": run}[sys.argv[1]]())
