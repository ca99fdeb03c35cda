import contextlib
import json
import re
import sqlite3

import numpy as np
import pytest
from click.testing import CliRunner
from studykit import Bench, picture

import nearer
from nearer.cli import main
from nearer.errors import DroppedRows
from nearer.study.actions import exclude
from nearer.study.store import connect


def run(*args, **options):
    return CliRunner().invoke(main, ["study", *map(str, args)], **options)


def good(*args, **options):
    result = run(*args, **options)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("label\n" + "\n".join(f"word {k}" for k in range(10)))
    return path


@pytest.fixture
def answered(tmp_path):
    bench = Bench(tmp_path / "answered.db", n=10, questions=200, holdout_share=0.2)
    rng = np.random.default_rng(0)
    bench.pose([rng.choice(10, 3, replace=False) for _ in range(150)])
    person = bench.join(panel="link", external="mail@example.org")
    while trials := bench.hand_out(person):
        t = trials[0]
        bench.answer(
            person,
            t.lease,
            "left" if abs(t.shown[0] - t.query) < abs(t.shown[1] - t.query) else "right",
        )
    bench.close()
    return bench.path


def test_new_from_a_table_with_settings(tmp_path, words):
    (tmp_path / "c.yaml").write_text("questions: 30\nvotes: 3\nmethod: random\n")
    said = good(
        "new",
        tmp_path / "s.db",
        "--items",
        words,
        "--config",
        tmp_path / "c.yaml",
        "--set",
        "questions=7",
    )
    assert "10 items, method random, 7 questions a person" in said
    header = dict(connect(tmp_path / "s.db").execute("SELECT key, value FROM header"))
    assert json.loads(header["config"])["votes"] == "3"
    assert {"version", "format", "study"} <= set(header)


def test_new_from_pictures(tmp_path):
    (tmp_path / "pics").mkdir()
    for k in range(4):
        (tmp_path / "pics" / f"{k}.png").write_bytes(picture((k, 0, 0)))
    assert "4 items" in good("new", tmp_path / "s.db", "--items", tmp_path / "pics")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "questions"], "must be NAME=VALUE"),
        (["--set", "qestions=3"], "did you mean 'questions'?"),
        (["--config", "none.yaml"], "none.yaml: there is no such file"),
    ],
)
def test_what_the_user_can_mend_ends_with_two_and_one_message(tmp_path, words, options, said):
    result = run("new", tmp_path / "s.db", "--items", words, *options)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "s.db").exists()


def test_a_study_in_a_folder_that_is_not_there_is_refused(tmp_path, words):
    result = run("new", tmp_path / "none" / "s.db", "--items", words)
    rule = "s.db: cannot be written (No such file or directory); the folder must exist and be"
    assert (result.exit_code, rule in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["task=choose", "method=random", "things=10", "choose=2"], "a screen shows 11 items"),
        (["task=odd", "method=random", "things=11"], "there are 10, bring more or show fewer"),
        (["n_components=10"], "must be below the number of items, 10"),
        (["completion_redirect=http://["], "must be an http(s) address"),
        (["questions=["], "cannot be read as YAML ("),
        (["title=2020-13-45"], "cannot be read as YAML ("),
        (["title=2020-01-01 99:00:00"], "cannot be read as YAML ("),
        (["title=!!int abc"], "cannot be read as YAML ("),
        (["title=!!timestamp abc"], "cannot be read as YAML ("),
        (["questions=" + "1" * 6000], "cannot be read as YAML ("),
        (["title=" + "[" * 5000], "cannot be read as YAML ("),
        (["consent_version=2024-01-01"], "must be a text; put it in quotes"),
    ],
)
def test_careless_settings_are_refused_in_words(tmp_path, words, options, said):
    settings = [part for one in options for part in ("--set", one)]
    result = run("new", tmp_path / "s.db", "--items", words, *settings)
    assert (result.exit_code, said in result.output) == (2, True), result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("0,1,2,60\n", "position=60 of an own question: a person answers 50 questions"),
    ],
)
def test_own_questions_that_would_never_be_asked_are_refused(tmp_path, words, rows, said):
    (tmp_path / "q.csv").write_text("head,a,b,position\n" + rows)
    arguments = ["--items", words, "--questions", tmp_path / "q.csv"]
    result = run("new", tmp_path / "s.db", *arguments)
    assert (result.exit_code, said in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("html: 3", "html=3: must be `name: value` lines"),
        ("sampling: {common: x}", "common='x': must be"),
    ],
)
def test_a_damaged_file_of_salmon_is_refused_in_words(tmp_path, more, said):
    (tmp_path / "init.yaml").write_text(f"targets: [a, b, c]\n{more}\n")
    result = run("new", tmp_path / "s.db", "--items", tmp_path / "init.yaml")
    assert (result.exit_code, said in result.output) == (2, True), result.output


@pytest.mark.parametrize("command", ["status", "export", "embed", "serve", "simulate"])
def test_a_study_that_is_not_there_ends_with_two(tmp_path, command):
    result = run(command, tmp_path / "none.db")
    assert result.exit_code == 2
    assert "there is no such study" in result.output


def test_a_prefix_that_is_no_path_of_an_address_is_refused(answered):
    for prefix in ("a b", "ü", "x?y", "<x>"):
        result = run("serve", answered, "--prefix", prefix)
        assert (result.exit_code, f"--prefix /{prefix}" in result.output) == (2, True)


def test_status(answered):
    said = good("status", answered, "--people")
    assert "is running" in said
    assert " decided, 0 given up\n" in said
    assert "repeats agree" in said
    output = json.loads(good("status", answered, "--json"))
    assert output["answers"]["all"] == 200
    assert output["participants"][0]["answered"] == 200


def test_export_and_embed(answered, tmp_path):
    assert good("export", answered).startswith("head,winner,loser,person,purpose\n")
    good("export", answered, "--format", "salmon", "--out", tmp_path / "salmon.csv")
    assert (tmp_path / "salmon.csv").read_text().startswith("head,winner,loser,left,right,puid")
    assert "mail@example.org" not in good("export", answered, "--format", "answers")
    assert "mail@example.org" in good("export", answered, "--format", "answers", "--identities")
    output = json.loads(
        good("embed", answered, "--dim", "1", "--out", tmp_path / "p.csv", "--json")
    )
    assert output["dimension"] == 1
    assert output["accuracy"] > 0.8
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 11
    assert run("export", answered, "--out", tmp_path / "no" / "x.csv").exit_code == 2
    assert "Error: --dim 99: 10 objects" in run("embed", answered, "--dim", "99").output
    assert run("export", answered, "--out", tmp_path).exit_code == 2


def test_embed_says_how_good_the_map_is_and_draws_it(answered, tmp_path):
    files = [tmp_path / name for name in ("p.csv", "map.svg", "report.md")]
    options = [x for pair in zip(("--out", "--map", "--report"), files, strict=True) for x in pair]
    said = run("embed", answered, "--dim", "1", *options)
    assert said.exit_code == 0, said.output
    assert re.search(r"192 answers, 1 dimension, \d\d\.\d% of held-out answers", said.output)
    assert all(file.stat().st_size for file in files)
    text = files[2].read_text()
    assert "192 answers of 1 participant with nearer" in text
    assert run("embed", answered, "--map", tmp_path / "map.txt").exit_code == 2
    assert "0 of 10 objects have a picture\n" in good("embed", answered, "--pictures", tmp_path)


def test_everything_that_is_exported_is_fitted_without_what_does_not_count(tmp_path, words):
    good("new", tmp_path / "s.db", "--items", words, "--set", "method=random")
    bench = Bench(tmp_path / "s.db")
    for choice in ("left", "undecided"):
        person = bench.join()
        for _ in range(20):
            bench.clock.now += 1
            bench.answer(person, bench.hand_out(person)[0].lease, choice)
    out = bench.join()
    bench.answer(out, bench.hand_out(out)[0].lease)
    bench.write(exclude, out, True)
    bench.close()
    good("export", tmp_path / "s.db", "--format", "answers", "--out", tmp_path / "all.csv")
    with pytest.warns(DroppedRows):
        triplets = nearer.read_triplets(tmp_path / "all.csv")
    assert (len(triplets.report.excluded), len(triplets.report.undecided)) == (1, 20)
    assert len(triplets) + len(triplets.report.degenerate) == 20


def test_backup_and_withdraw(answered, tmp_path):
    good("backup", answered, tmp_path / "copy.db")
    assert "200 answers erased" in good("withdraw", answered, "mail@example.org", "--yes")
    assert json.loads(good("status", answered, "--json"))["answers"]["all"] == 0
    assert json.loads(good("status", tmp_path / "copy.db", "--json"))["answers"]["all"] == 200
    assert run("withdraw", answered, "nobody", "--yes").exit_code == 2


def test_a_damaged_study_is_named_and_not_copied(answered, tmp_path):
    db = sqlite3.connect(answered)
    db.execute("PRAGMA writable_schema = ON")
    wrong = "CREATE INDEX answers_person ON answers (lease)"  # its rows are of another column
    db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'answers_person'", (wrong,))
    db.commit()
    db.close()
    result = run("backup", answered, tmp_path / "copy.db")
    assert result.exit_code == 2, result.output
    assert f"{answered}: is damaged" in result.output
    assert [*tmp_path.glob("*copy.db*"), *tmp_path.glob(".*copy*")] == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE header SET value = '{' WHERE key = 'config'",
        "INSERT INTO events (at, kind, detail) VALUES (1, 'settings', '[]')",
        "INSERT INTO events (at, kind, detail) VALUES (1, CAST(x'ff' AS TEXT), '{}')",
        "DROP TABLE answers",
    ],
)
def test_a_damaged_study_is_one_message(answered, damage):
    with contextlib.closing(sqlite3.connect(answered, isolation_level=None)) as db:
        db.execute(damage)
    for command in (["status"], ["embed", "--dim", "1"], ["set", "title=other"]):
        result = run(command[0], answered, *command[1:])
        if result.exit_code != 0:
            assert result.exit_code == 2, result.output
            assert "continue from a backup" in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("damage", "command"),
    [
        ("DROP TRIGGER leases_keep; UPDATE leases SET issued = 'x'", ["set", "quota=9"]),
        ("UPDATE secrets SET value = 5", ["link", "mail@example.org"]),
    ],
)
def test_values_of_another_type_are_one_message(answered, damage, command):
    with contextlib.closing(sqlite3.connect(answered, isolation_level=None)) as db:
        db.executescript(damage)
    result = run(command[0], answered, *command[1:])
    assert result.exit_code == 2, result.output
    assert "continue from a backup" in result.output


def test_simulate_plans_on_a_copy(tmp_path, words):
    good("new", tmp_path / "s.db", "--items", words)
    options = ["--answers", "300", "--people", "5", "--error", "0.1", "--dim", "1", "--json"]
    options += ["--seconds", "0.02"]
    output = json.loads(good("simulate", tmp_path / "s.db", *options))
    assert output["method"] == "informative"
    assert output["stored"] >= 300
    assert output["curve"][-1]["truth"] > 0.65  # guessing gives 0.5
    assert json.loads(good("status", tmp_path / "s.db", "--json"))["answers"]["all"] == 0
    np.savetxt(tmp_path / "p.csv", np.zeros((3, 2)), delimiter=",")
    result = run("simulate", tmp_path / "s.db", "--positions", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert "positions of 3 items: the study has 10" in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "things", "choose", "said"),
    [("choose", 6, 2, "2 of 6"), ("rank", 4, 2, "rank 2 of 4"), ("odd", 3, 1, "odd-one-out")],
)
def test_simulated_people_do_every_task(tmp_path, words, task, things, choose, said):
    settings = [f"task={task}", f"things={things}", f"choose={choose}", "method=random"]
    page = "before=[{title: You, ask: [{name: age, kind: number, label: Age}]}]"
    options = [part for one in [*settings, page] for part in ("--set", one)]
    good("new", tmp_path / "s.db", "--items", words, *options)
    arguments = [
        "--answers",
        "200",
        "--people",
        "4",
        "--error",
        "0.1",
        "--dim",
        "1",
        "--dropout",
        "0",
    ]
    output = json.loads(good("simulate", tmp_path / "s.db", *arguments, "--json"))
    assert output["task"] == said
    assert output["stored"] >= 200
    assert output["curve"][-1]["n_triplets"] == output["counted"] > 120
    assert output["curve"][-1]["hours"] == pytest.approx(
        output["stored"] * nearer.Pace().seconds(said) / 3600
    )
    assert output["curve"][-1]["truth"] > 0.8


def test_a_study_that_ends_before_its_answers_are_there_ends_the_simulation(tmp_path):
    (tmp_path / "w.txt").write_text("a\nb\nc\nd")
    options = ["--set", "when_all_asked=finish", "--set", "method=random"]
    good("new", tmp_path / "s.db", "--items", tmp_path / "w.txt", *options)
    output = json.loads(good("simulate", tmp_path / "s.db", "--answers", "500", "--json"))
    assert 12 <= output["stored"] < 500


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--error", "0.5"], "0.5 is not in the range 0<=x<0.5"),
        (["--dropout", "2"], "2.0 is not in the range 0<=x<=1"),
        (["--error", "nan"], "nan is no finite number"),
        (["--seconds", "nan"], "nan is no finite number"),
        (["--seconds", "-1"], "-1.0 is not in the range 0<=x"),
        (["--dim", "50"], "Error: --dim 50: 10 objects span at most 9"),
    ],
)
def test_people_who_cannot_be_are_refused(tmp_path, words, option, said):
    good("new", tmp_path / "s.db", "--items", words)
    result = run("simulate", tmp_path / "s.db", *option)
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_without_the_extra_the_remedy_is_named(tmp_path, words, monkeypatch):
    import sys

    good("new", tmp_path / "s.db", "--items", words, "--set", "method=random")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "nearer.study.app", raising=False)  # imported again
    result = run("serve", tmp_path / "s.db")
    assert result.exit_code == 2
    assert "pip install 'nearer[study]'" in result.output


def test_links_that_others_in_the_network_can_open(answered, monkeypatch):
    from nearer.study import app

    def run_server(study, listener, announce):
        announce()
        study.media.close()
        study.store.close()

    monkeypatch.setattr(app, "run_server", run_server)
    said = run("serve", answered, "--host", "0.0.0.0", "--port", "0").output
    assert re.search(r"Participants: http://(?!0\.0\.0\.0|127\.)[\d.]+:\d+/\n", said), said
    assert "Everybody in this network, unencrypted, can open these links." in said


def test_an_empty_path_is_not_the_current_folder(tmp_path, words):
    for args in (("", "--items", words), (tmp_path / "s.db", "--items", "")):
        result = run("new", *args)
        assert result.exit_code == 2
        assert "'': is no path of a file; give one" in result.output
    result = run("new", tmp_path / "s.db", "--items", words, "--config", tmp_path / "no.yaml")
    assert result.exit_code == 2
    assert "no.yaml: there is no such file; check the path" in result.output
    assert not (tmp_path / "s.db").exists()


@pytest.mark.filterwarnings("always::nearer.errors.DroppedRows")
def test_earlier_answers_that_say_nothing_are_counted(tmp_path, words):
    good("new", tmp_path / "s.db", "--items", words)
    table = tmp_path / "t.csv"
    table.write_text("head,winner,loser\n0,1,2\n3,3,4\n")
    said = good("import", tmp_path / "s.db", table)
    assert "an object is named twice: 1 of 2 answers" in said
    assert "1 answer added" in said
