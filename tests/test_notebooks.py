"""What a notebook shows: short lines, tables, figures, and progress below the cell."""

import builtins
import sys
from types import ModuleType

import numpy as np
import pytest
from embeddingkit import fitted

import nearer


@pytest.fixture(scope="module")
def embedding():
    return fitted(people=["ann", "<bob>", "cy"])[1]


def shown(result):
    """The page of a result: a line that is its repr, and a table with few rows."""
    line, page = repr(result), result._repr_html_()
    assert "\n" not in line
    assert len(line) < 200
    assert page.count("<tr") <= 11
    assert "<bob>" not in page
    return line, page


def test_trials_are_a_table():
    trials = nearer.Trials.pairs(
        [[0, 1, 2, 3], [2, 3, 0, 1]] * 500, [0, 1] * 500, people=["x"] * 1000
    )
    line, _ = shown(trials)
    assert line == "Trials(1,000 trials, 4 objects, task pairs of 2, 1 person)"
    frame = trials[:2].to_frame()
    assert frame["chosen"].tolist() == [[0, 1], [0, 1]]
    named = nearer.Trials.near([0], [[1, 2]], [[]], names=("a", "b", "c")).to_frame()
    assert named.values.tolist() == [["a", ["b", "c"], []]]


def test_comparisons_and_placed_objects_are_tables(embedding):
    both = nearer.compare(embedding, embedding, n_permutations=9, n_draws=50, random_state=0)
    line, page = shown(both)
    assert "20 objects, correlation=1" in line
    assert "displacement" in page
    X = np.random.default_rng(0).normal(size=(22, 2))
    how = {"budget": 150, "random_state": 0, "progress": False}
    embedded = nearer.embed(nearer.PointOracle(X[:20]), 20, **how)
    line, page = shown(embedded.place(nearer.PointOracle(X), [20, 21]))
    assert line.startswith("Placed(2 new objects, ")
    assert page.count("<tr") == 3


def test_a_cell_shows_progress(monkeypatch):
    class ZMQInteractiveShell:
        """What Rich takes for a notebook."""

    class Line:
        texts = []  # noqa: RUF012 - one line a test

        def update(self, data, raw):
            self.texts.append(data["text/plain"])

    module = ModuleType("IPython.display")
    module.display = lambda *_, **__: Line()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    X = np.random.default_rng(0).normal(size=(12, 2))
    embedding = nearer.embed(nearer.PointOracle(X), 12, random_state=0)
    assert f"{embedding.n_comparisons} comparisons in {embedding.n_rounds} rounds" in Line.texts[-2]
    assert Line.texts[-1] == ""
