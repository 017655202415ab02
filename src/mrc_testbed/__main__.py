"""The command `mrc-testbed`, and `python -m mrc_testbed`: what must be so before anything else is loaded."""

# No `from __future__`, and no other import here: it could come from the current folder.
from mrc_testbed.testbed.isolated import leave_out_the_current_folder


def main() -> None:
    """Entry point. Loading takes a while, and Ctrl-C or SIGTERM may come meanwhile."""
    leave_out_the_current_folder()

    import sys

    from mrc_testbed.testbed.errors import ExitCode
    from mrc_testbed.testbed.interrupts import send_swallowed_again, stopping_as_ctrl_c

    try:
        with stopping_as_ctrl_c():
            send_swallowed_again()
            _run()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def _run() -> None:
    from mrc_testbed.testbed.errors import end_for, lack_of

    try:
        from mrc_testbed.testbed import cli
    except (OSError, MemoryError, ImportError, SystemError) as error:
        if not (lack := lack_of(error)):
            raise
        end_for(lack)
    cli.main()


if __name__ == "__main__":
    main()
