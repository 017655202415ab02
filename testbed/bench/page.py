"""bench.html: the results of a benchmark for people, in a file of its own."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.bench.document import BenchDocument
from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.pages.bench.page import bench_page
from mrc_testbed.testbed.rundir.ownership import write_given

PAGE_FILE = "bench.html"


def write_page(document: BenchDocument, page: Path, command: str) -> None:
    """`command`: what makes it again. Raises RunError if it cannot be written."""
    try:
        write_given(page, bench_page(document.model_dump(mode="json"), command))
    except OSError as error:
        raise RunError(f"{page}: cannot be written: {error.strerror}") from error
