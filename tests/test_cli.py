"""The command as a user meets it: results, files, refusals, Ctrl-C."""

import csv
import ctypes
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from nearer.cli import main

NEARER = str(Path(sys.executable).with_name("nearer"))


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return CliRunner().invoke(main, [str(a) for a in arguments])

    return call


@pytest.fixture
def points(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 2)))
    return tmp_path / "x.npy"


def test_embed_writes_what_it_says(call, points, tmp_path):
    result = call("embed", points, "--method", "basis", "--seed", 3, "--out", "o", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    X = np.load(points)
    basis = nearer.run(nearer.choose_basis(60, random_state=3), nearer.PointOracle(X))
    assert summary["n_comparisons"] == basis.n_comparisons
    assert summary["dimension"] == basis.dimension
    with (tmp_path / "o" / "embedding.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["object", "label", *(f"x{j + 1}" for j in range(basis.dimension))]
    np.testing.assert_array_equal(np.array(rows[1:], float)[:, 2:], basis.coordinates())
    triplets = np.loadtxt(tmp_path / "o" / "triplets.csv", delimiter=",", skiprows=1, dtype=int)
    np.testing.assert_array_equal(triplets, basis.triplets)
    saved = json.loads((tmp_path / "o" / "basis.json").read_text())
    assert [tuple(a["endpoints"]) for a in saved["axes"]] == [a.endpoints for a in basis.axes]
    assert (tmp_path / "o" / "map.png").read_bytes()[:4] == b"\x89PNG"
    assert len(list((tmp_path / "o").iterdir())) == 4


def test_a_seed_gives_the_same_again(call, points):
    def embed():
        done = call("embed", points, "--method", "basis", "--seed", 0, "--json")
        return {**json.loads(done.stdout), "seconds": 0}

    assert embed() == embed()


def test_a_table_for_people(call):
    result = call("embed", "5dcube", "--method", "basis", "--seed", 0)
    assert result.exit_code == 0
    for word in ("dimension", "comparisons", "rounds", "τ", "kNN", "RMSE", "affinely"):
        assert word in result.stdout


@pytest.mark.parametrize("budget", [1500, pytest.param(None, marks=pytest.mark.slow)])
def test_demo(call, tmp_path, monkeypatch, budget):
    from nearer.cli import embed

    def cheaper(method, n, **limits):
        return make_strategy(method, n, **(limits | {"budget": budget}))

    make_strategy = embed.make_strategy
    monkeypatch.setattr(embed, "make_strategy", cheaper)
    result = call("demo")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "demo" / "map.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed", "none.npy"], "neither a file nor a built-in"),
        (["embed", "citys"], "did you mean 'cities'"),
        (["embed", "3dgmm", "--method", "magic"], "magic"),
        (["embed", "3dgmm", "--budget", "0"], "--budget"),
        (["embed", "3dgmm", "--method", "basis", "--budget", "100"], "raise the budget"),
        (["embed", "two.csv"], "at least 3"),
        (["embed", "ragged.csv"], "line 2"),
        (["embed", "noise.npy"], "Error: noise.npy: is not a NumPy file"),
        (["embed", "nan.csv"], "nan"),
        (["embed", "3dgmm", "--out", "file"], "--out file"),
        (["embed", ""], "'': is no path of a file"),
        (["fit", ""], "'': is no path of a file"),
        (["embed"], "Missing argument"),
        (["frobnicate"], "No such command"),
    ],
)
def test_refusals_are_one_message_and_exit_code_two(call, tmp_path, arguments, message):
    (tmp_path / "two.csv").write_text("1,2\n3,4\n")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n4,5\n")
    (tmp_path / "nan.csv").write_text("1,2\n3,nan\n4,5\n")
    (tmp_path / "noise.npy").write_bytes(b"\x07" * 99)
    (tmp_path / "file").write_text("a file, not a folder")
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("**/embedding.csv"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_refused(call, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    result = call("embed", "3dgmm", "--out", "locked")
    assert result.exit_code == 2
    assert "not writable" in result.output


def test_nothing_is_half_written_when_a_file_cannot_be_written(call, tmp_path, monkeypatch):
    whole = Path.write_bytes

    def full(path, data):
        if path.name == "triplets.csv":
            raise OSError(28, "No space left on device")
        return whole(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    result = call("embed", "3dgmm", "--method", "basis", "--out", "o")
    assert result.exit_code == 2
    assert "No space left" in result.output
    assert not list((tmp_path / "o").iterdir())


def in_compiled_code(*_, **__):
    """Ctrl-C as it comes out of compiled code."""
    raise SystemError(
        "CPUDispatcher(_some_steps) returned a result with an exception set"
    ) from KeyboardInterrupt()


def in_python(*_, **__):
    raise KeyboardInterrupt


class _CtrlC:
    """An oracle that is interrupted after so many comparisons."""

    def __init__(self, oracle, after):
        self._oracle, self._left = oracle, after

    def __call__(self, questions):
        if len(questions) > self._left:
            raise KeyboardInterrupt
        self._left -= len(questions)
        return self._oracle(questions)


@pytest.mark.parametrize("method", ["rand+soe", "adaptive"])
def test_a_budget_counts_what_was_paid_before_an_interruption(
    call, points, tmp_path, monkeypatch, method
):
    from nearer.cli import embed

    arguments = ["embed", points, "--method", method, "--seed", 3, "--budget", 600, "--out", "o"]
    arguments += ["--journal", "answers.db"]
    if method == "rand+soe":
        arguments += ["--dim", 2]
    whole = call(*arguments, "--json")
    expected = (tmp_path / "o" / "embedding.csv").read_text()
    (tmp_path / "o" / "embedding.csv").unlink()
    (tmp_path / "answers.db").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(embed, "PointOracle", lambda X: _CtrlC(nearer.PointOracle(X), 299))
        stopped = call(*arguments, "--json")
    assert stopped.exit_code == 130
    assert stopped.stdout == ""
    assert stopped.stderr.count("\n") == 1
    assert not (tmp_path / "o" / "embedding.csv").exists()
    again = call(*arguments, "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["n_comparisons"] == json.loads(whole.stdout)["n_comparisons"]
    assert (tmp_path / "o" / "embedding.csv").read_text() == expected


@pytest.mark.parametrize("stop", [in_python, in_compiled_code])
def test_answers_stay_in_the_journal_when_writing_is_interrupted(
    call, points, tmp_path, monkeypatch, stop
):
    from nearer.cli import embed

    arguments = ["embed", points, "--method", "basis", "--seed", 3, "--out", "o"]
    arguments += ["--journal", "answers.db"]
    with monkeypatch.context() as patch:
        patch.setattr(embed, "_picture", stop)
        assert call(*arguments).exit_code == 130
    assert not list((tmp_path / "o").iterdir())
    n_stored = len(nearer.load_journal(tmp_path / "answers.db"))
    assert call(*arguments).exit_code == 0
    assert len(nearer.load_journal(tmp_path / "answers.db")) == n_stored


@pytest.mark.parametrize("stop", [in_python, in_compiled_code])
@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["plan", "--objects", "10", "--dim", "2", "--noise", "0.1"], "numpy.random.default_rng"),
        (["fit", "answers.csv"], "pathlib.Path.open"),
        (["data"], "pathlib.Path.is_file"),
    ],
)
def test_ctrl_c_is_one_line_and_exit_code_130(call, tmp_path, monkeypatch, arguments, where, stop):
    (tmp_path / "answers.csv").write_text("head,winner,loser\n0,1,2\n")
    with monkeypatch.context() as patch:
        patch.setattr(where, stop)
        result = call(*arguments)
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == "Error: interrupted\n"


def test_ctrl_c_in_a_callback_of_compiled_code_is_not_lost(call, monkeypatch):
    def stop_in_a_callback(*_):
        ctypes.CFUNCTYPE(None)(in_python)()  # Python prints "Exception ignored" and goes on
        for _ in range(6_000):
            time.sleep(0.01)

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.is_file", stop_in_a_callback)
        result = call("data")
    assert result.exit_code == 130
    assert result.stderr == "Error: interrupted\n"


def test_an_error_of_the_system_is_no_ctrl_c(call, monkeypatch):
    def fail(*_):
        raise SystemError("bad argument to an internal function")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.is_file", fail)
        result = call("data")
    assert isinstance(result.exception, SystemError)


def test_nowhere_to_keep_compiled_code_is_one_line(call, tmp_path, monkeypatch):
    def nowhere(*_):
        raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.is_file", nowhere)
        result = call("data")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "set NUMBA_CACHE_DIR to a folder" in result.stderr


def test_help_and_import_are_quick_because_heavy_parts_stay_out():
    code = (
        "import sys, nearer, nearer.cli; "
        "print([m for m in ('numba', 'scipy', 'sklearn', 'matplotlib', 'numpy', 'rich') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    done = subprocess.run([NEARER, "--help"], capture_output=True, text=True, check=True)
    assert "embed" in done.stdout


def test_nothing_but_json_in_a_pipe(points, tmp_path):
    done = subprocess.run(
        [NEARER, "embed", points, "--method", "basis", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["method"] == "basis"
    assert done.stderr == ""


def test_embed_says_where_the_dimension_is_not_determined(call, tmp_path):
    np.save(tmp_path / "few.npy", np.random.default_rng(0).normal(size=(12, 3)))
    arguments = ["embed", "few.npy", "--seed", 0, "--budget", 60]
    summary = json.loads(call(*arguments, "--json").stdout)
    assert summary["determined"] is False
    low, high = summary["dimension_low"], summary["dimension_high"]
    assert low < high
    assert (
        f"dimension not determined: these answers do not distinguish {low} to {high}"
        in call(*arguments).stdout
    )


def test_an_interrupt_while_the_command_is_loaded_is_one_line(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    paths = [str(tmp_path), str(Path(nearer.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-c", "from nearer.cli import main; main()"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "Error: interrupted\n")


def test_embed_says_which_numbers_it_takes_for_names(call, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 2))
    rows = [f"{i + 1},{x},{y}" for i, (x, y) in enumerate(X)]
    (tmp_path / "points.csv").write_text("\n".join(["person,x,y", *rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = call("embed", "points.csv", "--seed", 0, "--out", "o", "--json")
    assert "'person' numbers the objects and is no coordinate; --names none" in result.stderr
    assert json.loads(result.stdout)["dimension"] == 2
    with (tmp_path / "o/embedding.csv").open() as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert labels == [str(i + 1) for i in range(12)]
    result = call("embed", "points.csv", "--names", "none", "--seed", 0, "--out", "p", "--json")
    assert result.stderr.strip() == ""


def test_a_warning_is_one_line_without_code(call, tmp_path):
    (tmp_path / "answers.csv").write_text(
        "head,winner,loser\n" + "\ue000,b,c\nb,c,\ue000\nc,b,\ue000\n" * 4
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = call("fit", "answers.csv", "--dim", 1, "--out", "o", "--seed", 0)
    assert result.exit_code == 0, result.output
    said = [line for line in result.stderr.splitlines() if "no installed font" in line]
    assert [line[:9] for line in said] == ["Warning: "]
    assert ".py" not in result.stderr
