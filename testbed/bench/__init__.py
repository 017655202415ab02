"""The benchmark of AI fabrics that a working group of the IETF drafts: its formulas, its tests, what comes of them."""
