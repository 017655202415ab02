"""A fabric whose packets are drawn: what the tests of the mapper judge it by."""
