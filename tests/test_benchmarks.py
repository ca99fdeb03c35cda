"""The harness of the benchmarks: cells stored with their version, pages made of them."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as command
from benchmarks import harness
from benchmarks.cells import VERSION, FinishedCells
from benchmarks.harness import ahead, cell, counted, distinct, grid, measure, pick, summary, table
from nearer.errors import InvalidInput, MissingData

ROOT = Path(__file__).parents[1]
OPTIONS = {"full": False, "seeds": None, "only": "", "jobs": 1}


def square(x, seed):
    return {"value": x * x + seed}


def absent(data):
    raise MissingData(f"{data} is not at hand")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A benchmark of four cells, or of six in full."""
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    module = ModuleType("small")
    module.cells = lambda full, seeds: [
        *grid("square", square, x=(2, 3, 4) if full else (2, 3), seed=range(seeds or 2))
    ]
    module.page = lambda rows, folder: " ".join(str(row["value"]) for row in rows)
    return module


def stored(tmp_path):
    lines = (tmp_path / "out/bench/small.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_only_what_is_not_there_is_computed(bench, tmp_path):
    part = measure(bench, "small", **OPTIONS | {"only": "x=3"})
    assert part == "9 10\n\n2 of 4 cells. \n"
    cells = sorted(line["cell"] for line in stored(tmp_path))
    assert cells == ["square x=3 seed=0", "square x=3 seed=1"]
    assert measure(bench, "small", **OPTIONS) == "4 5 9 10\n"
    assert measure(bench, "small", **OPTIONS | {"seeds": 1, "full": True}) == "4 9 16\n"
    assert len(stored(tmp_path)) == 5
    assert (tmp_path / "out/bench/small.md").read_text() == "4 9 16\n"


def test_a_complete_full_run_makes_the_page_of_the_documentation(bench, tmp_path):
    (tmp_path / "docs").mkdir()
    bench.DOCS = "small.md"
    measure(bench, "small", **OPTIONS)
    measure(bench, "small", **OPTIONS | {"full": True, "only": "x=2"})
    assert not list((tmp_path / "docs").iterdir())
    page = measure(bench, "small", **OPTIONS | {"full": True})
    assert (tmp_path / "docs" / "small.md").read_text() == page


def test_data_that_is_not_at_hand_is_said_on_the_page(bench, tmp_path):
    bench.cells = lambda full, seeds: [
        cell("absent", absent, data="moons"),
        *grid("square", square, x=(2,), seed=(0,)),
    ]
    assert measure(bench, "small", **OPTIONS) == "4\n\n1 of 2 cells. moons is not at hand\n"


def test_a_store_survives_a_crash_and_does_not_mix_versions(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    one, two, three = grid("square", square, x=(1, 2, 3), seed=(0,))
    finished = FinishedCells(path)
    finished.add(one, {"value": 1})
    finished.add(two, {"value": 2})
    path.write_bytes(path.read_bytes()[:-20])  # as a crash in the middle of a line leaves it
    again = FinishedCells(path)
    assert again.figures(one) == {"value": 1}
    assert again.figures(two) is None
    again.add(three, {"value": 3})
    last = FinishedCells(path)
    assert [last.figures(c) for c in (one, two, three)] == [{"value": 1}, None, {"value": 3}]
    assert FinishedCells(path, version="another").figures(one) is None
    monkeypatch.setattr("benchmarks.cells.VERSION", "newer")
    last.add(one, {"value": 4})
    assert FinishedCells(path, version=None).figures(one) == {"value": 4}
    assert FinishedCells(path, version=None).versions == {VERSION, "newer"}


def test_an_unwritable_store_says_so(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be written"):
        FinishedCells(tmp_path / "none" / "cells.jsonl").add(cell("square", square), {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        FinishedCells(tmp_path / "folder")


def test_a_pattern_that_matches_nothing_is_refused(bench):
    with pytest.raises(InvalidInput, match=r"--cells x=9: none of 4, such as 'square x=2"):
        measure(bench, "small", **OPTIONS | {"only": "x=9"})


def test_what_pages_are_made_with():
    rows = [
        {"part": "p", "d": 1, "tau": 0.5},
        {"part": "p", "d": 2, "tau": 0.75},
        {"part": "p", "d": 1, "tau": 1.0},
        {"part": "q", "d": 1, "tau": 0.0},
    ]
    assert distinct(rows, "d") == [1, 2]
    assert distinct(rows, "part", "d") == [("p", 1), ("p", 2), ("q", 1)]
    assert counted(pick(rows, "p"), "d") == "1: 2, 2: 1"
    assert summary(pick(rows, "p", d=1), "tau") == "0.75 (0.5 to 1)"
    assert summary(pick(rows, "p", d=2), "tau") == "0.75"
    assert table(["a", "b"], [(1, 2)]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_ctrl_c_is_one_line_and_exit_code_130(monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure", stop)
    assert command.main(["growth"]) == 130
    assert (
        capsys.readouterr().err
        == "interrupted; finished cells are stored, the same command goes on\n"
    )


@pytest.mark.parametrize("arguments", [["grwoth"], ["growth", "--seeds", "0"]])
def test_refusals(arguments, capsys):
    with pytest.raises(SystemExit) as refused:
        command.main(arguments)
    assert refused.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


@pytest.mark.parametrize("name", command.NAMES)
def test_every_benchmark_lists_its_cells(name):
    """Names differ, more seeds and the full form only add, and nothing there breaks no page."""
    module = importlib.import_module(f"benchmarks.{name}")
    short, full = ([c.name for c in module.cells(f, 2)] for f in (False, True))
    assert len(set(full)) == len(full) >= len(short) == len(set(short)) > 0
    assert {c.name for c in module.cells(False, 1)} < set(short)
    assert isinstance(module.page([], Path()), str)


def test_the_numbers_that_are_halved_and_doubled_exist():
    from benchmarks.sensitivity import NUMBERS, scaled

    for modules in NUMBERS.values():
        for module, names in modules.items():
            for name in names:
                with scaled(module, name, 2.0):
                    pass


def test_a_replay_that_stopped_early_has_a_page_all_the_same(tmp_path):
    from benchmarks import study_replay

    few = {"part": "replay", "filler": 0, "p99_ms": 9.0, "seconds": 3.0}
    rows = [
        few | {"method": "informative", "curve": {"500": (0.8, 2), "1000": (0.82, 2)}},
        few | {"method": "random", "curve": {"500": (0.75, 2)}},
    ]
    page = study_replay.page(rows, tmp_path)
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    lines = {row[0]: row[1:] for row in cells if row}
    assert lines["500"] == [".8000", ".7500"]
    assert lines["1,000"] == [".8200", ""]
    assert lines["2,000"] == ["", ""]


def test_from_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in done.stdout.replace("\n", " ") for name in ("adaptive", "noise", "--cells"))


def test_differences_are_taken_seed_by_seed():
    ours = [{"seed": s, "tau": 0.5 + s + more} for s, more in enumerate([0.1, 0.3, 9.0])]
    others = [{"seed": s, "tau": 0.5 + s} for s in (1, 0)]
    assert ahead(ours, others, "tau") == "+0.200 ± 0.100"
    assert ahead(ours[:1], others, "tau") == ""
