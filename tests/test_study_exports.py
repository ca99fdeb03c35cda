import csv
import io

import pytest
from studykit import Bench

from nearer.study.actions import Identity, exclude, join
from nearer.study.exports import completions_csv, export_csv, people_report, positions_csv
from nearer.study.worker import triplets


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path / "s.db", questions=30, repeat_share=0.2, catch_share=0.1)
    made.pose([(h, a, b) for h in range(4) for a in range(4, 6) for b in range(6, 8)])
    choices = ["left", "right", "left", "skip", "undecided"]
    for name in ("alice", "bob"):
        person = made.join(panel="prolific", external=name)
        for k in range(30):
            made.clock.now += 2
            made.answer(person, made.hand_out(person)[0].lease, choices[k % 5], 500.0 + k)
    yield made
    made.close()


def table(bench, name, **options):
    return list(csv.DictReader(io.StringIO(export_csv(bench.store.reader(), name, **options))))


def test_plain_triplets_are_what_is_fitted_and_the_hold_outs(bench):
    rows = table(bench, "triplets")
    real = [
        [int(r["head"]), int(r["winner"]), int(r["loser"])] for r in rows if r["purpose"] == "main"
    ]
    assert real == triplets(bench.store.reader()).tolist()
    assert {r["purpose"] for r in rows} == {"main", "holdout"}


def test_plain_triplets_can_be_read_back_by_the_library(bench, tmp_path):
    import nearer

    (tmp_path / "t.csv").write_text(export_csv(bench.store.reader(), "triplets"))
    read = nearer.read_triplets(tmp_path / "t.csv")
    assert len(read.triplets) == len(table(bench, "triplets"))


def test_salmons_columns(bench):
    rows = table(bench, "salmon")
    wanted = ["head", "winner", "loser", "left", "right", "puid", "response_time", "sampler"]
    wanted += ["network_latency", "time_received", "datetime_received", "start_time", "score"]
    wanted += ["puid_num_responses", "num_responses", "head_html", "winner_filename"]
    assert set(wanted) <= set(rows[0])
    sides = {(r["head"], r["left"], r["right"]) for r in table(bench, "answers") if r["chosen"]}
    for row in rows:
        assert {row["winner"], row["loser"]} == {row["left"], row["right"]}
        assert (row["head"], row["left"], row["right"]) in sides
        assert 0.5 <= float(row["response_time"]) < 0.6
        assert row["winner_html"] == f"word {row['winner']}"


def test_triplettools_columns(bench):
    rows = table(bench, "triplettools")
    wanted = [
        "worker_id",
        "rt",
        "Center",
        "Left",
        "Right",
        "Answer",
        "sampleAlg",
        "sampleSet",
        "head",
        "winner",
        "loser",
    ]
    assert list(rows[0]) == wanted
    assert {r["sampleAlg"] for r in rows} <= {"random", "validation", "check"}
    assert all(r["Answer"] in (r["Left"], r["Right"]) for r in rows)


def test_all_answers_keep_skip_and_undecided_apart(bench):
    rows = table(bench, "answers")
    assert len(rows) == 60
    assert {r["choice"] for r in rows} == {"left", "right", "skip", "undecided"}
    assert all((r["winner"] == "") == (r["choice"] in ("skip", "undecided")) for r in rows)


def test_names_from_outside_appear_only_on_request(bench):
    for name in ("triplets", "salmon", "triplettools", "answers"):
        assert "alice" not in export_csv(bench.store.reader(), name)
    for name in ("salmon", "triplettools", "answers"):
        assert "alice" in export_csv(bench.store.reader(), name, identities=True)


def test_excluded_people_are_left_out_of_what_is_fitted_but_not_of_the_record(bench):
    bench.write(exclude, 1, True)
    excluded = {r["person"] for r in table(bench, "answers") if r["excluded"] == "1"}
    assert len(excluded) == 1
    assert excluded.isdisjoint({r["person"] for r in table(bench, "triplets")})
    assert len(table(bench, "answers")) == 60


def test_an_empty_study_exports_a_header(tmp_path):
    bench = Bench(tmp_path / "s.db")
    assert export_csv(bench.store.reader(), "triplets") == "head,winner,loser,person,purpose\n"
    bench.close()


def test_positions_and_formulas_in_labels():
    text = positions_csv(["=1+1", "b"], [[0.5, 1], [2, 3]])
    assert text == "object,label,x1,x2\n0,'=1+1,0.5,1.0\n1,b,2.0,3.0\n"


@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_no_separator_makes_a_formula_of_a_part_of_a_name(separator):
    for name in ("x{}=1", 'x{}"=1{}"', "x{} @A1"):
        text = positions_csv([name.replace("{}", separator)], [[1.0]])
        rows = csv.reader(io.StringIO(text), delimiter=separator)
        assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in ("=", "@")]


def test_people_in_numbers(bench):
    reports = people_report(bench.store.reader())
    assert [r.answered for r in reports] == [30, 30]
    for r in reports:
        assert (r.skipped, r.undecided) == (6, 6)
        assert r.median_ms == 514.5
        assert r.catch_total + r.repeats_total > 0
        assert 0.5 < r.left_share < 0.8


def test_a_careful_and_a_careless_person_differ_in_the_table(tmp_path):
    bench = Bench(tmp_path / "s.db", n=12, questions=60, repeat_share=0.3, catch_share=0.15)
    bench.pose([(h, a, b) for h in range(4) for a in range(4, 8) for b in range(8, 12)])
    careful, careless = bench.join(), bench.join()
    for _ in range(60):
        bench.clock.now += 1.0
        trial = bench.hand_out(careful)[0]
        near = min(trial.shown, key=lambda k: (abs(k - trial.query), k))
        bench.answer(careful, trial.lease, "left" if near == trial.shown[0] else "right")
        bench.answer(careless, bench.hand_out(careless)[0].lease, "left", 120.0)
    bad, good = people_report(bench.store.reader())
    assert good.warnings == []
    assert good.catch_failed == 0
    assert good.repeats_agreed == good.repeats_total > 5
    assert set(bad.warnings) >= {"repeats disagree", "very fast", "keeps to one side"}
    bench.close()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "\r\n="])
def test_a_person_cannot_write_formulas_or_break_a_row(tmp_path, start):
    bench = Bench(tmp_path / "s.db")
    name = f'{start}HYPERLINK("x")\r\n1,2,3\nb\x0bc\u2028d'
    person = bench.write(join, consent="1", identity=Identity("link", name))
    bench.answer(person, bench.hand_out(person)[0].lease)
    db = bench.store.reader()
    for text in (
        completions_csv(db, str),
        export_csv(db, "answers", identities=True),
        export_csv(db, "salmon", identities=True),
    ):
        assert len(text.splitlines()) == 2
        (row,) = csv.DictReader(io.StringIO(text))
        cells = [cell for cell in row.values() if "HYPERLINK" in cell]
        assert cells
        assert all(cell.startswith("'") for cell in cells)
    bench.close()
