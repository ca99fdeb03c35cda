"""`nearer fit` as a user meets it."""

import csv
import json
import sys

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
    result = call("fit", "t.csv", "--seed", 0, "--json")
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


def test_a_question_answered_both_ways_is_half_right(call, tmp_path):
    (tmp_path / "both.csv").write_text("head,winner,loser\n" + "a,b,c\na,c,b\n" * 20)
    summary = json.loads(call("fit", "both.csv", "--seed", 0, "--json").stdout)
    assert summary["noise"] == 0.5


def test_contradicting_answers_are_fitted_with_noise(call, tmp_path):
    write(tmp_path / "t.csv", flip=0.15)
    result = call("fit", "t.csv", "--dim", 2, "--seed", 0, "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["method"] == "noisy"
    assert summary["contradictions"] > 0
    assert 0.05 < summary["noise"] < 0.25
    assert "both ways" in result.stderr
    again = call("fit", "t.csv", "--dim", 2, "--seed", 0, "--json")
    assert {**json.loads(again.stdout), "seconds": 0} == {**summary, "seconds": 0}


@pytest.mark.parametrize("method", ["soe", "ckl", "gnmds", "ste", "tste"])
def test_every_method(call, tmp_path, method):
    write(tmp_path / "t.csv")
    result = call("fit", "t.csv", "--method", method, "--dim", 2, "--seed", 0, "--json")
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


def test_objects_that_are_sounds_are_drawn_by_name(call, tmp_path):
    names = [f"s{i}.wav" for i in range(5)]
    for name in names:
        (tmp_path / name).write_bytes(b"RIFF")
    write(tmp_path / "t.csv", n=5, m=30, names=names)
    wanted = ["--map", "map.html", "--report", "r.md"]
    result = call("fit", "t.csv", "--dim", 1, "--seed", 0, *wanted)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out/fit/map.png").is_file()
    assert "s3.wav" in (tmp_path / "map.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (None, [], "none.csv"),
        (None, ["--tol", "nan"], "nan is no finite number"),
        (None, ["--picture-size", "inf"], "inf is no finite number"),
        (None, ["--dim", "two"], "--dim two: must be auto"),  # before the file is looked for
        ("head,winner,loser\n0,1\n", [], "line 2"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "0"], "--dim 0"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "x"], "--dim x"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "²"], "--dim ²"),
        ("head,winner,loser\n0,1,2\n1,2,0\n", ["--dim", "3"], "--dim 3: 3 objects span at"),
        ("head,near,far\na,a,b\n", [], "0 trials: all are undecided"),
        ("head,a,b,answer\nx,y,z,\nx,x,y,x\n", [], "undecided: 1"),
        ('{"query": 0, "shown": [1, 2], "chosen": []}\n', ["--dim", "1"], "all are undecided"),
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


def test_a_device_that_is_not_there_is_said_before_the_file_is_read(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    result = call("fit", "none.csv", "--device", "cuda")
    assert result.exit_code == 2, result.output
    assert "--device 'cuda'" in result.output


def people_file(path):
    """Answers of people of whom one contradicts all others, and one guesses."""
    rng = np.random.default_rng(0)
    q = balanced_questions(15, 1500, rng)
    who = rng.integers(6, size=len(q))
    says = nearer.PointOracle(rng.normal(size=(15, 2)))(q) ^ (rng.random(len(q)) < 0.05)
    says = np.where(who == 4, ~says, np.where(who == 5, rng.random(len(q)) < 0.5, says))
    rows = answered(q, says)
    lines = [f"{h},{n},{f},p{w}" for (h, n, f), w in zip(rows.tolist(), who, strict=True)]
    path.write_text("\n".join(["head,winner,loser,person", *lines]) + "\n")


def test_the_table_fits_a_terminal_and_names_people(call, tmp_path):
    people_file(tmp_path / "answers.csv")
    result = call("fit", "answers.csv", "--seed", 0)
    assert result.exit_code == 0, result.output
    table = result.stdout.split("in out/fit")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "contradict all others (contrary): p4\n" in table
    assert "seem to guess (guessing): p5\n" in table
    columns = "objects answers dimension held-out 95 % noise seconds"
    assert columns in " ".join(table.split())
    help_text = call("fit", "--help").output
    for column in ("objects", "answers", "dimension", "held-out", "95 %", "noise", "seconds"):
        assert f"\n    {column} " in help_text, "every column is explained"


def test_a_dimension_that_is_not_determined_is_said_to_be_so(call, tmp_path):
    write(tmp_path / "few.csv", flip=0.3, n=12, m=150)
    result = call("fit", "few.csv", "--seed", 0)
    summary = json.loads((tmp_path / "out/fit/fit.json").read_text())
    assert summary["determined"] is False
    low, high = summary["dimension_low"], summary["dimension_high"]
    assert f"not determined: these answers do not distinguish {low} to {high}" in result.stdout
    fixed = call("fit", "few.csv", "--seed", 0, "--dim", 2)
    assert "not determined" not in fixed.stdout
    assert "given" in fixed.stdout


def test_the_stored_command_gives_the_same_again(call, tmp_path):
    import hashlib
    import shlex

    write(tmp_path / "my answers.csv", flip=0.1, n=12, m=300)
    first = call("fit", "my answers.csv", "--dim", 2, "--json")
    assert first.exit_code == 0, first.output
    summary = json.loads((tmp_path / "out/fit/fit.json").read_text())
    content = (tmp_path / "my answers.csv").read_bytes()
    expected = {"file": "my answers.csv", "sha256": hashlib.sha256(content).hexdigest()}
    assert summary["source"] == expected
    assert summary["version"] == nearer.__version__
    words = shlex.split(summary["command"])
    assert words[:3] == ["nearer", "fit", "--seed"]
    assert words[4] == "my answers.csv"
    before = (tmp_path / "out/fit/embedding.csv").read_bytes()
    assert call(*words[1:]).exit_code == 0
    assert (tmp_path / "out/fit/embedding.csv").read_bytes() == before


def test_maps_and_reports_where_they_are_wanted(call, tmp_path):
    write(tmp_path / "answers.csv", m=400)
    for name, report in (("map.svg", "report.html"), ("map.pdf", "report.md"), ("map.html", "")):
        options = [
            "--seed",
            0,
            "--dim",
            2,
            "--map",
            name,
            *(["--report", report] if report else []),
        ]
        result = call("fit", "answers.csv", *options)
        assert result.exit_code == 0, result.output
        assert f"written: {name}" in result.stdout
        assert (tmp_path / name).stat().st_size > 5000
        if report:
            text = (tmp_path / report).read_text(encoding="utf-8")
            assert " ".join(map(str, ["nearer fit answers.csv", *options])) in text
            assert "answers.csv" in text.splitlines()[0] or "Report on answers.csv" in text


def test_a_file_that_looks_like_an_option_is_named_by_a_path(call, tmp_path):
    write(tmp_path / "-few.csv", n=5, m=30)
    assert call("fit", "--dim", 1, "--seed", 0, "--json", "--", "-few.csv").exit_code == 0
    summary = json.loads((tmp_path / "out/fit/fit.json").read_text())
    assert summary["command"] == "nearer fit --dim 1 --seed 0 --json -- -few.csv"
    again = call(*summary["command"].split()[1:])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize("other", ["same.html", "./same.html"])
def test_a_map_and_a_report_are_two_files(call, tmp_path, other):
    write(tmp_path / "t.csv", n=5, m=30)
    result = call("fit", "t.csv", "--map", "same.html", "--report", other)
    assert result.exit_code == 2
    assert "give them two names" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--report", "folder.html", "--report folder.html: is a folder"),
        ("--map", "folder.html", "--map folder.html: is a folder"),
        ("--map", "map.jpg", "--map map.jpg: must end in one of .svg, .pdf, .png, .html"),
        ("--report", "report.pdf", "--report report.pdf: must end in one of .html, .md"),
        ("--report", "none/report.md", "its folder must exist"),
    ],
)
def test_files_that_cannot_be_written_are_refused_at_once(call, tmp_path, option, value, message):
    write(tmp_path / "t.csv", n=5, m=30)
    (tmp_path / "folder.html").mkdir()
    result = call("fit", "t.csv", option, value)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_guessing_is_called_guessing(call, tmp_path):
    rng = np.random.default_rng(0)
    rows = answered(balanced_questions(12, 900, rng), rng.random(900) < 0.5)
    nearer.write_triplets(tmp_path / "t.csv", rows)
    result = call("fit", "t.csv", "--dim", 2, "--seed", 0)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("no better than by guessing") == 1
    assert "guessing" not in result.stderr


def test_only_what_this_fit_wrote_is_left_and_listed(call, tmp_path):
    people_file(tmp_path / "answers.csv")
    assert call("fit", "answers.csv", "--seed", 0, "--out", "o").exit_code == 0
    names = {p.name for p in (tmp_path / "o").iterdir()}
    assert names == {"embedding.csv", "fit.json", "map.png", "dimension.png", "people.csv"}
    (tmp_path / "o" / "mine.txt").write_text("not yours")
    write(tmp_path / "t.csv", m=400)
    few = ["fit", "t.csv", "--dim", 2, "--seed", 0, "--out", "o"]
    result = call(*few)
    assert result.exit_code == 0, result.output
    names = {p.name for p in (tmp_path / "o").iterdir()}
    assert names == {"embedding.csv", "fit.json", "map.png", "mine.txt"}
    assert "in o: embedding.csv, fit.json, map.png\n" in result.stdout
    (tmp_path / "o" / "people.csv").write_text("a table of another person")
    assert call(*few).exit_code == 0
    assert (tmp_path / "o" / "people.csv").read_text() == "a table of another person"
