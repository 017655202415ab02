"""asked.jsonl: what prompts have sent in a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.rundir.asked import ASKED, note_asked, packets_asked


def test_what_several_prompts_have_sent_is_added_up_by_host(tmp_path: Path) -> None:
    assert not packets_asked(tmp_path)
    for host, packets in (("h0", 5), ("h1", 3), ("h0", 7)):
        note_asked(tmp_path, host, packets)
    assert packets_asked(tmp_path) == {"h0": 12, "h1": 3}


def test_a_folder_that_takes_no_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"cannot write .*{ASKED}"):
        note_asked(tmp_path / "gone", "h0", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")
def test_what_root_writes_belongs_to_the_owner_of_the_folder(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    note_asked(tmp_path, "h0", 1)
    assert (tmp_path / ASKED).stat().st_uid == 65534
