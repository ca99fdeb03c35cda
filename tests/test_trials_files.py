"""Files of trials: recognised where that is safe, refused where two readings are possible."""

import ast
import json
import re
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from nearer.cli import main
from nearer.errors import DroppedRows, InvalidInput
from nearer.trials import Trials


def write(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def test_grids_keep_people_and_times(tmp_path):
    line = {"person": 7, "query": 0, "shown": [1, 2, 3], "chosen": [3], "ms": 1500}
    empty = line | {"chosen": [], "ms": None}
    file = write(tmp_path, "g.jsonl", json.dumps(line) + "\n" + json.dumps(empty) + "\n")
    trials = nearer.read_trials(file)
    assert trials.decided.tolist() == [True, False]
    assert trials.people.tolist() == [7, 7]
    assert trials.seconds[0] == 1.5
    assert np.isnan(trials.seconds[1])


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl"])
def test_jspsych(tmp_path, suffix):
    records = [
        {"stimulus": "ape", "choices": ["bee", "cat"], "response": 1, "rt": 900},
        {"stimulus": "bee", "choices": ["ape", "cat"], "response": 0, "rt": 800},
    ]
    if suffix == "csv":
        rows = [
            f'{r["stimulus"]},"{json.dumps(r["choices"])}",{r["response"]},{r["rt"]}'.replace(
                '"[', '"['
            )
            .replace('["', '[""')
            .replace('"]', '""]')
            .replace('", "', '"", ""')
            for r in records
        ]
        text = "stimulus,choices,response,rt\n" + "\n".join(rows) + "\n"
    elif suffix == "json":
        text = json.dumps([{"stimulus": "<p>welcome</p>", "rt": 1}, *records])
    else:
        text = "\n".join(map(json.dumps, records))
    trials = nearer.read_trials(write(tmp_path, f"t.{suffix}", text))
    assert trials.names == ("ape", "bee", "cat")
    assert trials.triplets()[0].tolist() == [[0, 2, 1], [1, 0, 2]]
    assert trials.seconds.tolist() == [0.9, 0.8]


def test_odd_one_out_by_name_and_by_place(tmp_path):
    head = "image_1,image_2,image_3,choice\n"
    by_name = nearer.read_trials(write(tmp_path, "n.csv", head + "ape,bee,cat,cat\n"))
    assert sorted(by_name.triplets()[0].tolist()) == [[0, 1, 2], [1, 0, 2]]
    from_one = nearer.read_trials(write(tmp_path, "o.csv", head + "ape,bee,cat,3\nape,cat,dog,1\n"))
    assert from_one.chosen.tolist() == [[0, 0, 1], [1, 0, 0]]
    from_zero = nearer.read_trials(write(tmp_path, "z.csv", head + "ape,bee,cat,0\n"))
    assert from_zero.chosen.tolist() == [[1, 0, 0]]
    unclear = write(tmp_path, "u.csv", head + "ape,bee,cat,1\napes,bees,cats,2\n")
    with pytest.raises(InvalidInput, match=r"first=0.* or .*first=1"):
        nearer.read_trials(unclear)
    assert nearer.read_trials(unclear, first=0).chosen.tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("header", "choices"),
    [
        ("image_1,image_2,image_3,odd", "31"),
        ("left,middle,right,choice", "31"),
        ("left,middle,right,choice", "20"),
        ("left,middle,right,choice", ["right", "left"]),
        ("head,left,right,choice", "21"),
        ("head,left,right,winner", "21"),
    ],
)
def test_places_are_read_where_they_can_only_be_places(tmp_path, header, choices):
    text = f"{header}\nape,bee,cat,{choices[0]}\nape,bee,dog,{choices[1]}\n"
    trials = nearer.read_trials(write(tmp_path, "t.csv", text))
    last = [[0, 1], [1, 0]] if trials.kind == "near" else [[0, 0, 1], [1, 0, 0]]
    assert trials.chosen.tolist() == last


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", "", "no records"),
        ("b.jsonl", "{oops\n", "line 1: is no JSON"),
        ("c.jsonl", "[1, 2]\n", "JSON objects"),
        ("d.jsonl", '{"a": 1}\n', "make no answer"),
        (
            "e.jsonl",
            '{"stimulus": "a", "choices": ["b", "c"], "response": 5}',
            "'5' was chosen but not shown",
        ),
        ("f.jsonl", '{"query": 0, "shown": [1, 2], "chosen": [9]}', "not shown|9"),
    ],
)
def test_bad_files_are_refused_with_the_reason(tmp_path, name, text, words):
    with pytest.raises(InvalidInput, match=words):
        nearer.read_trials(write(tmp_path, name, text))


def test_what_is_written_is_read_back(tmp_path):
    near = Trials.near(
        [0, 4], [[1, 2, 3], [0, 1, 2, 3]], [[3, 1], None], wanted=2, people=["a", "b"],
        seconds=[1.0, 2.5],
    )  # fmt: skip
    ranked = Trials.near([0], [[1, 2, 3]], [[3, 1]], ranked=True)
    odd = Trials.odd_one_out([[0, 1, 2], [1, 2, 3]], [1, 3], names=("ape", "bee", "cat", "dog"))
    for trials in (near, ranked, odd):
        nearer.write_trials(tmp_path / "t.jsonl.gz", trials)
        again = nearer.read_trials(tmp_path / "t.jsonl.gz")
        assert again.kind == trials.kind
        assert again.ranked == trials.ranked
        assert again.names == trials.names
        for field in ("query", "shown", "chosen", "wanted", "people", "seconds"):
            one, other = getattr(trials, field), getattr(again, field)
            assert np.array_equal(one, other), field
    nearer.write_trials(tmp_path / "things.txt", odd)
    assert (tmp_path / "things.txt").read_text() == "0 2 1\n1 2 3\n"
    nearer.write_trials(tmp_path / "things.npy", odd)
    read = nearer.read_triplets(tmp_path / "things.npy", kind="odd-one-out")
    assert sorted(read.triplets.tolist()) == sorted(odd.triplets()[0].tolist())


def test_a_guess_is_said_with_how_to_say_otherwise(tmp_path):
    file = write(tmp_path, "t.txt", "0 1 2\n1 2 3\n")
    assert "--kind odd-one-out" in str(nearer.read_triplets(file).report)
    assert not nearer.read_triplets(file, kind="triplets").report.assumed
    assert not nearer.read_triplets(file, kind="odd-one-out").report.assumed
    np.save(tmp_path / "t.npy", np.array([[0, 1, 2]]))
    assert "--kind odd-one-out" in str(nearer.read_triplets(tmp_path / "t.npy").report)


def test_names_that_differ_only_in_case_or_blanks_are_pointed_out(tmp_path):
    file = write(tmp_path, "t.csv", "head,winner,loser\nApple,bee,cat\napple,b ee,cat\n")
    report = nearer.read_triplets(file).report
    assert set(report.alike) == {("Apple", "apple"), ("b ee", "bee")}
    assert "3 objects or 5?" in str(report)


def test_jatos_keeps_one_list_a_person_on_a_line(tmp_path):
    page = {"trial_type": "instructions", "rt": 1, "mouse_tracking_data": [{"x": 1}]}
    one = {"stimulus": "ape", "choices": ["bee", "cat"], "button_pressed": "1", "rt": "900"}
    two = one | {"stimulus": "bee", "choices": ["ape", "cat"], "button_pressed": None, "rt": None}
    lines = [json.dumps([page, one | {"subject": "p"}]), "", json.dumps([two | {"subject": "q"}])]
    read = nearer.read_triplets(write(tmp_path, "results.txt", "\n".join(lines)))
    assert read.trials.people.tolist() == ["p", "q"]
    assert read.trials.decided.tolist() == [True, False]
    assert (read.report.others, read.report.ties, read.report.unit) == ((1,), (3,), "line")
    assert read.triplets.tolist() == [[0, 2, 1]]


def test_one_stimulus_for_all_may_be_the_question(tmp_path):
    records = [
        {"stimulus": "Which is odd?", "choices": choices, "response": 2}
        for choices in (["ape", "bee", "cat"], ["bee", "cat", "dog"])
    ]
    file = write(tmp_path, "t.json", json.dumps(records))
    with pytest.raises(InvalidInput, match=r"words of the question; .* kind=.answers"):
        nearer.read_trials(file)
    odd = nearer.read_trials(file, kind="odd-one-out")
    assert odd.triplets()[0].tolist()[:2] == [[0, 1, 2], [1, 0, 2]]
    near = nearer.read_trials(file, kind="answers")
    assert near.names[near.query[0]] == "Which is odd?"


def test_a_response_that_is_an_object_or_a_place(tmp_path):
    records = [{"stimulus": 5, "choices": [1, 0], "response": 1}]
    file = write(tmp_path, "t.json", json.dumps(records))
    with pytest.raises(
        InvalidInput, match=r"may be an object or a place counted from 0; .* first=0"
    ):
        nearer.read_trials(file)
    assert nearer.read_trials(file, first=0).triplets()[0].tolist() == [[5, 0, 1]]
    by_name = [{"stimulus": 5, "choices": [7, 8], "response": 8}]
    read = nearer.read_trials(write(tmp_path, "n.json", json.dumps(by_name)))
    assert read.triplets()[0].tolist() == [[5, 8, 7]]


def psiz(kind, query, shown, chosen, ms=1500):
    said = [("content:query", query)]
    said += [(f"content:reference_{k}", x) for k, x in enumerate(shown)]
    said += [(f"behavior:rank_{k}", x) for k, x in enumerate(chosen)]
    steps = [{"kind": k, "detail": x, "time_begin": "2016"} for k, x in reversed(said)]
    return {"kind": kind, "response_time_ms": ms, "interactions": steps}


def test_psiz_sequences(tmp_path):
    def asset(number, group="PZ001"):
        return group + np.base_repr(number, 36).zfill(7)

    def screen(*rows, group="PZ001"):
        query, shown, chosen = ([asset(x, group) for x in row] for row in rows)
        return psiz("rank:3rank2", query[0], shown, chosen)

    catch = screen([40], [40, 1, 2], [40, 1])
    steps = [screen([40], [2, 1, 3], [3, 2]), {"kind": "rate:5point", "interactions": []}, catch]
    whole = {"version": "1.0", "data": [{"anonymous_id": "p", "sequence": steps}]}
    with pytest.warns(DroppedRows, match="an object is named twice"):
        read = nearer.read_triplets(write(tmp_path, "p.json", json.dumps(whole, indent=2)))
    assert read.trials.ranked
    assert read.triplets.tolist() == [[40, 2, 1], [40, 3, 2], [40, 3, 1]]
    assert read.trials.people.tolist() == ["p"]
    assert read.trials.seconds.tolist() == [1.5]
    assert (read.report.degenerate, read.report.others) == ((3,), (2,))
    mixed = [screen([4], [2, 1, 3], [3, 2]), screen([4], [2, 1, 3], [3, 2], group="PZ002")]
    named = nearer.read_trials(write(tmp_path, "m.json", json.dumps({"sequence": mixed})))
    assert named.names[0] == "PZ0010000001"


def test_records_have_names_whatever_is_said_of_a_header(tmp_path):
    record = {"query": "ape", "shown": ["bee", "cat"], "chosen": ["cat"]}
    file = write(tmp_path, "t.json", json.dumps([record]))
    assert nearer.read_trials(file, header=False).triplets()[0].tolist() == [[0, 2, 1]]


def test_ranked_beside_unranked_is_refused(tmp_path):
    steps = [psiz("rank:3rank2", "a", "bcd", "bc"), psiz("rank:3choose2", "a", "bcd", "bc")]
    with pytest.raises(InvalidInput, match="some screens are ranked and some are not"):
        nearer.read_trials(write(tmp_path, "p.json", json.dumps(steps)))


def test_psiz_hdf5_says_what_it_lacks(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "o.hdf5", "w") as file:
        file["stimulus_set"] = np.array([[4, 1, 2, 3, -1], [0, 3, 2, 1, 4]])
        file["n_select"] = [2, 1]
        file["is_ranked"] = [True, True]
    read = nearer.read_trials(tmp_path / "o.hdf5")
    assert read.triplets()[0].tolist()[:3] == [[4, 1, 2], [4, 1, 3], [4, 2, 3]]
    with h5py.File(tmp_path / "o.hdf5", "a") as file:
        file["mask_zero"] = True
    with pytest.raises(InvalidInput, match="mask_zero"):
        nearer.read_trials(tmp_path / "o.hdf5")
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["rating"] = [1.0]
    with pytest.raises(InvalidInput, match="holds rating, and no is_ranked, n_select"):
        nearer.read_trials(tmp_path / "r.h5")


def test_votes_are_one_answer_each(tmp_path):
    held = {"answers": [[5, 1, 2], [1, 2, 5]], "agreement": [[3, 0], [1, 2]]}
    read = nearer.read_triplets(write(tmp_path, "v.json", json.dumps(held)))
    assert read.triplets.tolist() == [[5, 1, 2]] * 3 + [[1, 2, 5]] + [[1, 5, 2]] * 2
    assert read.report.contradictions == 1
    held["agreement"][1] = [1, -2]
    with pytest.raises(InvalidInput, match=r"record 2: answers .* two counts of votes"):
        nearer.read_triplets(write(tmp_path, "v.json", json.dumps(held)))
    with pytest.warns(DroppedRows, match="could not be read"):
        read = nearer.read_triplets(tmp_path / "v.json", drop_bad_rows=True)
    assert read.report.bad == (2,)


@pytest.mark.parametrize("shape", ["records", "columns", "index", "wrapped", "lines"])
def test_tables_as_json(tmp_path, shape):
    rows = [("ape", "bee", "cat"), ("bee", "cat", "ape")]
    words = ("head", "winner", "loser")
    records = [dict(zip(words, row, strict=True)) for row in rows]
    columns = {w: [r[w] for r in records] for w in words}
    text = {
        "records": json.dumps(records),
        "columns": json.dumps(columns),
        "index": json.dumps({w: dict(enumerate(c)) for w, c in columns.items()}),
        "wrapped": json.dumps({"version": 2, "trials": records}, indent=1),
        "lines": "\n".join(map(json.dumps, records)),
    }[shape]
    read = nearer.read_triplets(write(tmp_path, "t.json", text))
    assert read.triplets.tolist() == [[0, 1, 2], [1, 2, 0]]


def test_read_trials_takes_tables_with_people_and_times(tmp_path):
    text = "head,winner,loser,worker_id,rt\nape,bee,cat,w,500\nbee,cat,ape,,slow\n"
    file = write(tmp_path, "t.csv", text)
    trials = nearer.read_trials(file)
    assert trials.names == ("ape", "bee", "cat")
    assert trials.people.tolist() == ["w", ""]
    assert trials.seconds[0] == 0.5
    assert np.isnan(trials.seconds[1])
    report = nearer.read_triplets(file).report
    assert (report.persons, report.nameless, report.untimed) == (1, 1, (3,))


def test_weights_are_read(tmp_path):
    file = write(tmp_path, "t.csv", "head,winner,loser,weight\n0,1,2,2\n1,2,0,1\n2,1,0,0\n")
    assert nearer.read_trials(file).weights.tolist() == [2, 1, 0]
    odd = write(tmp_path, "o.csv", "item1,item2,odd,count\n0,1,2,2\n1,2,0,0.5\n")
    assert nearer.read_trials(odd).weights.tolist() == [2, 0.5]
    assert nearer.read_triplets(odd).weights.tolist() == [2, 2, 0.5, 0.5]


def test_odd_one_out_by_place_says_what_it_assumed(tmp_path):
    head = "image1\timage2\timage3\tchoice\tsubject_id\tRT\n"
    file = write(tmp_path, "t.tsv", head + "ape\tbee\tcat\t3\ts1\t900\n")
    read = nearer.read_triplets(file)
    assert "kind='most-central'" in read.report.assumed
    assert read.trials.seconds.tolist() == [0.9]
    central = nearer.read_trials(file, kind="most-central")
    assert central.kind == "most-central"
    with pytest.raises(InvalidInput, match="first=2"):
        nearer.read_trials(file, first=2)


@pytest.mark.parametrize(
    ("header", "choices"),
    [
        ("left,center,right,choice", ["right", "center"]),
        ("left,center,right,choice", "321"),
        ("A,B,C,choice", "CBA"),
        ("option1,option2,option3,choice", ["option3", "option2"]),
        ("image_left,image_middle,image_right,response", ["Right", "Middle"]),
        ("links,mitte,rechts,Wahl", ["rechts", "mitte"]),
        ("Bild1,Bild2,Bild3,Antwort", "32"),
        ("img1,img2,img3,odd_one_out", ["cat", "bee"]),
        ("stim1,stim2,stim3,selected", "32"),
    ],
)
def test_three_on_a_screen_have_no_head(tmp_path, header, choices):
    rows = [f"ape,bee,cat,{choice}" for choice in choices]
    trials = nearer.read_trials(write(tmp_path, "t.csv", "\n".join([header, *rows])))
    assert trials.kind == "odd-one-out"
    assert trials.chosen[:2].tolist() == [[0, 0, 1], [0, 1, 0]]


def test_answers_that_all_say_nothing_leave_no_triplet(tmp_path):
    file = write(tmp_path, "t.csv", "item1,item2,item3,odd\nape,bee,bee,ape\n")
    with pytest.warns(DroppedRows, match="an object is named twice: 1 of 1 answer"):
        read = nearer.read_triplets(file)
    assert len(read) == len(read.trials.to_frame()) == 0


BAD = "head,winner,loser\nape,bee,cat\nape,bee\nape,,cat\n,bee,cat\nbee,cat,ape\n"


def test_bad_rows_are_refused_or_counted_and_listed(tmp_path):
    file = write(tmp_path, "t.csv", BAD)
    with pytest.raises(InvalidInput, match="line 3"):
        nearer.read_triplets(file)
    with pytest.warns(DroppedRows):
        read = nearer.read_triplets(file, drop_bad_rows=True)
    assert read.report.bad == (3, 4, 5)
    assert len(read) == 2
    assert "could not be read: 3 (lines 3, 4, 5)" in str(read.report)


def test_the_command_takes_what_its_messages_promise(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    rows = np.array([rng.choice(12, 3, replace=False) for _ in range(300)])
    near = nearer.PointOracle(X)(rows)
    rows = np.where(near[:, None], rows, rows[:, [0, 2, 1]]) + 1
    body = "\n".join(f"{h},{f},{n}" for h, n, f in rows.tolist())
    file = write(tmp_path, "t.csv", "ref,other,same\n" + body + "\nbroken\n")
    out = str(tmp_path / "out")
    common = ["--dim", "2", "--seed", "0", "--out", out, "--json"]
    options = ["--columns", "head=ref,near=same,far=other", "--names", "--drop-bad-rows"]
    done = CliRunner().invoke(main, ["fit", str(file), *options, *common])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["n_objects"] == 12
    assert summary["held_out_accuracy"] > 0.95
    plain = write(tmp_path, "p.csv", body + "\n")
    by_place = ["--columns", "head=0,near=2,far=1", "--no-header", "--names"]
    done = CliRunner().invoke(main, ["fit", str(plain), *by_place, *common])
    assert json.loads(done.stdout)["held_out_accuracy"] > 0.95
    wrong = CliRunner().invoke(main, ["fit", str(plain), "--columns", "head", *common])
    assert isinstance(wrong.exception, InvalidInput) or wrong.exit_code == 2


def test_fit_takes_screens_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 2))
    screens = np.array([rng.choice(15, 7, replace=False) for _ in range(200)])
    said = nearer.asking.PsychometricOracle(X, scale=0.2, choose=2, random_state=0)(screens)
    nearer.write_trials(tmp_path / "s.jsonl", Trials.from_screens(screens, said))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedding = nearer.fit(str(tmp_path / "s.jsonl"), n_components=2, random_state=0)
    assert embedding.n_comparisons == 200
    assert embedding.held_out.n_trials == 200
    assert nearer.metrics.mean_kendall_tau(X, embedding.positions) > 0.8
    assert embedding.covariances is not None


@pytest.mark.parametrize(
    "record",
    [
        {"interactions": 5},
        {"interactions": [{"kind": "content:query", "detail": "a"}]},
        {"interactions": [{"kind": "content:query", "detail": "a"}, {"kind": "behavior:rank_x"}]},
        {"answers": 5, "agreement": [1, 2]},
        {"answers": [0, 1], "agreement": [1, 2]},
        {"stimulus": "a", "choices": {"b": 1}, "response": [0]},
        {"query": "a", "shown": None, "chosen": None},
        {"query": {"a": 1}, "shown": [["b"], ["c"]], "chosen": [{}]},
    ],
)
def test_records_of_any_shape_are_refused_in_one_message(tmp_path, record):
    with pytest.raises(InvalidInput):
        nearer.read_trials(write(tmp_path, "t.json", json.dumps([record, record])))


@pytest.mark.parametrize(
    ("column", "values", "seconds", "words"),
    [
        ("rt", [0.35, 1.2, 8], [0.35, 1.2, 8], "rt is in seconds, by its median of 1.2. If"),
        ("key_resp.rt", [0.35, 1.2, 80], [0.35, 1.2, 80], "key_resp.rt is in seconds, by its"),
        ("rt", [350, 1200, 8000], [0.35, 1.2, 8], "rt is in milliseconds, by its median of 1200"),
        ("rt_ms", [30, 40, 50], [0.03, 0.04, 0.05], "rt_ms is in milliseconds"),
        ("seconds", [30, 70, 90], [30, 70, 90], "seconds is in seconds"),
    ],
)
def test_the_unit_of_times_is_recognised_and_said(tmp_path, column, values, seconds, words):
    rows = "".join(f"ape,bee,cat,{value}\n" for value in values)
    file = write(tmp_path, "t.csv", f"head,winner,loser,{column}\n{rows}")
    read = nearer.read_triplets(file)
    np.testing.assert_allclose(read.seconds, seconds)
    assert f"response times: {words}" in str(read.report)
    said = nearer.read_triplets(file, columns={"seconds": column})
    assert said.seconds.tolist() == values
    assert "median" not in said.report.times


def test_jspsych_measures_in_milliseconds_however_short(tmp_path):
    records = [{"stimulus": "ape", "choices": ["bee", "cat"], "response": 1, "rt": 40}]
    assert nearer.read_trials(write(tmp_path, "t.json", json.dumps(records))).seconds == [0.04]


def test_rows_that_are_excluded_or_taken_back_are_left_out(tmp_path):
    head = "head,winner,loser,excluded,taken_back\n"
    marks = ["0,0", "1,0", "0,1", "true,True", "no,"]
    rows = "".join(f"ape,bee,cat,{mark}\n" for mark in marks)
    read = nearer.read_triplets(write(tmp_path, "t.csv", head + rows))
    assert len(read) == 2
    assert read.report.excluded == (3, 4, 5)
    assert "left out, marked as excluded or taken back: 3 (lines 3, 4, 5)" in str(read.report)
    grid = {"query": "ape", "shown": ["bee", "cat"], "chosen": ["cat"], "taken_back": True}
    both = [grid, grid | {"taken_back": False}, grid | {"taken_back": False, "excluded": 1}]
    read = nearer.read_triplets(write(tmp_path, "t.json", json.dumps(both)))
    assert (len(read), read.report.excluded) == (1, (1, 3))
    with pytest.raises(InvalidInput, match="all 1 answers are marked as excluded or taken back"):
        nearer.read_triplets(write(tmp_path, "t.csv", head + "ape,bee,cat,1,0\n"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "trial,img_a,img_b,img_c,pick\n1,ape,bee,cat,cat\n2,bee,cat,ape,bee\n3,ape,cat,bee,cat\n",
            "auto",
        ),
        ("image_1,image_2,image_3,picked\nape,bee,cat,cat\nbee,cat,dog,bee\n", "auto"),
        ("image_1,image_2,image_3,picked\nape,bee,cat,3\nape,bee,dog,1\n", "auto"),
        ("1,ape,bee,cat,cat\n2,bee,cat,ape,bee\n3,cat,ape,bee,ape\n", "auto"),
        ("left,center,right,choice\nape,bee,cat,bee\nbee,dog,cat,cat\n", "auto"),
        ("x,y,z\nape,bee,cat\nbee,cat,ape\n", "odd-one-out"),
    ],
)
def test_a_refused_odd_one_out_file_comes_with_the_option_that_works(tmp_path, text, kind):
    file = write(tmp_path, "t.csv", text)
    with pytest.raises(InvalidInput, match="--columns item1=") as refused:
        nearer.read_trials(file, kind=kind)
    said = re.search(r"columns=(\{[^}]+\})\) or --columns (\S+?)(;|\s|$)", str(refused.value))
    columns = ast.literal_eval(said[1])
    typed = (part.split("=") for part in said[2].split(","))
    assert {part: str(column) for part, column in columns.items()} == dict(typed)
    assert nearer.read_trials(file, kind=kind, columns=columns).kind == "odd-one-out"
