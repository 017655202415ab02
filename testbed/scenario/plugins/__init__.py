"""Plugins: extensions that a scenario names (docs/extend.md)."""
