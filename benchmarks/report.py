"""What report.html costs beside what is done with a run folder anyway: size, and CPU time of making it against reading
and judging. Nothing is written.

    python benchmarks/report.py results/latest
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from testbed.checks.judge import judge
from testbed.checks.record import load_record
from testbed.report.page.write import report_text
from testbed.report.summary import summary_text


def main() -> None:
    """A line for each folder."""
    folders = [Path(name) for name in sys.argv[1:]]
    if not folders:
        sys.exit(f"{(__doc__ or '').strip().splitlines()[-1].strip()}: which run folders?")
    print("workload      page  made in  read and judged in  ratio")
    for folder in folders:
        measure(folder)


def measure(folder: Path) -> None:
    """One folder. The first page of a process pays for the templates too, as at the end of a run."""
    began = time.process_time()
    record = load_record(folder)
    verdict = judge(record)
    summary_text(verdict, record)
    judged = time.process_time()
    page = report_text(record, verdict)
    made_s, judged_s = time.process_time() - judged, judged - began
    workload_s = (record.end_ns - (record.start_ns or record.end_ns)) / 1e9
    size = f"{len(page.encode()) / 1e3:,.0f} kB"
    print(f"{workload_s:6.1f} s {size:>9} {made_s * 1e3:5.0f} ms {judged_s * 1e3:16.0f} ms  {made_s / judged_s:5.2f}")


if __name__ == "__main__":
    main()
