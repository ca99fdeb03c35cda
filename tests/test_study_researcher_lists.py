"""What researchers bring: own questions, earlier answers, tables of every make, wider tasks."""

import json
import warnings
from itertools import cycle

import numpy as np
import pytest
from click.testing import CliRunner
from studykit import Bench, Web, only_real, words

from nearer.cli import main
from nearer.errors import DroppedRows, InvalidInput
from nearer.fitting.people import Pace
from nearer.study.actions import import_answers
from nearer.study.config import Config
from nearer.study.exports import export_csv, people_report
from nearer.study.items import (
    OwnQuestion,
    read_answers,
    read_items,
    read_questions,
)
from nearer.study.store import new_study
from nearer.study.worker import triplets
from nearer.trials import Trials

NAMES = [f"word {k}" for k in range(8)]


def own(tmp_path, questions, **settings):
    settings = {"method": "random", "questions": 20, "practice": 1, **settings}
    path = tmp_path / "s.db"
    new_study(path, words(8), Config.of(settings), questions)
    return Bench(path)


def asked(bench, person, choose=lambda trial: "left"):
    questions = []
    while trials := bench.hand_out(person):
        questions.append(bench.board.questions[bench.board.leases[trials[0].lease].question])
        bench.clock.now += 1
        bench.answer(person, trials[0].lease, choose(trials[0]))
    return questions


# Own questions ---------------------------------------------------------------------------------


def test_a_question_with_a_position_is_asked_of_everybody_there(tmp_path):
    listed = [OwnQuestion(0, 1, 2, 1), OwnQuestion(3, 4, 5, 7), OwnQuestion(5, 6, 7, 7)]
    bench = own(tmp_path, listed)
    for _ in range(3):
        questions = asked(bench, bench.join())
        assert (questions[0].query, *questions[0].shown) == (0, 1, 2)
        assert (questions[6].query, *questions[6].shown) == (3, 4, 5)
        assert (questions[7].query, *questions[7].shown) == (5, 6, 7), (
            "of one place, one after the other"
        )
        assert [q.purpose for q in questions].count("own") == 3
    bench.close()


def test_a_list_is_mixed_in_by_its_share_in_its_order(tmp_path):
    listed = [OwnQuestion(0, k, k + 1) for k in range(1, 7)]
    bench = own(tmp_path, listed, own_share=0.25, **only_real())
    for _ in range(3):
        mine = [(q.query, *q.shown) for q in asked(bench, bench.join()) if q.purpose == "own"]
        assert mine == [q[:3] for q in listed][:5]
    bench.close()


def test_own_questions_with_an_answer_are_checks(tmp_path):
    listed = [OwnQuestion(0, k, k + 1, None, k) for k in range(1, 5)]
    bench = own(tmp_path, listed, own_share=0.2, **only_real())
    careful, careless = bench.join(), bench.join()
    asked(bench, careful, lambda t: "left" if t.shown[0] < t.shown[1] else "right")
    asked(bench, careless, lambda t: "left" if t.shown[0] > t.shown[1] else "right")
    bad, good = people_report(bench.store.reader())
    assert (bad.catch_total, bad.catch_failed) == (4, 4)
    assert (good.catch_total, good.catch_failed) == (4, 0)
    assert "fails catch trials" in bad.warnings
    bench.close()


def test_a_table_of_questions(tmp_path):
    table = tmp_path / "q.csv"
    table.write_text("head;a;b;position;answer\nword 0;1;word 2;3;word 2\n4;5;6;;\n")
    questions = read_questions(table, NAMES)
    assert questions == [OwnQuestion(0, 1, 2, 3, 2), OwnQuestion(4, 5, 6)]
    for text, match in {
        "head,a\n0,1\n": "must have head, a and b",
        "head,a,b\n0,1,9\n": "line 2 names '9'; must be an item's name, or a number from 0 to 7",
        "head,a,b\n0,1,1\n": "compares a thing with itself",
        "head,a,b,answer\n0,1,2,3\n": "the answer must be one of the two",
        "head,a,b\n0,1,2\n0,2,1\n": "is listed twice",
        "head,a,b,position\n0,1,2,x\n": "position='x': must be 1, 2",
    }.items():
        table.write_text(text)
        with pytest.raises(InvalidInput, match=match):
            read_questions(table, NAMES)


def test_what_is_not_read_of_salmons_file_is_said(tmp_path):
    path = tmp_path / "init.yaml"
    path.write_text(
        "targets: [a, b, c, d, e]\nsamplers: {ARR: {}}\nsampling: {common: {d: 3}}\ntheme: dark\n"
    )
    _, settings, notes = read_items(path)
    assert settings == {"n_components": 3, "questions": 50, "can_skip": False}
    assert notes[-1] == "questions of your own go to --questions, shares and method to --set"
    result = CliRunner().invoke(
        main, ["study", "new", str(tmp_path / "s.db"), "--items", str(path)]
    )
    assert result.exit_code == 0, result.output
    assert "theme: is not read" in result.output


# Earlier answers -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::nearer.errors.DroppedRows")
@pytest.mark.parametrize("name", ["triplets", "salmon", "triplettools", "answers"])
def test_what_was_exported_can_be_brought_into_another_study(tmp_path, name):
    bench = Bench(tmp_path / "a.db", questions=30)
    said = cycle(["left", "right", "left", "skip", "undecided"])
    for _ in range(3):
        asked(bench, bench.join(), lambda trial: next(said))
    db = bench.store.reader()
    table = tmp_path / "t.csv"
    table.write_text(export_csv(db, name))
    before = triplets(db, ("main", "extra", "own", "holdout"))
    if name in ("triplettools", "answers"):
        before = triplets(db, ("main", "extra", "own", "holdout", "repeat"))
    other = Bench(tmp_path / "b.db")
    names = [item["name"] for item in other.board.items]
    answers = read_answers(table, names)
    assert other.write(import_answers, answers) == len(before)
    assert sorted(triplets(other.store.reader()).tolist()) == sorted(before.tolist())
    assert len(other.board.people) == 3
    assert other.board.answers == len(before)
    other.close()
    bench.close()


def test_a_method_goes_on_from_what_was_brought(tmp_path):
    from nearer.study.worker import Worker

    bench = Bench(tmp_path / "s.db", n=5, **only_real())
    table = tmp_path / "t.csv"
    table.write_text("head,winner,loser\n" + "".join(f"0,{a},{a + 1}\n" for a in (1, 2, 3)))
    bench.write(import_answers, read_answers(table, [str(k) for k in range(5)]))
    reply = Worker(bench.path).do({"job": "choose", "person": None, "n_questions": 100})
    rows = {(h, *sorted((a, b))) for h, a, b in reply["questions"]}
    assert len(rows) == 30 - 3
    assert rows.isdisjoint({(0, 1, 2), (0, 2, 3), (0, 3, 4)})
    bench.close()


@pytest.mark.parametrize("name", ["triplets", "salmon", "triplettools", "answers"])
def test_answers_without_times_are_exported(tmp_path, name):
    bench = Bench(tmp_path / "s.db")
    bench.write(import_answers, Trials.from_triplets([[0, 1, 2], [3, 1, 2]]))
    db = bench.store.reader()
    assert export_csv(db, name).count("\n") == 3
    (person,) = people_report(db)
    assert (person.answered, person.median_ms, person.false_times) == (2, None, 0)
    bench.close()


@pytest.mark.parametrize("top", ["", "sep=;\n", "\n\n"])
def test_lines_are_counted_as_an_editor_counts_them(tmp_path, top):
    file = tmp_path / "questions.csv"
    text = top + 'head;a;b;note\n\n0;1;2;"two\nlines"\n\n0;1;9;\n'
    file.write_text(text)
    line = text[: text.index("0;1;9")].count("\n") + 1
    with pytest.raises(InvalidInput, match=f"line {line} names '9'"):
        read_questions(file, NAMES)


def test_a_table_that_is_no_record_of_answers_is_refused(tmp_path):
    table = tmp_path / "t.csv"
    for text, match in {
        "head,winner\n0,1\n": "make no answer; needed are head . near . far",
        "head,winner,loser\n0,1,nothing\n": "t.csv: names 'nothing'; must be an item's name, or a",
        "": "has no rows",
        "head,winner,loser\n0,0,1\n": "holds no answer; each needs three items that differ",
        "Center,Left,Right,Answer\n0,1,2,3\n4,5,6,5\n3,1,2,2\n": "line 2",
    }.items():
        table.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DroppedRows)
            with pytest.raises(InvalidInput, match=match):
                read_answers(table, NAMES)


# Items -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("w.csv", "label;alt\nKäse;gelb\nBrot;\nWein, rot;\n".encode()),
        ("w.csv", "label;alt\nKäse;gelb\nBrot;\nWein, rot;\n".encode("latin-1")),
        ("w.csv", "label;alt\r\nKäse;gelb\r\nBrot;\r\nWein, rot;\r\n".encode("utf-8-sig")),
        ("w.csv", "label\talt\nKäse\tgelb\nBrot\t\nWein, rot\t\n".encode("utf-16")),
        ("w.txt", "Käse\n\n  Brot \nWein, rot\n".encode()),
        ("w.txt", "Käse\r\nBrot\r\nWein, rot".encode("cp1252")),
    ],
)
def test_items_from_tables_of_every_make(tmp_path, name, raw):
    (tmp_path / name).write_bytes(raw)
    assert [item.text for item in read_items(tmp_path / name)[0]] == ["Käse", "Brot", "Wein, rot"]


# Wider tasks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "each"),
    [
        ({"task": "choose", "things": 5, "choose": 2}, 6),
        ({"task": "rank", "things": 5, "choose": 2}, 7),
        ({"task": "odd", "things": 3}, 2),
    ],
)
def test_wider_tasks_from_the_question_to_the_map(tmp_path, settings, each):
    web = Web(tmp_path / "s.db", n=9, questions=12, **settings, **only_real())
    headers = web.join()
    for _ in range(12):
        standing = web.client.get("/api/me", headers=headers).json()
        trial = standing["trials"][0]
        assert trial["task"] == settings["task"]
        assert len(trial["shown"]) == settings["things"]
        assert (trial["head"] is None) == (settings["task"] == "odd")
        ids = [thing["id"] for thing in trial["shown"]]
        answer = {"lease": trial["lease"], "choice": "chosen", "response_ms": 10}
        for wrong in (ids, [], [ids[0]] * settings.get("choose", 1) + [1], [123]):
            body = {"answers": [{**answer, "chosen": wrong}]}
            assert web.client.post("/api/answers", json=body, headers=headers).status_code == 422
        assert (
            web.client.post(
                "/api/answers", json={"answers": [{**answer, "choice": "left"}]}, headers=headers
            ).status_code
            == 422
        )
        body = {"answers": [{**answer, "chosen": ids[: settings.get("choose", 1)]}]}
        reply = web.client.post("/api/answers", json=body, headers=headers)
        assert reply.status_code == 200, reply.text
    assert reply.json()["stage"] == "finished"
    db = web.study.store.reader()
    rows = triplets(db)
    assert len(rows) == 12 * each
    assert all(len(set(row)) == 3 for row in rows.tolist())
    assert export_csv(db, "triplets").count("\n") == len(rows) + 1
    assert export_csv(db, "answers").count("\n") == 13
    web.close()


def test_a_task_says_what_it_needs():
    for wrong in (
        {"task": "choose", "things": 5},
        {"task": "odd", "things": 2, "method": "random"},
        {"task": "two", "things": 3},
        {"task": "choose", "things": 3, "choose": 3, "method": "random"},
        {"task": "odd", "things": 4, "choose": 2, "method": "random"},
    ):
        with pytest.raises(InvalidInput, match="setting"):
            Config.of(wrong)


# On the command line -----------------------------------------------------------------------------


def run(*args):
    return CliRunner().invoke(main, ["study", *map(str, args)])


def test_set_import_link_and_own_questions_on_the_command_line(tmp_path):
    (tmp_path / "w.txt").write_text("\n".join(f"word {k}" for k in range(8)))
    (tmp_path / "q.csv").write_text("head,a,b,position\n0,1,2,1\n")
    study = tmp_path / "s.db"
    made = run("new", study, "--items", tmp_path / "w.txt", "--questions", tmp_path / "q.csv")
    assert made.exit_code == 0, made.output
    assert (
        run("set", study, "questions=9", "title=Fruit").output == "questions: 9\ntitle: 'Fruit'\n"
    )
    assert "Nothing changed" in run("set", study, "questions=9").output
    for wrong, said in (
        ("method=basis", "is fixed"),
        ("x", "must be NAME=VALUE"),
        ("x=1", "known"),
    ):
        result = run("set", study, wrong)
        assert result.exit_code == 2
        assert said in result.output
    (tmp_path / "t.csv").write_text("head,winner,loser,person\n0,1,2,ann\n3,4,5,bob\n")
    assert "2 answers added" in run("import", study, tmp_path / "t.csv").output
    output = json.loads(run("status", study, "--json").output)
    assert output["answers"]["counted"] == 2
    web = Web(study)
    joined = web.client.post(
        "/api/join", json={"consent_version": "1", "parameters": {"PROLIFIC_PID": "abc"}}
    ).json()
    link = run("link", study, "abc").output.strip()
    body = {"consent_version": "1", "parameters": {"resume": link.removeprefix("?resume=")}}
    assert web.client.post("/api/join", json=body).json()["token"] == joined["token"]
    assert run("link", study, "nobody").exit_code == 2
    web.close()


def test_serving_what_is_not_there_leaves_nothing_behind(tmp_path):
    assert run("serve", tmp_path / "nope.db", "--port", "0").exit_code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_plan_counts_what_counts_and_says_what_it_costs(tmp_path):
    (tmp_path / "w.txt").write_text("\n".join(f"word {k}" for k in range(12)))
    study = tmp_path / "s.db"
    run("new", study, "--items", tmp_path / "w.txt")
    result = run("simulate", study, "--answers", "400", "--people", "8", "--dim", "1")
    assert result.exit_code == 0, result.output
    output = json.loads(
        run("simulate", study, "--answers", "400", "--people", "8", "--dim", "1", "--json").output
    )
    last = output["curve"][-1]
    assert last["n_triplets"] == output["counted"] >= 0.7 * output["stored"]
    assert last["answers"] == output["stored"] >= 400
    assert last["people"] == -(-output["stored"] // 50)
    assert np.isclose(last["hours"], output["stored"] * Pace().seconds("1 of 2") / 3600)


# The web ---------------------------------------------------------------------------------------


def test_small_things_on_the_web(tmp_path):
    web = Web(tmp_path / "s.db")
    body = {"consent_version": "1", "parameters": {"utm": "x" * 5000, "PROLIFIC_PID": "abc"}}
    assert web.client.post("/api/join", json=body).status_code == 200, "what else a link says"
    for name in ("x" * 500, "two\nlines", "half \ud800"):
        body = json.dumps({"consent_version": "1", "parameters": {"PROLIFIC_PID": name}})
        assert web.client.post("/api/join", content=body).status_code == 422
    for path in ("/", "/api/study", "/login", "/static/style.css", "/healthz"):
        assert web.client.head(path).status_code == web.client.get(path).status_code
    token = web.log_in()
    for name in ("triplets", "salmon", "triplettools", "answers", "completions"):
        assert web.client.get(f"/api/researcher/export/{name}.csv").text.count(",") >= 4
    change = {"settings": {"title": "Another"}}
    assert web.client.post("/api/researcher/settings", json=change, headers=token).json() == {
        "changed": {"title": "Another"}
    }
    result = web.client.get("/api/researcher/settings").json()
    assert result["settings"]["title"] == "Another"
    assert result["changes"][0]["settings"] == {"title": "Another"}
    assert "seed" not in result["changeable"]
    (person,) = web.client.get("/api/researcher/people").json()
    assert (person["panel"], person["external"]) == ("prolific", "abc")
    web.close()


def test_below_a_path_and_in_a_frame(tmp_path):
    from fastapi.testclient import TestClient
    from studykit import make_study

    from nearer.study.app import create_app
    from nearer.study.web import Study

    path = make_study(tmp_path / "s.db", frame_ancestors="https://www.mturk.com")
    study = Study(path, work=False, prefix="/flowers")
    with TestClient(create_app(study), follow_redirects=False) as client:
        for base in ("", "/flowers"):  # a proxy may or may not take the path away
            assert client.get(f"{base}/api/study").status_code == 200
            assert client.get(f"{base}/static/style.css").status_code == 200
            assert client.get(f"{base}/api/researcher/status").status_code == 401
            assert client.get(f"{base}/dashboard").headers["location"] == "/flowers/login"
        client.post(
            f"/flowers/setup/{study.setup}", data={"name": "ada", "password": "correct horse"}
        )
        reply = client.post("/flowers/login", data={"name": "ada", "password": "correct horse"})
        assert reply.headers["location"] == "/flowers/dashboard"
        assert "path=/flowers/" in reply.headers["set-cookie"].lower()
        policy = client.get("/").headers["content-security-policy"]
        assert policy.endswith("frame-ancestors https://www.mturk.com")
        assert "x-frame-options" not in client.get("/").headers
