"""Lessons that check themselves: a folder of data, judged against the student's own run (docs/lessons.md)."""
