"""Trials written in everybody's forms are read back as they were."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearer
from nearer.errors import InvalidInput
from nearer.trials import Trials
from nearer.triplets.table import EMPTY

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
    # "-0" is a number to a reader, and numbers among names are refused
    lambda s: (
        s == s.strip() and s not in EMPTY and not s.lstrip("+-")[:1].isdecimal() and "," not in s
    )
)


@st.composite
def screens(draw, choose=None, shown=None, people=True):
    """Trials with a query, some undecided, and a last one with all objects, so that all occur."""
    n = draw(st.integers(4, 7))
    rows, chosen, query = [], [], []
    ranked = draw(st.booleans()) if choose is None else False
    for _ in range(draw(st.integers(1, 6))):
        head, *rest = draw(st.permutations(range(n)))
        m = shown or draw(st.integers(2, n - 1))
        k = choose or draw(st.integers(1, m - 1))
        query.append(head)
        rows.append(rest[:m])
        chosen.append(rest[:k] if ranked else sorted(rest[:k]))
    if shown is None:
        query.append(0)
        rows.append(list(range(1, n)))
        chosen.append([n - 1])
    t = len(rows)
    also = {}
    if draw(st.booleans()):
        also["names"] = tuple(draw(st.lists(NAMES, min_size=n, max_size=n, unique=True)))
    if people and draw(st.booleans()):
        also["people"] = draw(st.lists(st.sampled_from(["Ann", "Bea"]), min_size=t, max_size=t))
    if people and draw(st.booleans()):
        also["seconds"] = draw(st.lists(st.floats(0, 1e6), min_size=t, max_size=t))
    return Trials.near(query, rows, chosen, ranked=ranked, **also)


def said(trials):
    """All that trials say, in words that do not depend on how objects are numbered."""
    name = (lambda i: i) if trials.names is None else (lambda i: trials.names[i])
    for t in range(len(trials)):
        shown = trials.shown[t, : trials.n_shown[t]].tolist()
        place = trials.chosen[t, : trials.n_shown[t]].tolist()
        order = [x for _, x in sorted((p, name(x)) for p, x in zip(place, shown, strict=True) if p)]
        query = None if trials.query[t] < 0 else name(trials.query[t])
        yield query, sorted(name(x) for x in shown), order if trials.ranked else sorted(order)


def same(one, other):
    assert one.kind == other.kind
    assert list(said(one)) == list(said(other))
    assert (one.people is None) == (other.people is None)
    if one.people is not None:
        assert one.people.astype(str).tolist() == other.people.astype(str).tolist()
    if one.seconds is None:
        assert other.seconds is None or np.isnan(other.seconds).all()
    else:
        np.testing.assert_allclose(other.seconds, one.seconds)


def back(folder, trials, name, form, **how):
    file = folder.getbasetemp() / name
    nearer.write_trials(file, trials, form=form)
    return nearer.read_trials(file, **how)


@settings(max_examples=60, deadline=None)
@given(screens(), st.sampled_from([("s.jsonl", "screens"), ("s.ndjson.gz", "auto")]))
def test_screens(tmp_path_factory, trials, how):
    same(trials, back(tmp_path_factory, trials, *how))


@settings(max_examples=60, deadline=None)
@given(screens(), st.sampled_from(["p.json", "p.json.xz"]))
def test_psiz_json(tmp_path_factory, trials, name):
    again = back(tmp_path_factory, trials, name, "psiz")
    same(trials, again)
    assert again.names == trials.names


@settings(max_examples=60, deadline=None)
@given(screens(choose=1), st.sampled_from(["j.json", "j.jsonl", "j.csv", "j.csv.gz"]))
def test_jspsych(tmp_path_factory, trials, name):
    # choices that are numbers may be places or objects, so the caller has to say
    same(trials, back(tmp_path_factory, trials, name, "jspsych", first=0, kind="answers"))


def test_undecided_answers_are_written_where_the_form_has_room(tmp_path):
    trials = Trials.near([0, 1], [[1, 2, 3], [0, 2, 3]], [[3], None])
    for name, form in (("s.jsonl", "screens"), ("p.json", "psiz"), ("j.json", "jspsych")):
        nearer.write_trials(tmp_path / name, trials, form=form)
        read = nearer.read_triplets(tmp_path / name, first=0)
        assert read.trials.decided.tolist() == [True, False], form
        assert len(read.report.ties) == 1


@pytest.mark.parametrize(
    ("name", "form", "words"),
    [
        ("t.json", "auto", "cannot write .json with form=.auto.; use .jsonl"),
        ("t.csv", "psiz", "cannot write .csv with form=.psiz.; .* psiz: .json; things"),
        ("t.json", "jspsych", "takes choices of one"),
        ("t.txt", "things", "takes odd one out of three"),
        ("t.txt", "salmon", "must be one of"),
    ],
)
def test_forms_refuse_what_they_cannot_say(tmp_path, name, form, words):
    trials = Trials.near([0], [[1, 2, 3]], [[1, 2]])
    with pytest.raises(InvalidInput, match=words):
        nearer.write_trials(tmp_path / name, trials, form=form)
    assert not list(tmp_path.iterdir())


def test_psiz_is_recognised_by_what_it_calls_a_step(tmp_path):
    nearer.write_trials(tmp_path / "p.json", Trials.near([0], [[1, 2, 3]], [[2, 1]]), form="psiz")
    (sequence,) = json.loads((tmp_path / "p.json").read_text())["data"]
    assert sequence["sequence"][0]["kind"] == "rank:3choose2"
    assert sequence["sequence"][0]["interactions"][0] == {
        "kind": "content:query",
        "detail": "PZ0000000000",
    }


def test_weights_are_written_or_refused(tmp_path):
    trials = Trials.near([0, 1], [[1, 2], [0, 2]], [[1], [2]], weights=[2, 0.5])
    nearer.write_trials(tmp_path / "t.jsonl", trials)
    assert nearer.read_trials(tmp_path / "t.jsonl").weights.tolist() == [2, 0.5]
    with pytest.raises(InvalidInput, match=r"only the form .screens."):
        nearer.write_trials(tmp_path / "t.json", trials, form="jspsych")


def test_the_odd_one_is_the_last_of_things(tmp_path):
    trials = nearer.Trials.odd_one_out([[0, 1, 2], [3, 4, 5], [2, 4, 6]], [1, 5, 2])
    nearer.write_trials(tmp_path / "t.txt", trials, form="things")
    assert (tmp_path / "t.txt").read_text().split("\n")[:3] == ["0 2 1", "3 4 5", "4 6 2"]
