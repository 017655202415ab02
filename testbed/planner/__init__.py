"""Fabrics on paper: the arithmetic, and its tables, pages and commands."""
