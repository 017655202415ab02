"""Runs made of their figures alone, and what a terminal shows, with its styles as marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.segment import Segment

from mrc_testbed.testbed.checks.result import Fidelity, Status
from mrc_testbed.testbed.checks.verdict import Verdict
from mrc_testbed.testbed.compare.figures import RunFigures
from mrc_testbed.testbed.compare.runs import ComparedRun, load_run
from mrc_testbed.testbed.compare.table import WIDTH
from mrc_testbed.testbed.scenario.model.transports import WorldKind
from tests.unit.checks.test_folder import RunFolder

STEP, BACK, LOST, TRIMS, QPS = "step_time.median clean", "recovery.p100", "packets_lost", "trims", "qp_errors"


def one_run(
    settings: Mapping[str, str],
    seed: int,
    figures: Mapping[str, float],
    status: Status = Status.PASS,
    lacking: Mapping[str, str] | None = None,
) -> ComparedRun:
    """A run on the kernel; an inconclusive one is of a late machine."""
    fidelity = Fidelity((), caveat="late" if status is Status.INCONCLUSIVE else "")
    verdict = Verdict(status, "small", (), fidelity)
    folder = Path("-".join([*settings.values(), str(seed)]))
    known = RunFigures(figures, lacking or {})
    return ComparedRun(folder, "small", seed, WorldKind.KERNEL, "MRC", verdict, settings, known)


Doctor = Callable[[RunFolder], None]


def loaded(folder: Path, doctor: Doctor = lambda _: None, **about: Any) -> ComparedRun:
    """A run whose verdict is not asked."""
    run = RunFolder(**about)
    doctor(run)
    folder.mkdir()
    run.write(folder)
    return load_run(folder)


def healed_never(run: RunFolder) -> None:
    """The fault of this run goes on."""
    run.history = [line for line in run.history if line["op"] != "heal"]


def marked(*parts: RenderableType, width: int = WIDTH) -> list[str]:
    """The lines of a terminal without its rules; `r<text>` where the style begins with r: red; bold, dim, green."""
    console = Console(width=width, color_system="standard", force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    lines = ["".join(_marked(line)).rstrip() for part in parts for line in console.render_lines(part, pad=False)]
    return [line for line in lines if line.strip("\N{BOX DRAWINGS LIGHT HORIZONTAL} ")]


def _marked(segments: Iterable[Segment]) -> Iterable[str]:
    for text, style, _ in segments:
        words = str(style or "none").replace("bold ", "")
        yield text if words == "none" or not text.strip() else f"{words[0]}<{text}>"
