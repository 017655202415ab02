"""Transports as values: one file a protocol, and everything that is known of it."""
