"""The protocols and the daemons that speak them."""

from mrc_testbed.hosts import compiled

compiled.use_what_fits()
