"""Where commands write: never over what they read, and refused before any work."""

import os

import numpy as np
import pytest
from click.testing import CliRunner
from studykit import make_study

import nearer
from nearer.cli import main

ANSWERS = "head,winner,loser\nape,bee,cat\nbee,cat,ape\ncat,bee,ape\nape,cat,dog\n"
POINTS = "x,y\n" + "".join(f"{i % 3},{i * i % 7}\n" for i in range(6))


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


def refused(result, *words):
    """One message that says so, and exit code 2."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in words), result.stderr


@pytest.mark.parametrize("name", ["embedding.csv", "people.csv", "fit.json", "map.png"])
def test_a_fit_never_writes_over_its_answers(call, tmp_path, name):
    file = tmp_path / name
    file.write_text(ANSWERS)
    refused(call("fit", name, "--out", ".", "--dim", 1), "--out", name, "name another")
    (tmp_path / "other").symlink_to(tmp_path)
    refused(call("fit", name, "--out", "other", "--dim", 1), "--out", name)
    assert file.read_text() == ANSWERS


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ans.md", ["--report", "ans.md"]),
        ("ans.svg", ["--map", "./ans.svg"]),
        ("ans-map.svg", ["--report", "ans.md"]),
        ("ans-dimension.svg", ["--report", "ans.md"]),
        ("ans-people.svg", ["--report", "ans.md"]),
    ],
)
def test_maps_and_reports_never_lie_over_the_answers(call, tmp_path, name, options):
    (tmp_path / name).write_text(ANSWERS)
    refused(call("fit", name, *options, "--dim", 1), options[0], name, "name another")
    assert (tmp_path / name).read_text() == ANSWERS
    assert not (tmp_path / "out").exists()


def test_a_hard_link_is_the_same_file(call, tmp_path):
    (tmp_path / "answers.csv").write_text(ANSWERS)
    os.link(tmp_path / "answers.csv", tmp_path / "embedding.csv")
    refused(call("fit", "answers.csv", "--out", "."), "embedding.csv")


@pytest.mark.parametrize("name", ["embedding.csv", "triplets.csv"])
def test_embed_never_writes_over_its_points(call, tmp_path, name):
    (tmp_path / name).write_text(POINTS)
    refused(call("embed", name, "--out", "."), "--out", name, "name another")
    assert (tmp_path / name).read_text() == POINTS


def test_embed_never_writes_over_an_interrupted_run_that_is_its_points(call, tmp_path):
    np.savez(tmp_path / "interrupted.npz", X=np.eye(4))
    refused(call("embed", "interrupted.npz", "--out", "."), "interrupted.npz")
    assert (tmp_path / "interrupted.npz").exists()


def test_a_judge_never_writes_over_what_it_reads(call, tmp_path):
    (tmp_path / "objects.txt").write_text("ape\nbee\ncat\n")
    (tmp_path / "replies.jsonl").write_text("")
    out = ["--out", "objects.txt"]
    refused(call("judge", "ask", "objects.txt", *out), "--out objects.txt", "name another")
    refused(call("judge", "export", "objects.txt", "--model", "m", *out), "--out objects.txt")
    both = ["objects.txt", "replies.jsonl", "--out", "replies.jsonl"]
    refused(call("judge", "import", *both), "--out replies.jsonl")
    assert (tmp_path / "objects.txt").read_text() == "ape\nbee\ncat\n"


@pytest.mark.parametrize("what", ["export", "embed"])
def test_a_study_is_never_written_over(call, tmp_path, what):
    study = make_study(tmp_path / "study.db")
    before = study.read_bytes()
    refused(call("study", what, study, "--out", study), "--out", "name another")
    assert study.read_bytes() == before


@pytest.mark.parametrize("name", ["r-map.svg", "r-map.png", "r-dimension.svg"])
def test_a_map_and_the_pictures_of_a_report_are_two_files(call, tmp_path, name):
    (tmp_path / "t.csv").write_text(ANSWERS)
    result = call("fit", "t.csv", "--report", "r.md", "--map", name)
    refused(result, f"--map {name}", "--report r.md", "give them two names")


def test_a_folder_that_is_a_file_is_refused_before_the_file_is_read(call, tmp_path):
    (tmp_path / "plain.csv").write_text(ANSWERS)
    for out in ("plain.csv", "plain.csv/below"):
        for command in ("fit", "embed"):
            result = call(command, "missing.csv", "--out", out)
            refused(result, f"--out {out}", "plain.csv", "is a file", "name a folder")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert nearer.read_triplets(tmp_path / "plain.csv").n_objects == 4
