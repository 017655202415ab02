"""Plugins: what a scenario brings along that is no part of the testbed (docs/extend.md)."""
