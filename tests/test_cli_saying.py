"""What commands print: texts of files as they are, one line where there is no room for them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imsave

import nearer
from nearer.cli import main

NEARER = str(Path(sys.executable).with_name("nearer"))
BAD = "\x1b]0;bad\x07\x9b2J"
SHOWN = r"\x1b]0;bad\x07\x9b2J"
ROWS = [("ape", "bee", "cat"), ("bee", "cat", "ape"), ("cat", "bee", "ape"), ("ape", "cat", "bee")]
FIT = ("--dim", 1, "--seed", 0)


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


def table(header, rows):
    return "\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n"


def shown(result, code, *words):
    """Control characters are written out, wherever they came from."""
    assert result.exit_code == code, result.output
    assert not any(character in result.output for character in "\x1b\x07\x9b")
    assert all(word in result.output for word in words), result.output


@pytest.mark.filterwarnings("ignore:no installed font")
def test_a_fit_shows_what_a_file_holds_and_does_not_execute_it(call, tmp_path):
    header = ["head", "winner", "loser", f"note{BAD}"]
    apart = [(f"x{BAD}", "y", "z", 1), ("y", f"x{BAD}", "z", 1)]
    (tmp_path / "t.csv").write_text(table(header, [*((*row, 1) for row in ROWS), *apart]))
    result = call("fit", "t.csv", *FIT)
    shown(result, 0, f"columns not used: note{SHOWN}", f"the smallest: x{SHOWN}")


def test_names_of_people_are_shown_and_not_executed(call, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 1))
    rows = []
    for person in range(5):
        q = np.array([rng.permutation(8)[:3] for _ in range(60)])
        near = np.abs(X[q[:, 0]] - X[q[:, 1]]) < np.abs(X[q[:, 0]] - X[q[:, 2]])
        turned = near[:, 0] ^ (person == 4)
        name = f"p{person}{BAD if person == 4 else ''}"
        rows += [
            (h, a, b, name) if t else (h, b, a, name)
            for (h, a, b), t in zip(q, turned, strict=True)
        ]
    (tmp_path / "t.csv").write_text(table(["head", "winner", "loser", "participant"], rows))
    result = call("fit", "t.csv", "--dim", 1, "--seed", 0)
    shown(result, 0, f"): p4{SHOWN}")


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("t.csv", f"foo{BAD},b,c\n1,2,3\n2,3,1\n", "may be a header"),
        ("t.json", '[{"a\\u001b[2J": 1}]', "make no answer"),
        ("t.npz", None, "it needs an array called 'triplets'"),
    ],
)
def test_errors_are_shown_and_not_executed(call, tmp_path, name, data, words):
    if data is None:
        np.savez(tmp_path / name, **{f"held{BAD}": [1]})
    else:
        (tmp_path / name).write_text(data)
    shown(call("fit", name), 2, words, r"\x1b")


@pytest.mark.parametrize("name", ["run [/b].csv", "e[bold]x.csv", "a:bug:.csv", "a$\\x$.csv"])
def test_paths_are_no_markup(call, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("x,y\n" + "".join(f"{i % 3},{i * i % 7}\n" for i in range(6)))
    result = call("embed", name, "--out", f"o{name[:-4]}", "--seed", 0)
    assert result.exit_code == 0, result.output
    assert name in result.stdout
    assert f"in o{name[:-4]}: " in result.stdout
    (tmp_path / name).write_text(table(["head", "winner", "loser"], ROWS))
    result = call("fit", name, *FIT, "--out", f"f{name[:-4]}")
    assert result.exit_code == 0, result.output
    assert name in result.stdout
    assert f"in f{name[:-4]}: " in result.stdout


def test_names_that_occur_twice_are_left_aside_aloud(call, tmp_path):
    rows = [(name, i % 3, i * i % 7) for i, name in enumerate("abcdea")]
    (tmp_path / "p.csv").write_text(table(["name", "x", "y"], rows))
    result = call("embed", "p.csv", "--seed", 0, "--json")
    assert result.exit_code == 0, result.output
    assert "columns not used: name; none of them has another text in every row" in result.stderr
    assert result.stderr.count("\n") == 1
    rows = [(name, kind, x, y) for (name, x, y), kind in zip(rows, "uvuvuv", strict=True)]
    rows[-1] = ("f", *rows[-1][1:])
    (tmp_path / "p.csv").write_text(table(["name", "kind", "x", "y"], rows))
    result = call("embed", "p.csv", "--seed", 0, "--json")
    assert result.stderr == "p.csv: columns not used: kind\n"


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_a_full_device_is_one_line(tmp_path, options):
    (tmp_path / "t.csv").write_text(table(["head", "winner", "loser"], ROWS))
    command = [NEARER, "fit", "t.csv", *map(str, FIT), *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: the output cannot be written (No space left on device); make")
    assert (tmp_path / "out/fit/embedding.csv").exists()


def test_pictures_of_a_folder_are_drawn_by_the_names_of_the_objects(call, tmp_path):
    (tmp_path / "looks").mkdir()
    for name in ("ape", "bee"):
        imsave(tmp_path / "looks" / f"{name}.png", np.zeros((8, 8, 3)))
    (tmp_path / "t.csv").write_text(table(["head", "winner", "loser"], ROWS))
    arguments = ["fit", "t.csv", *FIT, "--pictures", "looks", "--map", "m.html"]
    result = call(*arguments, "--picture-size", 50)
    assert result.exit_code == 0, result.output
    assert "2 of 3 objects have a picture\n" in result.stderr
    assert (tmp_path / "m.html").read_text().count("data:image") == 2
    large = (tmp_path / "out/fit/map.png").read_bytes()
    assert call(*arguments).exit_code == 0
    assert (tmp_path / "out/fit/map.png").read_bytes() != large
    assert call("fit", "t.csv", "--pictures", "nowhere").exit_code == 2
    refused = call("fit", "t.csv", *FIT, "--pictures", "looks", "--map", "looks/ape.png")
    assert "is a file that is read" in refused.stderr


def test_pictures_of_other_folders_are_not_taken(call, tmp_path):
    for folder in ("private", "study", "study/pictures"):
        (tmp_path / folder).mkdir()
        for i in range(3):
            imsave(tmp_path / folder / f"p{i}.png", np.full((8, 8, 3), i / 5))
    (tmp_path / "study" / "l2.png").symlink_to(tmp_path / "private" / "p2.png")

    def taken(*names):
        rows = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
        nearer.write_triplets("study/t.csv", rows, labels=list(names))
        result = call("fit", "study/t.csv", *FIT, "--map", "m.html")
        assert result.exit_code == 0, result.output
        return "data:image" in (tmp_path / "m.html").read_text()

    assert taken("p0.png", "p1.png", "pictures/p2.png")
    assert not taken("p0.png", "p1.png", "../private/p2.png")
    assert not taken("p0.png", "p1.png", str(tmp_path / "private" / "p2.png"))
    assert not taken("p0.png", "p1.png", "l2.png")
    assert not taken("p0.png", "p1.png", "n" * 300 + ".png")
