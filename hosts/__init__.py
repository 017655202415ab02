"""The protocols and the daemons that speak them."""

from hosts import compiled

compiled.use_what_fits()
