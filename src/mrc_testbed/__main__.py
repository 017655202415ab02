"""The command `mrc-testbed`, and `python -m mrc_testbed`: what must be so before anything else is loaded."""

# No `from __future__`, and no other import here: it could come from the current folder.
from mrc_testbed.testbed.isolated import leave_out_the_current_folder


def main() -> None:
    """Entry point. Loading takes a while, and Ctrl-C may come meanwhile."""
    leave_out_the_current_folder()

    import sys

    from mrc_testbed.testbed.errors import ExitCode, end_for, lack_of
    from mrc_testbed.testbed.interrupts import send_swallowed_again

    send_swallowed_again()
    try:
        from mrc_testbed.testbed import cli
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except (OSError, MemoryError, ImportError, SystemError) as error:
        if not (lack := lack_of(error)):
            raise
        end_for(lack)
    cli.main()


if __name__ == "__main__":
    main()
