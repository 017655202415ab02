"""The command `mrc-testbed`, and `python -m testbed`: what must be so before anything else is loaded."""

from __future__ import annotations

import sys

from testbed.errors import ExitCode
from testbed.interrupts import send_swallowed_again


def main() -> None:
    """Entry point. Loading takes a while, and Ctrl-C may come meanwhile."""
    send_swallowed_again()
    try:
        from testbed import cli
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    cli.main()


if __name__ == "__main__":
    main()
