"""Kills at random moments, damaged folders and captures, limits: no traceback, nothing left, no wrong verdict."""
