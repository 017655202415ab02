"""Endpoints that are not ours, as programs that speak contract 1 (docs/contract.md), beside our own in virtual time."""
