"""The commands of `mrc-testbed`, one module each or a small family; testbed.cli registers them.

Importing them must stay quick, as `--help` imports them all: what a command needs is imported when it runs.
"""
