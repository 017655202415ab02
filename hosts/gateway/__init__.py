"""IP over an endpoint: what programs send to each other's addresses travels as writes with immediates."""
