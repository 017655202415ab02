"""Who is broken: evidence of endpoints and probes as places in the fabric, with how sure that is. Pure."""
