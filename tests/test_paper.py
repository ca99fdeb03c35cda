"""The paper's tables and figures: what is computed, stored, continued, shown."""

import contextlib
import csv
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import nearer
from benchmarks import cells as harness
from benchmarks.cells import FinishedCells, compute_cells
from nearer.errors import MissingData
from paper import experiments
from paper.__main__ import command
from paper.data import DATA, load
from paper.experiments import (
    FULL,
    OWN,
    QUICK,
    REGISTERED,
    Experiment,
    Scale,
    accuracy,
    list_experiments,
)
from paper.figures import FIGURES
from paper.neighbours import READINGS, readings
from paper.page import Page, as_csv, as_html, as_markdown, make_page, write_page
from paper.published import DIMENSIONS, FAMILIES, TABLE_1, TABLE_2, TABLE_3
from paper.tables import make_tables

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TINY = Scale(table1=1, own=1, table2=1, table3=1, most_objects=40, most_dimensions=3)


def untimed(figures):
    return {name: value for name, value in figures.items() if name != "seconds"}


# what is computed


def test_the_published_figures_cover_what_is_planned():
    assert set(TABLE_1) == set(FAMILIES)
    assert all(tuple(row) == DIMENSIONS for row in TABLE_1.values())
    assert set(TABLE_2) == set(DATA)
    assert set(TABLE_3) <= set(DATA)
    assert all(set(rows) | {"nearer"} == set(REGISTERED) for rows in TABLE_2.values())


@pytest.mark.parametrize(
    ("data", "method"), [("cities", "Basis"), *(("5dcube", method) for method in REGISTERED)]
)
def test_a_cell_is_a_pure_function_of_its_name(data, method):
    cell = Experiment("table2", data, method, 40, 3)
    first, again = cell.compute(), cell.compute()
    assert untimed(first) == untimed(again)
    other = Experiment("table2", data, method, 40, 4).compute()
    assert untimed(first) != untimed(other)


def test_the_figures_of_a_cell_are_those_of_the_library():
    figures = Experiment("table2", "cities", "Basis", 500, 0).compute()
    cities = nearer.datasets.load_cities()
    seed = int(np.random.SeedSequence([0, 1]).generate_state(1)[0])
    basis = nearer.run(
        nearer.choose_basis(500, random_state=seed, rank_start=True),
        nearer.PointOracle(cities.points),
    )
    assert figures["comparisons"] == basis.n_comparisons
    tau = nearer.metrics.mean_kendall_tau(cities.points, basis.coordinates())
    assert figures["tau"] == pytest.approx(tau, abs=1e-6)
    rmse = nearer.metrics.distance_rmse(cities.points, basis.coordinates())
    assert figures["rmse"] == pytest.approx(rmse / 6371, rel=1e-6)  # on the unit sphere


@pytest.mark.parametrize("method", ["Rand+SOE", "CK"])
def test_random_and_crowd_kernel_ask_as_much_as_basis(method):
    basis, other = (Experiment("table2", "3dgmm", m, 50, 1).compute() for m in ("Basis", method))
    assert other["comparisons"] == basis["comparisons"]


def test_dimension_estimates_of_easy_cells_of_table_1():
    assert Experiment("table1", "cube-2", "Basis", 300, 0).compute()["dimension"] == 2
    assert Experiment("table1", "sphere-2", "Basis", 300, 0).compute()["dimension"] == 1


def test_accuracy_of_separable_and_of_random_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    separable = accuracy(X, np.sign(X[:, 0]), np.random.default_rng(1))
    random = accuracy(X, rng.integers(2, size=100), np.random.default_rng(1))
    assert separable[1] > 0.9
    assert random[1] < 0.75
    thin = accuracy(sparse.csr_array(X), np.sign(X[:, 0]), np.random.default_rng(1))
    assert separable[1] == pytest.approx(thin[1], abs=0.05)
    labels = np.where(X[:, 0] > 0, "a", "b")
    labels[:2] = "rare"  # fewer members than folds
    train, test = accuracy(X, labels, np.random.default_rng(0))
    assert 0.5 < test <= train <= 1


def test_readings_of_neighbours():
    X = nearer.datasets.make_cube(120, 3, random_state=0)
    basis = nearer.run(nearer.choose_basis(120, random_state=0), nearer.PointOracle(X))
    measured = readings(X, basis)
    assert list(measured) == list(READINGS)
    assert measured["plain"]["knn"] == nearer.metrics.knn_precision(X, basis.coordinates())
    for reading in ("ties", "head"):
        assert measured[reading]["knn"] >= measured["plain"]["knn"]
        assert measured[reading]["tau"] == measured["plain"]["tau"]
    assert measured["projections"]["rmse"] < measured["plain"]["rmse"]


# what is planned


def test_the_plan_covers_every_row_and_seed():
    everything = list_experiments("all", FULL, seed=5)
    assert len(set(everything)) == len(everything)
    tables = ("table1", "table2", "table3")
    assert {c for t in tables for c in list_experiments(t, FULL, 5)} == set(everything)
    basis = [cell for cell in everything if cell.table == "table1" and cell.method == "Basis"]
    assert len(basis) == 28 * 100
    assert {cell.seed for cell in basis} == set(range(5, 105))
    assert {cell.n_objects for cell in basis} == {1000}
    order = [(cell.method == OWN, cell.seed) for cell in everything]
    assert order == sorted(order)  # the cells there after an interruption cover all rows
    assert list_experiments("figures", FULL) == []
    assert {c.n_objects for c in list_experiments("table2", TINY)} == {40}


def test_slow_cells_have_fewer_runs():
    count = Counter((cell.table, cell.data, cell.method) for cell in list_experiments("all", FULL))
    assert count["table2", "digits", "Basis+SOE"] == count["table2", "20news", "Basis"] == 10
    assert count["table2", "20news", "Basis+SOE"] == 3
    assert count["table1", "ball-5", "nearer"] == 10
    assert count["table1", "ball-10", "nearer"] == count["table1", "sphere-1", "nearer"] == 5
    assert count["table1", "ball-20", "nearer"] == 3
    quick = {(cell.data, cell.method) for cell in list_experiments("all", QUICK)}
    assert ("ball-8", OWN) not in quick


def test_data_that_is_missing_is_left_out_and_the_tables_say_why(tmp_path, monkeypatch):
    class Here:  # a pool in this process, where loaders can be replaced
        def submit(self, function, cell):
            future = Future()
            try:
                future.set_result(function(cell))
            except MissingData as error:
                future.set_exception(error)
            return future

    def loaded(data, n, seed):
        if data == "spam":
            raise MissingData("spambase is missing: put spambase.csv.gz into …")
        return load(data, n, seed)

    monkeypatch.setattr(harness, "_workers", lambda jobs: contextlib.nullcontext(Here()))
    monkeypatch.setattr(experiments, "load", loaded)
    rows = [("table2", data) for data in ("cities", "spam")]
    rows += [("neighbours", "spam"), ("table3", "spam")]
    wanted = [Experiment(table, data, "Basis", 40, 0) for table, data in rows]
    finished = FinishedCells(tmp_path / "cells.jsonl")
    compute_cells(wanted, finished, jobs=1)
    assert len(finished.path.read_text().splitlines()) == 1
    quality, neighbours, classes = make_tables(wanted, finished)
    assert [row[1] for row in quality.rows if row[0] == "spam"] == [finished.missing["spam"]]
    assert "spambase.csv.gz" in neighbours.rows[0][0]
    assert "spambase.csv.gz" in classes.rows[0][1]


# what is shown


@pytest.fixture(scope="module")
def table1(tmp_path_factory):
    finished = FinishedCells(tmp_path_factory.mktemp("paper") / "cells.jsonl")
    cells = list_experiments("table1", TINY)
    compute_cells(cells, finished, jobs=2)
    return make_page("table1", cells, finished, seed=0)


def test_tables_in_every_form(table1, tmp_path):
    (table,) = table1.tables
    rows = list(csv.reader(as_csv(table).splitlines()))
    assert len(rows) == 1 + len(table.rows)
    paper = next(row for row in rows if row[1] == "Basis, paper")
    assert [float(x) for x in paper[2:]] == list(TABLE_1["ball"].values())
    text, page = as_markdown(table1), as_html(table1)
    for form in (text, page):
        assert "2.11" in form  # the paper's ball in three dimensions
        assert "Algorithm 1, line 12" in form
        assert harness.VERSION in form
    assert page.count("<tr") == 1 + len(table.rows)
    files = write_page(table1, "table1", tmp_path)
    assert {file.name for file in files} == {"table1.html", "table1.md", "table1.csv"}


def test_differences_are_marked_where_sizes_agree(tmp_path):
    finished = FinishedCells(tmp_path / "cells.jsonl")
    figures = {"dimension": 3, "comparisons": 9, "tau": 0.5, "knn": 0.66, "rmse": 1.0, "seconds": 1}
    whole = [Experiment("table2", d, m, DATA[d].n_objects, 0) for d in DATA for m in TABLE_2[d]]
    for cell in whole:
        finished.add(cell, figures)
    (table,) = make_tables(whole, finished)
    row = next(i for i, r in enumerate(table.rows) if r[:2] == ("3dgmm", "Basis"))
    assert table.marks[row, 6] == "worse"  # τ 0.5 where the paper has 0.71
    assert (row, 9) not in table.marks  # kNN 0.66 where the paper has 0.64
    random = next(i for i, r in enumerate(table.rows) if r[:2] == ("5dgmm", "Rand+SOE"))
    assert table.marks[random, 6] == "better"
    page = as_html(Page({}, [table], [], []))
    assert "▲" in page
    assert "▼" in page
    cut = [Experiment("table2", c.data, c.method, 40, 0) for c in whole]
    for cell in cut:
        finished.add(cell, figures)
    assert not make_tables(cut, finished)[0].marks


def test_figures_are_drawn_from_seeded_runs(tmp_path):
    page = make_page("figures", [], FinishedCells(tmp_path / "cells.jsonl"), seed=0)
    assert [drawing.name for drawing in page.drawings] == list(FIGURES)
    text = as_html(page)
    assert text.count("data:image/png;base64,") == len(FIGURES)
    assert "href=" not in text
    first = FIGURES["figure1"]("figure1", np.random.default_rng([0, 0]))
    assert first.caption == page.drawings[0].caption
    assert first.png == page.drawings[0].png


# the command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "table9"),
        (["table1", "--runs", "0"], "--runs"),
        (["table1", "--jobs", "0"], "--jobs"),
        (["table1", "--out", "file"], "--out file"),
        ([], "Missing argument"),
    ],
)
def test_refusals(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file, not a folder")
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert message in result.output


def started(tmp_path, *options):
    """The command, after its first finished cell, in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "paper", "table1", "--quick", "--jobs", "2", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    stored = tmp_path / "out" / "paper" / "cells.jsonl"
    while not stored.exists() and process.poll() is None:
        time.sleep(0.02)
    return process, stored


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_finished_cells_and_the_same_command_goes_on(tmp_path):
    process, stored = started(tmp_path, "--runs", "1")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the workers too
    out, err = process.communicate(timeout=120)
    if process.returncode == 0:
        pytest.skip("the run was over before it could be interrupted")
    assert process.returncode == 130, err
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert not out
    before = stored.read_text().splitlines()
    cells = list_experiments("table1", QUICK.with_runs(1))
    assert 1 <= len(before) < len(cells)
    process, _ = started(tmp_path, "--runs", "1")
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    assert f"{len(before)} of" in err
    assert "table1.html" in out
    assert stored.read_text().splitlines()[: len(before)] == before
    assert len(stored.read_text().splitlines()) == len(cells)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_where_the_command_is_killed_no_worker_stays(tmp_path):
    process, _ = started(tmp_path)
    process.kill()
    try:
        process.communicate(timeout=60)  # ends when no process holds its output any more
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
