"""Variants and matrices: one file, several scenarios."""
