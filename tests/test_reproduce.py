"""The paper's tables and figures: what is computed, kept, taken up again, shown."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import nearer
from nearer.algorithms.methods import METHODS
from nearer.cells import computing
from nearer.cells.computing import compute_cells
from nearer.cells.digest import modules_reached
from nearer.cells.finished import FinishedCells
from nearer.cli import main
from nearer.errors import InvalidInput, MissingData
from nearer.reproduce import experiments
from nearer.reproduce.classification import accuracy
from nearer.reproduce.experiments import OWN, REGISTERED, Experiment
from nearer.reproduce.figures import FIGURES
from nearer.reproduce.material import MATERIAL, draw, load
from nearer.reproduce.neighbours import READINGS, readings
from nearer.reproduce.pages import reproduce
from nearer.reproduce.published import DIMENSIONS, FAMILIES, TABLE_1, TABLE_2, TABLE_3
from nearer.reproduce.render import Page, as_csv, as_html, as_markdown
from nearer.reproduce.scale import FULL, QUICK, TARGETS, Scale, list_experiments
from nearer.reproduce.tables import make_tables

NEARER = str(Path(sys.executable).with_name("nearer"))
TINY = Scale(table1=1, own=1, table2=1, table3=1, most_objects=40, most_dimensions=3)
SHIPPED = ("3dgmm", "5dcube", "5dgmm", "cities")


def untimed(figures):
    return {name: value for name, value in figures.items() if name != "seconds"}


# what is computed


def test_the_published_figures_cover_what_is_planned():
    assert set(TABLE_1) == set(FAMILIES)
    assert all(tuple(row) == DIMENSIONS for row in TABLE_1.values())
    assert set(TABLE_2) == set(MATERIAL)
    assert set(TABLE_3) <= set(MATERIAL)
    assert all(set(rows) | {"nearer"} == set(REGISTERED) for rows in TABLE_2.values())


@pytest.mark.parametrize(
    ("data", "method"),
    [*((data, "Basis") for data in SHIPPED), *(("5dcube", m) for m in REGISTERED if m != "Basis")],
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


def test_estimates_of_the_dimension_on_table_1s_easy_cells():
    assert Experiment("table1", "cube-2", "Basis", 300, 0).compute()["dimension"] == 2
    assert Experiment("table1", "sphere-2", "Basis", 300, 0).compute()["dimension"] == 1
    assert draw("ball", 3, 10, 0).shape == (10, 3)


def test_accuracy_of_classes_that_can_and_cannot_be_told_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    told = accuracy(X, np.sign(X[:, 0]), np.random.default_rng(1))
    blind = accuracy(X, rng.integers(2, size=100), np.random.default_rng(1))
    assert told[1] > 0.9
    assert blind[1] < 0.75
    assert accuracy(X, np.sign(X[:, 0]), np.random.default_rng(1)) == told
    dense, thin = (  # sparse or not, the same
        accuracy(W, np.sign(X[:, 0]), np.random.default_rng(1)) for W in (X, sparse.csr_array(X))
    )
    assert dense[1] == pytest.approx(thin[1], abs=0.05)


def test_a_class_with_two_members_is_no_obstacle():
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.where(X[:, 0] > 0, "a", "b")
    labels[:2] = "rare"
    train, test = accuracy(X, labels, np.random.default_rng(0))
    assert 0.5 < test <= train <= 1


def test_readings_of_neighbours():
    X = nearer.datasets.make_cube(120, 3, random_state=0)
    basis = nearer.run(nearer.choose_basis(120, random_state=0), nearer.PointOracle(X))
    found = readings(X, basis)
    assert list(found) == list(READINGS)
    assert found["plain"]["knn"] == nearer.metrics.knn_precision(X, basis.coordinates())
    for reading in ("ties", "head"):
        assert found[reading]["knn"] >= found["plain"]["knn"]
        assert found[reading]["tau"] == found["plain"]["tau"]
    assert found["projections"]["rmse"] < found["plain"]["rmse"]


# what is planned


def test_the_plan_covers_every_row_and_seed():
    everything = list_experiments("all", FULL, seed=5)
    assert len(set(everything)) == len(everything)
    parts = [
        cell
        for target in ("table1", "table2", "table3")
        for cell in list_experiments(target, FULL, 5)
    ]
    assert set(parts) == set(everything)
    basis = [cell for cell in everything if cell.table == "table1" and cell.method == "Basis"]
    assert len(basis) == 28 * 100
    assert {cell.seed for cell in basis} == set(range(5, 105))
    assert {cell.n_objects for cell in basis} == {1000}
    # the paper's rows first; whatever is there after an interruption covers all of them
    order = [(cell.method == OWN, cell.seed) for cell in everything]
    assert order == sorted(order)
    assert list_experiments("figures", FULL) == []


def test_slow_cells_have_fewer_runs():
    count = Counter((cell.table, cell.data, cell.method) for cell in list_experiments("all", FULL))
    assert count["table2", "digits", "Basis+SOE"] == count["table2", "20news", "Basis"] == 10
    assert count["table2", "20news", "Basis+SOE"] == 3
    assert count["table2", "cities", "nearer"] == count["table1", "ball-5", "nearer"] == 10
    assert count["table2", "digits", "nearer"] == count["table2", "spam", "nearer"] == 10
    assert count["table1", "ball-8", "nearer"] == count["table1", "ball-10", "nearer"] == 5
    assert count["table1", "ball-20", "nearer"] == 3
    assert not any(
        cell.data == "ball-8" and cell.method == OWN for cell in list_experiments("all", QUICK)
    )


def test_runs_and_sizes():
    assert FULL.with_runs(3) == Scale(3, 3, 3, 3)
    assert QUICK.with_runs(None) == QUICK
    assert TINY.size(500) == 40
    with pytest.raises(InvalidInput, match="runs=0"):
        FULL.with_runs(0)
    with pytest.raises(InvalidInput, match="table9"):
        list_experiments("table9", FULL)


# what is kept


def test_a_store_survives_a_crash_and_does_not_mix_versions(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    one, two, three = (Experiment("table1", "ball-3", "Basis", 50, seed) for seed in range(3))
    kept = FinishedCells(path)
    kept.add(one, {"dimension": 1})
    kept.add(two, {"dimension": 2})
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])  # as a crash in the middle of a line leaves it
    again = FinishedCells(path)
    assert again.figures(one) == {"dimension": 1}
    assert again.figures(two) is None
    again.add(three, {"dimension": 3})
    last = FinishedCells(path)
    assert [last.figures(c) for c in (one, two, three)] == [
        {"dimension": 1},
        None,
        {"dimension": 3},
    ]
    monkeypatch.setattr(experiments, "code_digest", lambda *_, **__: "another version")
    assert FinishedCells(path).figures(one) is None


def test_the_digest_of_a_method_covers_what_it_imports_and_no_more():
    basis, fitted, own = (
        modules_reached([METHODS[REGISTERED[method]].make.__module__], without=["nearer.embedding"])
        for method in ("Basis", "Extra+SOE", "nearer")
    )
    assert {"nearer.geometry.axes", "nearer._kernels.dominance_counts"} <= basis & fitted
    assert {"nearer.fitting.starts", "nearer._kernels.gradients"} <= fitted - basis
    assert "nearer.algorithms.adaptive" in own - fitted
    digests = {Experiment("table2", "", m, 1, 0).code for m in REGISTERED}
    assert len(digests) == len(REGISTERED)


def test_an_unwritable_store_says_so(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be written"):
        FinishedCells(tmp_path / "none" / "cells.jsonl").add(
            Experiment("table1", "d", "m", 1, 0), {}
        )
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        FinishedCells(tmp_path / "folder")


def test_only_missing_cells_are_computed(tmp_path):
    wanted = [Experiment("table1", f"cube-{d}", "Basis", 40, 0) for d in (1, 2, 3)]
    kept = FinishedCells(tmp_path / "cells.jsonl")
    kept.add(wanted[1], {"dimension": 77})
    done = []
    compute_cells(wanted, kept, jobs=2, progress=done.append)
    assert sorted(done) == sorted([wanted[0], wanted[2]])
    assert kept.figures(wanted[1]) == {"dimension": 77}
    assert untimed(kept.figures(wanted[2])) == untimed(wanted[2].compute())
    compute_cells(wanted, kept, jobs=1, progress=pytest.fail)
    with pytest.raises(InvalidInput, match="jobs=0"):
        compute_cells(wanted, kept, jobs=0)


def test_data_that_is_not_to_be_had_is_left_out_with_a_word(tmp_path, monkeypatch):
    class Here:  # a pool in this process, where loaders can be replaced
        def submit(self, function, cell):
            future = computing.Future()
            try:
                future.set_result(function(cell))
            except MissingData as error:
                future.set_exception(error)
            return future

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    def none(*_):
        raise MissingData("spambase is not at hand: put spambase.csv.gz into …")

    monkeypatch.setattr(computing, "_workers", lambda jobs: Here())
    monkeypatch.setattr(
        experiments, "load", lambda d, n, s: none() if d == "spam" else load(d, n, s)
    )
    wanted = [
        Experiment("table2", data, method, 40, 0)
        for data in ("cities", "spam")
        for method in ("Basis", "Basis+SOE")
    ]
    wanted += [
        Experiment("neighbours", "spam", "Basis", 40, 0),
        Experiment("table3", "spam", "Basis", 40, 0),
    ]
    kept = FinishedCells(tmp_path / "cells.jsonl")
    done = []
    compute_cells(wanted, kept, jobs=1, progress=done.append)
    assert len(done) == 6
    assert len(kept.path.read_text().splitlines()) == 2
    quality, neighbours, classes = make_tables(wanted, kept)
    assert [row[1] for row in quality.rows if row[0] == "spam"] == [kept.missing("spam")]
    assert "spambase.csv.gz" in neighbours.rows[0][0]
    assert "spambase.csv.gz" in classes.rows[0][1]


# what is shown


@pytest.fixture(scope="module")
def table1(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduce")
    return folder, *reproduce("table1", folder, TINY, jobs=2)


def test_the_same_seed_gives_the_same_table(table1, tmp_path):
    folder, report, files = table1
    again, _ = reproduce("table1", tmp_path, TINY, jobs=1)
    assert [table.rows for table in again.tables] == [table.rows for table in report.tables]
    for name in ("table1.csv",):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes()
    assert {file.name for file in files} == {"table1.html", "table1.md", "table1.csv"}
    assert {file.name for file in folder.iterdir()} == {f.name for f in files} | {"cells.jsonl"}


def test_a_page_is_made_of_saved_cells_alone(table1, monkeypatch):
    folder, report, _ = table1
    monkeypatch.setattr(computing, "_workers", pytest.fail)
    again, _ = reproduce("table1", folder, TINY)
    assert again.tables[0].rows == report.tables[0].rows


def test_tables_in_every_form(table1):
    _, report, _ = table1
    (table,) = report.tables
    rows = list(csv.reader(as_csv(table).splitlines()))
    assert len(rows) == 1 + len(table.rows)
    paper = next(row for row in rows if row[1] == "Basis, paper")
    assert [float(x) for x in paper[2:]] == list(TABLE_1["ball"].values())
    text, page = as_markdown(report), as_html(report)
    for form in (text, page):
        assert "2.11" in form  # the paper's ball in three dimensions
        assert "Algorithm 1, line 12" in form
        assert "seed" in form
        assert nearer.__version__ in form
    assert page.count("<tr") == 1 + len(table.rows)


def test_differences_are_marked_where_sizes_agree(tmp_path):
    kept = FinishedCells(tmp_path / "cells.jsonl")
    figures = {"dimension": 3, "comparisons": 9, "tau": 0.5, "knn": 0.66, "rmse": 1.0, "seconds": 1}
    whole = [
        Experiment("table2", d, m, MATERIAL[d].n_objects, 0) for d in MATERIAL for m in TABLE_2[d]
    ]
    for cell in whole:
        kept.add(cell, figures)
    (table,) = make_tables(whole, kept)
    row = next(i for i, r in enumerate(table.rows) if r[:2] == ("3dgmm", "Basis"))
    assert table.marks[row, 6] == "worse"  # τ 0.5 where the paper has 0.71
    assert (row, 9) not in table.marks  # kNN 0.66 where the paper has 0.64
    random = next(i for i, r in enumerate(table.rows) if r[:2] == ("5dgmm", "Rand+SOE"))
    assert table.marks[random, 6] == "better"
    page = as_html(Page("t", {}, [table], [], []))
    assert 'class="better"' in page
    assert "▼" in page
    cut = [Experiment("table2", c.data, c.method, 40, 0) for c in whole]
    for cell in cut:
        kept.add(cell, figures)
    assert not make_tables(cut, kept)[0].marks


def test_figures_are_drawn_and_held_by_the_page(tmp_path):
    report, files = reproduce("figures", tmp_path, TINY)
    assert [drawing.name for drawing in report.drawings] == list(FIGURES)
    for name in FIGURES:
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == len(FIGURES)
    assert 'src="http' not in page
    assert "href=" not in page
    first = FIGURES["figure1"]("figure1", np.random.default_rng([0, 0]))
    assert first.caption == report.drawings[0].caption  # drawn from a seeded run
    assert "τ = " in first.caption
    assert len(files) == 2 + len(FIGURES)


# the command


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_the_command_names_every_target():
    result = call("reproduce", "--help")
    assert result.exit_code == 0
    assert "|".join(TARGETS) in result.output


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
    result = call("reproduce", *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_finished_cells_and_the_same_command_goes_on(tmp_path):
    arguments = [NEARER, "reproduce", "table1", "--quick", "--runs", "1", "--jobs", "2"]
    process = subprocess.Popen(
        arguments,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    kept = tmp_path / "out" / "reproduce" / "cells.jsonl"
    while not kept.exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the workers too
    out, err = process.communicate(timeout=120)
    if process.returncode == 0:
        pytest.skip("the run was over before it could be interrupted")
    assert process.returncode == 130, err
    assert "the same command goes on" in err
    assert "Traceback" not in err
    assert not out
    before = kept.read_text().splitlines()
    assert 1 <= len(before) < len(list_experiments("table1", QUICK.with_runs(1)))
    again = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"{len(before)} of" in again.stderr
    lines = kept.read_text().splitlines()
    assert lines[: len(before)] == before
    cells = [json.dumps(json.loads(line)["cell"]) for line in lines]
    assert len(cells) == len(set(cells)) == len(list_experiments("table1", QUICK.with_runs(1)))
    assert "table1.html" in again.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_where_the_command_is_killed_no_worker_stays(tmp_path):
    process = subprocess.Popen(
        [NEARER, "reproduce", "table1", "--quick", "--jobs", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    kept = tmp_path / "out" / "reproduce" / "cells.jsonl"
    while not kept.exists() and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    try:
        process.communicate(timeout=60)  # ends when nobody holds its output any more
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
