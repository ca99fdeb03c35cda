from functools import cache

import numpy as np
import pytest

from nearer.datasets import HUMAN, load_human
from nearer.datasets.loaders import entry, find, locate
from nearer.triplets import read_table

# name: answers, objects, triplets, distinct questions
KNOWN = {
    "zappos85": (283_770, 85, 283_770, 283_770),
    "alieneggs30": (20_086, 30, 20_086, 8_105),
    "alieneggs300": (17_611, 300, 17_611, 17_572),
    "musicians": (9_107, 400, 9_090, 9_090),
    "cars": (7_097, 60, 14_194, None),
    "things": (127_304, 1_854, 254_608, None),
}


def load(name):
    if any(locate(file) is None for file in entry(name).files):
        pytest.skip(f"{name}: no file in the folder of NEARER_DATA")
    return _loaded(name)


@cache
def _loaded(name):
    return load_human(name)


@pytest.mark.parametrize("name", HUMAN)
def test_counts(name):
    data = load(name)
    answers, objects, triplets, questions = KNOWN[name]
    assert data.report.rows == answers
    assert data.n_objects == objects == entry(name).objects == len(data.labels)
    assert data.triplets.shape == (triplets, 3)
    assert np.array_equal(np.unique(data.triplets), np.arange(objects))
    assert data.report.never_compared == ()
    assert len(data.report.groups) == 1
    if questions is not None:
        head, near, far = data.triplets.T
        asked = np.stack([head, np.minimum(near, far), np.maximum(near, far)], axis=1)
        assert len(np.unique(asked, axis=0)) == questions


def load_classes(name):
    table = read_table(find(entry(name))[1])
    return dict(zip(table.iloc[:, 0], table.iloc[:, 1], strict=True))


def test_repeated_questions_show_the_noise():
    assert load("alieneggs30").report.disagreement == pytest.approx(0.173, abs=5e-4)
    assert load("zappos85").report.disagreement is None


def test_alieneggs300_follow_the_true_order():
    head, near, far = load("alieneggs300").triplets.T
    agree = np.abs(head - near) < np.abs(head - far)
    assert agree.mean() == pytest.approx(0.862, abs=5e-3)


def test_participants():
    for name, people in (("alieneggs30", 416), ("alieneggs300", 231), ("things", 264)):
        answers = load(name)
        assert len(np.unique(answers.people)) == people


def test_musicians_leave_17_rows_out():
    data = load("musicians")
    assert len(data.report.degenerate) == 17
    classes = load_classes("musicians")
    tags = [set(classes[label].split(";")) - {""} for label in data.labels]

    def alike(a, b):
        return len(tags[a] & tags[b]) / max(1, len(tags[a] | tags[b]))

    side = np.array([alike(h, a) - alike(h, b) for h, a, b in data.triplets.tolist()])
    assert np.mean(side > 0) == pytest.approx(0.499, abs=2e-3)
    assert np.mean(side < 0) == pytest.approx(0.255, abs=2e-3)


def test_cars_have_classes():
    data = load("cars")
    names, counts = np.unique(list(load_classes("cars").values()), return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "ordinary": 24,
        "offroad_suv": 17,
        "sports": 15,
        "outlier": 4,
    }
    assert data.labels[0] == "1"


def test_things_have_names():
    data = load("things")
    assert data.labels[:2] == ("aardvark", "abacus")
    assert data.labels[data.triplets[0, 2]] == data.labels[1]  # the first odd one is item 1
