"""The fabric as pure data: a shape goes in, names, uSIDs, addresses, links, EV tables and routes come out.

Nothing here does I/O or looks at the machine; the same shape always gives the same plan.
"""
