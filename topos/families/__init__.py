"""Families of topologies, one a file. What each gives: `mrc_testbed.topos.graph.Family`."""
