"""The page of endpoints that were judged, from the document that says the same to programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from mrc_testbed.testbed.pages.assemble import assemble

_SHADES = {"pass": "pass", "fail": "fail", "n/a": "na"}
_FORMS = {"A": "program, form A", "B": "program, form B", "image": "container, form A", "pcap": "capture"}


def matrix_page(document: Mapping[str, Any], command: str) -> str:
    """`document`: as mrc_testbed.testbed.interop.document gives it. `command`: what was called."""
    values = {
        "contract": document["contract"],
        "headline": _headline(document),
        "steps": document["steps"],
        "rows": [_row(number, row, document) for number, row in enumerate(document["rows"], 1)],
        "command": command,
    }
    return assemble("interop/matrix.html", values, document, ("interop/matrix.css",))


def _headline(document: Mapping[str, Any]) -> str:
    marks = [step["mark"] for row in document["rows"] for step in row["steps"]]
    programs = len(document["rows"])
    noun = "endpoint" if programs == 1 else "endpoints"
    return (
        f"{programs} {noun}: {marks.count('pass')} steps passed, {marks.count('fail')} failed, {marks.count('n/a')} n/a"
    )


def _row(number: int, row: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    by_number = {step["number"]: step for step in document["steps"]}
    cells = [
        {
            "step": by_number[result["number"]],
            "mark": result["mark"],
            "shade": _SHADES[result["mark"]],
            "reasons": result["reasons"],
            "folders": [_folder(folder) for folder in result["folders"]],
        }
        for result in row["steps"]
    ]
    return {
        "anchor": f"program-{number}",
        "name": row["name"],
        "says": row["says"],
        "form": _FORMS[row["form"]],
        "role": row["role"],
        "notes": row["notes"],
        "cells": cells,
    }


def _folder(folder: str) -> dict[str, str]:
    word = folder.rpartition("/")[2]
    return {"word": word, "href": f"{quote(folder)}/"}
