"""`mrc-testbed plan` and its options."""
