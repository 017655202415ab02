"""The parts that expectations are written in; `testbed.checks.expect` puts them together. Pure."""
