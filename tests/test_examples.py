"""The examples run, and say what they should."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *args, cwd):
    command = [sys.executable, str(EXAMPLES / name), *args]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_llm_judge(tmp_path):
    out = run("llm_judge.py", "--stub", "--budget", "200", "--plot", "map.png", cwd=tmp_path)
    assert out.startswith("200 answers, ")
    assert "200 questions in" in out
    assert (tmp_path / "map.png").stat().st_size > 1000
    again = run("llm_judge.py", "--stub", "--budget", "200", cwd=tmp_path)
    assert again.splitlines() == out.splitlines()  # the report is of the whole run, asked once


@pytest.mark.slow
def test_resume(tmp_path):
    out = run("resume.py", cwd=tmp_path)
    paid, needed = re.search(r"(\d+) answers paid for, (\d+) needed", out).groups()
    assert paid == needed
    assert out.count("stopped after") >= 1
    assert out.endswith("the same map: True\n")


@pytest.mark.slow
def test_dask_oracle(tmp_path):
    pytest.importorskip("distributed")
    out = run("dask_oracle.py", cwd=tmp_path)
    n_answers, _, said = out.partition(" ")
    assert 250 < int(n_answers) <= 300  # the budget of the example
    assert said == "answers from 2 workers; the same map as here: True\n"


@pytest.mark.slow
def test_the_page_about_oracles_runs(tmp_path):
    page = (EXAMPLES.parent / "docs" / "oracles.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    command = [sys.executable, "-c", "\n".join(blocks)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "answers.db").exists()


def test_no_example_is_left_out():
    tested = re.findall(r"run\(\"(\w+\.py)\"", Path(__file__).read_text("utf-8"))
    assert {path.name for path in EXAMPLES.glob("*.py")} - {"stub_server.py"} == set(tested)
