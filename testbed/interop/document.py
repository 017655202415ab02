"""What a judging came to, as JSON types: for `--json`, for matrix.json and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrc_testbed.testbed.interop.program import VERSION
from mrc_testbed.testbed.interop.results import Row
from mrc_testbed.testbed.interop.steps import ContractStep


def document(rows: Sequence[Row], steps: Sequence[ContractStep]) -> dict[str, Any]:
    """`steps`: those that were taken."""
    return {
        "contract": VERSION,
        "steps": [{"number": step.number, "word": step.word, "title": step.title} for step in steps],
        "rows": [
            {
                "name": row.entry.name,
                "says": row.says,
                "form": row.entry.form.value,
                "role": row.entry.role.value,
                "notes": list(row.notes),
                "steps": [
                    {
                        "number": result.step.number,
                        "word": result.step.word,
                        "mark": result.mark.value,
                        "reasons": list(result.reasons),
                        "folders": list(result.folders),
                    }
                    for result in row.results
                ],
            }
            for row in rows
        ],
    }
