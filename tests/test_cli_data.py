import json

from click.testing import CliRunner

from nearer.cli import main
from nearer.datasets import CATALOGUE


def test_table(monkeypatch, tmp_path):
    monkeypatch.setenv("NEARER_DATA", str(tmp_path))
    monkeypatch.setenv("NEARER_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(main, ["data"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split()[:3] == ["name", "objects", "size"]
    assert [line.split()[0] for line in lines[1 : 1 + len(CATALOGUE)]] == [
        data.name for data in CATALOGUE
    ]
    assert str(tmp_path) in lines[-1]


def test_json(monkeypatch, tmp_path):
    monkeypatch.setenv("NEARER_DATA", str(tmp_path))
    monkeypatch.setenv("NEARER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "human_zappos85.csv.gz").write_bytes(b"")
    result = CliRunner().invoke(main, ["data", "--json"])
    assert result.exit_code == 0, result.output
    sets = {row["name"]: row for row in json.loads(result.output)}
    assert sets["cities"]["at_hand"] == "shipped"
    assert sets["cars"]["at_hand"] == "no"
    assert sets["cars"]["missing"] == ["human_cars_mostcentral.csv", "human_cars_classes.csv"]
    assert sets["zappos85"]["at_hand"] == "yes"
    assert sets["zappos85"]["files"] == [str(tmp_path / "human_zappos85.csv.gz")]
    assert sets["cities"]["licence"] == "CC BY 4.0"
