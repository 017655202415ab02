"""The tables of a run folder: one statement of their columns writes them and reads them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.rundir.files import RecordError
from mrc_testbed.testbed.rundir.packed import PackedRows, packed_rows, read_rows
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.tables import COMPLETIONS, CSV_TABLES, MESSAGES, WAITS, CsvTable, Wait


def rows_of(table: CsvTable[Any]) -> list[Any]:
    """Two rows of it, with a value of its own in each cell."""
    texts = [column.type == "text" for column in table.columns]
    return [table.row(*(f"x{n}{i}" if text else 10 * n + i for i, text in enumerate(texts))) for n in (1, 2)]


@pytest.mark.parametrize("table", CSV_TABLES, ids=lambda table: table.name)
def test_what_is_written_is_read_back(tmp_path: Path, table: CsvTable[Any]) -> None:
    recorder = Recorder(tmp_path)
    first, second = rows_of(table)
    recorder.rows(table, [first])
    recorder.rows(table, [second])
    recorder.close()
    assert (tmp_path / table.file).read_text().startswith(",".join(table.names) + "\n")
    assert list(read_rows(tmp_path, table)) == [first, second]
    packed = packed_rows(tmp_path, table)
    assert [packed[place] for place in range(len(packed))] == list(packed) == [first, second]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    """Another version may have written them in another order, or more of them."""
    (tmp_path / "waits.csv").write_text("peer,host,hue,step,wait_ns\nh1,h0,red,3,70\n")
    assert list(read_rows(tmp_path, WAITS)) == [Wait("h0", 3, "h1", 70)]


def test_a_run_without_the_file_has_no_rows(tmp_path: Path) -> None:
    assert list(read_rows(tmp_path, MESSAGES)) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [("h0,1", "a line lacks or misspells 'begin_ns': {'host': 'h0', 'step': '1'}"), ("h0,one,2,3,4,5", "'one'")],
)
def test_a_line_that_is_no_row_is_told(tmp_path: Path, line: str, says: str) -> None:
    (tmp_path / "completions.csv").write_text(f"{','.join(COMPLETIONS.names)}\n{line}\n")
    with pytest.raises(RecordError) as caught:
        list(read_rows(tmp_path, COMPLETIONS))
    assert caught.value.path == tmp_path / "completions.csv"
    assert says in caught.value.detail


def test_a_number_of_more_than_64_bits_is_no_count(tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text(f"host,step,peer,wait_ns\nh0,1,h1,{1 << 63}\n")
    with pytest.raises(RecordError, match="waits"):
        packed_rows(tmp_path, WAITS)


def test_a_text_that_comes_again_is_kept_once(tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text("host,step,peer,wait_ns\nh0,1,h1,70\nh0,2,h1,70\n")
    first, second = read_rows(tmp_path, WAITS)
    assert first.host is second.host
    assert first.peer is second.peer


def test_numbers_may_outgrow_32_bits_in_the_middle_of_a_table() -> None:
    """Blocks of a large table come one after the other."""
    found = PackedRows(WAITS)
    for wait_ns in (70, 1 << 40, -5, (1 << 63) - 1):
        found.add([["h0"], ["1"], ["h1"], [str(wait_ns)]])
    assert list(found.column("wait_ns")) == [70, 1 << 40, -5, (1 << 63) - 1]
    assert list(found.columns("host", "wait_ns"))[1] == ("h0", 1 << 40)


def test_a_line_with_a_cell_more_does_not_shift_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "waits.csv").write_text("host,step,peer,wait_ns\nh0,1,h1,70,8\nh0,2,h1,71\n")
    assert list(packed_rows(tmp_path, WAITS)) == [Wait("h0", 1, "h1", 70), Wait("h0", 2, "h1", 71)]


def test_lines_whose_cells_add_up_are_still_told_apart(tmp_path: Path) -> None:
    """One has a cell too many, the next one too few."""
    (tmp_path / "waits.csv").write_text("host,step,peer,wait_ns\nh0,1,h1,70,8\nh0,2,h1\n")
    with pytest.raises(RecordError, match="'wait_ns'"):
        packed_rows(tmp_path, WAITS)
