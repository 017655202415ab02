"""The commands of `mrc-testbed`, one module each or a small family; mrc_testbed.testbed.cli registers them.

Importing them must be fast, because `--help` imports them all: a command imports what it needs when it runs.
"""
