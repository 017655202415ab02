"""Commands of `mrc-testbed`, one a file. Each imports what it needs when it runs: `--help` must be quick."""
