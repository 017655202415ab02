"""Workloads in the formats of other tools: read into flows, graphs and size distributions, and written."""
