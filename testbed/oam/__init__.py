"""Ping and trace of switches: what a host asks, what comes back, and what a person is shown. Pure."""
