"""A row of any form through all steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from mrc_testbed.testbed.interop.by_capture import capture_row
from mrc_testbed.testbed.interop.by_channel import ChannelJudging
from mrc_testbed.testbed.interop.entries import Listed, ListedCapture, ListedImage, ListedProgram, RowForm
from mrc_testbed.testbed.interop.images import ImageProgram, engine
from mrc_testbed.testbed.interop.judging import Judging
from mrc_testbed.testbed.interop.results import Row, StepMark, StepResult, judge_each
from mrc_testbed.testbed.interop.steps import STEPS, ContractStep


def row_of(
    entry: Listed,
    place: Path,
    told: Callable[[StepResult], None],
    steps: tuple[ContractStep, ...] = STEPS,
    container_engine: str = "",
) -> Row:
    """Judge all steps; each is told when it is over. `place`: where its runs are written. `container_engine`: what runs
    images; empty: docker or podman. Raises TestbedError for what is no fault of the endpoint."""
    match entry:
        case ListedCapture():
            return capture_row(entry, told, steps)
        case ListedImage():
            return _image_row(entry, place, told, steps, container_engine)
        case ListedProgram(form=RowForm.CHANNEL):
            return ChannelJudging(entry, place).row(told, steps)
        case ListedProgram():
            return Judging(entry, place).row(told, steps)
    raise AssertionError(entry)


def _image_row(
    entry: ListedImage,
    place: Path,
    told: Callable[[StepResult], None],
    steps: tuple[ContractStep, ...],
    container_engine: str,
) -> Row:
    """Where nothing can run it, no step says anything."""
    runs = engine(container_engine)
    lacks = runs.lacks_image(entry.image)
    if not lacks:
        return Judging(ImageProgram(entry, runs), place).row(told, steps)
    lacking = partial(StepResult, mark=StepMark.NOT_APPLICABLE, reasons=(lacks,))
    return Row(entry, "", judge_each(steps, lacking, told))
