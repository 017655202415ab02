"""compare.html: the comparison as one page."""
