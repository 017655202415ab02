"""The command `mrc-testbed`, and `python -m testbed`: what must be so before anything else is loaded."""

# No `from __future__`, and no other import here: it could come from the current folder.
from testbed.isolated import leave_out_the_current_folder


def main() -> None:
    """Entry point. Loading takes a while, and Ctrl-C may come meanwhile."""
    leave_out_the_current_folder()

    import os
    import sys

    from testbed.errors import ExitCode, lack_of
    from testbed.interrupts import send_swallowed_again

    send_swallowed_again()
    try:
        from testbed import cli
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except (OSError, MemoryError, ImportError, SystemError) as error:
        if not (lack := lack_of(error)):
            raise
        os.write(2, f"mrc-testbed: {lack}\n".encode())
        os._exit(ExitCode.INCONCLUSIVE)  # what Python does at its own end may lack the same
    cli.main()


if __name__ == "__main__":
    main()
