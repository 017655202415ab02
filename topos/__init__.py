"""The fabric as pure data: from a shape come names, uSIDs, addresses, links, EV tables and routes.

No I/O and no dependency on the machine; the same shape always gives the same plan.
"""
