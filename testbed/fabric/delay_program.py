"""The process of the kernel delay, compiled (testbed/fabric/compiled.py)."""

from __future__ import annotations

import sys
from pathlib import Path

from mrc_testbed.testbed.fabric.compiled import Recipe, report_only

SOURCE = Path(__file__).with_name("c") / "kernel_delay.c"
FIX = "make setup, or apt-get install clang libc6-dev linux-libc-dev"
RECIPE = Recipe(SOURCE, ("-O2", "-g"), "the kernel delay", "kernel-delay", "", FIX)

if __name__ == "__main__":
    sys.exit(report_only(RECIPE))
