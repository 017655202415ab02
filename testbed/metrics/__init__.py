"""A run as metrics that monitoring systems scrape: what there is (`registry`), of a run (`series`), as text
(`exposition`)."""
