"""tools/test-distros: what needs neither root nor a mirror. The rest of it is tried by `make test-distros` itself."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.repository.developer_tools import loaded

DEB822 = """Types: deb
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security

Types: deb
URIs: http://mirror.example/debian/
Suites: bookworm
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("test-distros")


@pytest.mark.parametrize(
    ("name", "text", "mirror"),
    [
        ("sources.list", "deb http://mirror.example/debian trixie main\n", "http://mirror.example/debian"),
        (
            "sources.list",
            "deb [signed-by=/k arch=amd64] https://m.example/debian/ x main\n",
            "https://m.example/debian",
        ),
        ("sources.list.d/debian.sources", DEB822, "http://mirror.example/debian"),
        ("sources.list.d/other.list", "deb https://other.example/tools stable main\n", "http://deb.debian.org/debian"),
        ("sources.list", "deb http://archive.ubuntu.com/ubuntu noble main\n", "http://deb.debian.org/debian"),
    ],
    ids=["one-line", "options", "deb822", "not-debian", "ubuntu"],
)
def test_the_mirror_is_the_machines_first_debian(
    tool: ModuleType, tmp_path: Path, name: str, text: str, mirror: str
) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert tool.machines_mirror(tmp_path) == mirror


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("setup: done\nnetwork  T 40 ms\n\nPASS  quickstart  18 steps\n", "PASS  quickstart  18 steps"),
        ("===== 3 failed, 812 passed, 2 skipped in 301.42s (0:05:01) =====\n", None),
        (
            "== 5 passed in 1.00s ==\n== 7 passed, 1 warning in 2.00s ==\n",
            "5 passed in 1.00s; 7 passed, 1 warning in 2.00s",
        ),
        ("setup: apt-get update failed\nmake: *** [Makefile:7: setup] Error 4\n", "setup: apt-get update failed"),
        ("", ""),
    ],
    ids=["demo", "pytest", "two-pytests", "set-up", "nothing"],
)
def test_closing_lines(tool: ModuleType, output: str, line: str | None) -> None:
    assert tool.closing_lines(output) == (output.strip("= \n") if line is None else line)


@pytest.mark.parametrize(
    ("status", "target", "output", "result"),
    [
        (0, "demo", "", "PASS"),
        (2, "demo", "make: *** [Makefile:13: demo] Error 3\n", "INCONCLUSIVE"),
        (2, "demo", "make: *** [Makefile:13: demo] Error 1\n", "FAIL"),
        (2, "test", "make: *** [Makefile:16: test] Error 3\n", "FAIL"),
        (125, "demo", "", "NOT RUN"),
    ],
)
def test_result(tool: ModuleType, status: int, target: str, output: str, result: str) -> None:
    assert tool.result_of(status, target, output) == result


def test_only_what_a_network_needs_is_passed_on(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "NO_PROXY", "PIP_CERT", "UV_INDEX_URL", "SSL_CERT_FILE", "SECRET", "CIRCLE"):
        monkeypatch.setenv(name, "x")
    passed = tool.environment_inside()
    assert {"https_proxy", "NO_PROXY", "PIP_CERT", "UV_INDEX_URL", "SSL_CERT_FILE"} <= set(passed)
    assert not {"SECRET", "CIRCLE", "VIRTUAL_ENV"} & set(passed)


def refusal(tool: ModuleType, capsys: pytest.CaptureFixture[str], files: list[Path]) -> str:
    with pytest.raises(SystemExit) as stop:
        tool.check_machine(files)
    assert stop.value.code == 4
    return capsys.readouterr().err


def test_what_the_machine_lacks_is_one_line(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert refusal(tool, capsys, []) == "test-distros: needs root (mounts, namespaces): run it with sudo\n"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(tool, capsys, []) == "test-distros: needs debootstrap: apt-get install debootstrap\n"
    (tmp_path / "debootstrap").touch(mode=0o755)
    monkeypatch.setattr(tool, "FILE_SYSTEMS", tmp_path / "filesystems")
    tool.FILE_SYSTEMS.write_text("\text4\n", encoding="ascii")
    assert "no overlayfs" in refusal(tool, capsys, [])
    tool.FILE_SYSTEMS.write_text("nodev\toverlay\n", encoding="ascii")
    missing = tmp_path / "missing"
    assert refusal(tool, capsys, [missing]).endswith(f"no such file, or not an absolute path: {missing}\n")
    tool.check_machine([])
