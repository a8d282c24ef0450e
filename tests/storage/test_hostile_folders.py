"""Run folders made to attack whoever opens them; see ``jobs/faults/hostile.py``."""

from pathlib import Path

import pytest

from jobs.faults.hostile import try_folders


@pytest.mark.slow
@pytest.mark.processes
def test_nothing_happens_while_fifty_hostile_folders_are_read(tmp_path: Path) -> None:
    assert try_folders(50, 0, tmp_path.resolve()) == []
