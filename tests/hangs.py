"""How long a test waits for a process that ends by itself: a guard against one that hangs, no measure of its speed.

A busy machine makes pure tests ten times as slow, and nothing tries them again (tests/retry.py).
"""

HANGS_S = 240
"""Seconds. What a test waits for in all ends with the limit of the test itself (`timeout` in pyproject.toml)."""
