"""Kernels are compiled once, said once, and shared out among threads."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from nearer._kernels import comparisons
from nearer._kernels.comparisons import side_by_side

FIRST = """
import numpy as np
from nearer._kernels.compiling import when_compiling
from nearer._kernels.comparisons import information
with when_compiling(lambda: print("compiling")):
    for n in (3, 4):
        information(np.eye(n), np.array([[0, 1, 2]]), np.ones(1), 0.0, 0.0)
"""


@pytest.mark.slow
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

    with pytest.raises(ValueError, match=r"part [01]"):
        side_by_side(work, 4, 2)


def test_what_goes_wrong_elsewhere_is_raised_here_and_ends_the_rest(monkeypatch):
    monkeypatch.setattr(comparisons, "_CORES", 2)
    here, begun, done = threading.get_ident(), threading.Event(), []

    def work(part, rows):
        if threading.get_ident() != here:
            begun.set()
            raise ValueError(f"part {part}")
        begun.wait(10)
        done.append(part)

    with pytest.raises(ValueError, match="part"):
        side_by_side(work, 8, 8)
    assert len(done) == 7

    def interrupted(part, rows):
        done.append(part)
        raise KeyboardInterrupt

    done.clear()
    with pytest.raises(KeyboardInterrupt):
        side_by_side(interrupted, 100, 100)
    assert len(done) <= 2


def test_parts_may_have_parts(monkeypatch):
    monkeypatch.setattr(comparisons, "_CORES", 2)
    count = np.zeros((4, 8))

    def inner(row):
        def work(part, rows):
            count[row, rows] += 1

        return work

    side_by_side(lambda part, rows: side_by_side(inner(part), 8, 4), 4, 4)
    assert (count == 1).all()
