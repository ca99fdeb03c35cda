"""Kernels are compiled once, said once, and shared out among threads."""

import subprocess
import sys

import numpy as np
import pytest

from nearer._kernels.compiling import side_by_side

FIRST = """
import numpy as np
from nearer._kernels.compiling import when_compiling
from nearer._kernels.kendall import kendall_tau_rows
with when_compiling(lambda: print("compiling")):
    kendall_tau_rows(np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3))
    kendall_tau_rows(np.arange(6).reshape(3, 2).T, np.ones((2, 3), dtype=np.float32))
"""


def test_compiling_is_said_the_first_time_only(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    said = [
        subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [run.stdout for run in said] == ["compiling\n", ""]
    assert len(list(tmp_path.rglob("*.nbc"))) == 1  # one type of arguments


@pytest.mark.parametrize(("n_rows", "n_parts"), [(10, 1), (10, 3), (2, 5), (0, 1)])
def test_every_row_is_worked_on_once(n_rows, n_parts):
    count, parts = np.zeros(n_rows), np.zeros(n_parts)

    def work(part, rows):
        count[rows] += 1
        parts[part] += 1

    side_by_side(work, n_rows, n_parts)
    assert (count == 1).all()
    assert (parts == 1).all()


def test_what_goes_wrong_in_a_part_is_raised():
    def work(part, rows):
        raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match="part 0"):
        side_by_side(work, 4, 2)
