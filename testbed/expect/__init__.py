"""The expectation language: figures of a run, and expectations about them.

A figure is `METRIC[.STAT] [of WHOM] [WINDOW]`; an expectation is a figure, an operator and a bound. This package parses
and prints both; `mrc_testbed.testbed.checks` evaluates them. Pure.
"""

from __future__ import annotations

from mrc_testbed.testbed.expect.figure import Figure, parse_figure
from mrc_testbed.testbed.expect.grammar import Absolute, Expectation, OfClean, parse_expectation
from mrc_testbed.testbed.expect.metrics import METRICS, known_metrics, with_metrics
from mrc_testbed.testbed.expect.reserved import is_reserved
from mrc_testbed.testbed.expect.scanner import ExpectError
from mrc_testbed.testbed.expect.scope import EVERYBODY, Scope, ScopeKind
from mrc_testbed.testbed.expect.spelling import all_known, did_you_mean
from mrc_testbed.testbed.expect.vocabulary import OPERATORS, Metric, Severity
from mrc_testbed.testbed.expect.window import Length, Moment, Span, Window

__all__ = [
    "EVERYBODY",
    "METRICS",
    "OPERATORS",
    "Absolute",
    "ExpectError",
    "Expectation",
    "Figure",
    "Length",
    "Metric",
    "Moment",
    "OfClean",
    "Scope",
    "ScopeKind",
    "Severity",
    "Span",
    "Window",
    "all_known",
    "did_you_mean",
    "is_reserved",
    "known_metrics",
    "parse_expectation",
    "parse_figure",
    "with_metrics",
]
