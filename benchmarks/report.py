"""What report.html costs beside what is done with a run folder anyway: size, and CPU time of making it against reading
and judging. Nothing is written beside it. With `--times 120` a run of 30 s is first made one of an hour.

    python -m benchmarks.report [--times N] results/latest
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from benchmarks.stretch import stretched
from mrc_testbed.testbed.checks.judge import judge
from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.pages.report.write import report_text
from mrc_testbed.testbed.report.summary import summary_text


def main() -> None:
    """A line for each folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", metavar="RUN", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=1, help="stretch the run N times")
    given = parser.parse_args()
    print("workload      page  made in  read and judged in  ratio  read in  memory, at most")
    with tempfile.TemporaryDirectory() as place:
        for folder in given.folders:
            measure(stretched(folder.resolve(), given.times, Path(place)) if given.times > 1 else folder)


def measure(folder: Path) -> None:
    """One folder. The first page of a process pays for the templates too, as at the end of a run."""
    began = time.process_time()
    record = load_record(folder)
    read_s = time.process_time() - began
    verdict = judge(record)
    summary_text(verdict, record)
    judged = time.process_time()
    page = report_text(record, verdict)
    made_s, judged_s = time.process_time() - judged, judged - began
    workload_s = (record.end_ns - (record.start_ns or record.end_ns)) / 1e9
    size = f"{len(page.encode()) / 1e3:,.0f} kB"
    memory = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB"
    print(
        f"{workload_s:6.1f} s {size:>9} {made_s * 1e3:5.0f} ms {judged_s * 1e3:16.0f} ms  {made_s / judged_s:5.2f} "
        f"{read_s:6.1f} s {memory:>16}"
    )


if __name__ == "__main__":
    main()
