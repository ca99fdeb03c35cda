"""`nearer fit` as a user meets it."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imsave

import nearer
from nearer.cli import main
from nearer.questions import answered, balanced_questions


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


def write(path, flip=0.0, n=25, m=2500, names=None):
    X = np.random.default_rng(0).normal(size=(n, 2))
    q = balanced_questions(n, m, np.random.default_rng(1))
    oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip, noise="fresh", random_state=0)
    if flip:
        q = np.concatenate([q, q[:300]])
    rows = answered(q, oracle(q))
    nearer.write_triplets(path, rows, labels=names)
    return X


def test_exact_answers(call, tmp_path):
    X = write(tmp_path / "t.csv")
    result = call("fit", "t.csv", "--seed", 0, "--bootstrap", 3, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert (summary["method"], summary["dimension"]) == ("soe", 2)
    assert summary["held_out_low"] < summary["held_out_accuracy"] < summary["held_out_high"]
    assert summary["held_out_accuracy"] > 0.95
    with (tmp_path / "out/fit/embedding.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["object", "label", "x1", "x2", "sd1", "sd2"]
    positions = np.array([[float(r["x1"]), float(r["x2"])] for r in rows])
    assert nearer.metrics.mean_kendall_tau(X, positions) > 0.95
    names = {p.name for p in (tmp_path / "out/fit").iterdir()}
    assert names == {"embedding.csv", "fit.json", "map.png", "dimension.png"}


def test_contradicting_answers_are_fitted_with_noise(call, tmp_path):
    write(tmp_path / "t.csv", flip=0.15)
    result = call("fit", "t.csv", "--dim", 2, "--seed", 0, "--bootstrap", 0, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["method"] == "noisy"
    assert summary["contradictions"] > 0
    assert 0.05 < summary["noise"] < 0.25
    assert "both ways" in result.stderr
    again = call("fit", "t.csv", "--dim", 2, "--seed", 0, "--bootstrap", 0, "--json")
    assert {**json.loads(again.stdout), "seconds": 0} == {**summary, "seconds": 0}


@pytest.mark.parametrize("method", ["soe", "ckl", "gnmds", "ste", "tste"])
def test_every_method(call, tmp_path, method):
    write(tmp_path / "t.csv")
    result = call(
        "fit", "t.csv", "--method", method, "--dim", 2, "--seed", 0, "--bootstrap", 2, "--json"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["held_out_accuracy"] > 0.85


def test_labels_and_pictures(call, tmp_path):
    names = [f"p{i}.png" for i in range(5)]
    for i, name in enumerate(names):
        imsave(tmp_path / name, np.full((8, 8, 3), i / 5))
    write(tmp_path / "t.csv", n=5, m=30, names=names)
    result = call("fit", "t.csv", "--dim", 1, "--seed", 0)
    assert result.exit_code == 0, result.output
    assert "held-out" in result.stdout
    assert "p3.png" in (tmp_path / "out/fit/embedding.csv").read_text()
    (tmp_path / "p3.png").write_text("no picture")
    result = call("fit", "t.csv", "--dim", 1, "--seed", 0)
    assert result.exit_code == 2
    assert "p3.png" in result.output


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (None, [], "none.csv"),
        ("head,winner,loser\n0,1\n", [], "line 2"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "0"], "--dim 0"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "x"], "--dim x"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "²"], "--dim ²"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "3"], "from 1 to 2"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--bootstrap", "1"], "--bootstrap 1"),
        ("", [], "none.csv"),
    ],
)
def test_refusals(call, tmp_path, text, options, message):
    if text is not None:
        (tmp_path / "none.csv").write_text(text)
    result = call("fit", "none.csv", *options)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "Traceback" not in result.output
