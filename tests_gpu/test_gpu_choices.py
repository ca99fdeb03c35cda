"""Choices of every task on a GPU: the processor's likelihood, gradient and map."""

import numpy as np
import pytest
import torch

import nearer
from nearer.fitting.likelihood import Noise, as_answers
from nearer.fitting.solver import using
from nearer.scale import gpu

N = 15


def some(kind, k=1, m=4, count=60, seed=0, ranked=False):
    """Random trials of a task, some of them undecided."""
    rng = np.random.default_rng(seed)
    if kind == "pairs":
        rows = [rng.choice(N, 4, replace=False) for _ in range(count)]
        return nearer.Trials.pairs(rows, rng.integers(2, size=count))
    width = m + (kind == "near")
    rows = np.array([rng.choice(N, width, replace=False) for _ in range(count)])
    if kind == "near":
        chosen = [rng.permutation(row[1:])[:k] for row in rows]
        return nearer.Trials.near(rows[:, 0], rows[:, 1:], chosen, ranked=ranked)
    make = nearer.Trials.odd_one_out if kind == "odd-one-out" else nearer.Trials.most_central
    return make(rows, [None if i % 10 == 0 else row[0] for i, row in enumerate(rows)])


EVERY = {
    "1 of 2": some("near", 1, 2),
    "1 of 5": some("near", 1, 5),
    "2 of 5": some("near", 2, 5),
    "3 of 7": some("near", 3, 7),
    "rank 3 of 6": some("near", 3, 6, ranked=True),
    "odd of 3": some("odd-one-out", m=3),
    "odd of 5": some("odd-one-out", m=5),
    "central": some("most-central", m=3),
    "pairs": some("pairs"),
}
MIXED = nearer.Trials.joined([EVERY["1 of 5"], EVERY["2 of 5"], EVERY["3 of 7"]])


@pytest.mark.parametrize("noise", [Noise(), Noise(lapse=0.1), Noise(tail=1.0)])
@pytest.mark.parametrize("trials", [*EVERY.values(), MIXED], ids=[*EVERY, "mixed"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_one_pass_is_the_processors(trials, noise, scale):
    X = scale * np.random.default_rng(1).normal(size=(N, 3))
    X[3] = X[4]  # no distance, no direction
    choices = as_answers(trials, N, np.random.default_rng(2).random(len(trials)))
    value, gradient = (part / choices.total_weight for part in choices.sums(X, noise))
    tables = gpu.GpuChoices(choices)
    Z = torch.tensor(X, dtype=torch.float64, device=gpu._DEVICE)
    total, slope = tables.sums(Z, noise.lapse, noise.tail)
    assert total / tables.total == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(slope.cpu().numpy() / tables.total, gradient, rtol=1e-7, atol=1e-9)


def test_small_blocks_give_the_same(monkeypatch):
    choices, X = as_answers(MIXED, N), np.random.default_rng(1).normal(size=(N, 2))
    monkeypatch.setattr(gpu, "_CELLS", 50)
    tables = gpu.GpuChoices(choices)
    total, _ = tables.sums(torch.tensor(X, device=gpu._DEVICE), 0.0, 0.0)
    assert total == pytest.approx(choices.sums(X, Noise())[0])


@pytest.mark.parametrize("task", ["2 of 5", "odd-one-out"])
def test_the_door_gives_the_same_map(task):
    rng = np.random.default_rng(0)
    X = 3 * rng.normal(size=(N, 2))
    if task == "odd-one-out":
        rows = np.array([rng.choice(N, 3, replace=False) for _ in range(500)])
        pairs = [
            np.linalg.norm(X[rows[:, i]] - X[rows[:, j]], axis=1)
            for i, j in ((1, 2), (0, 2), (0, 1))
        ]
        trials = nearer.Trials.odd_one_out(rows, rows[np.arange(500), np.argmin(pairs, axis=0)])
    else:
        rows = np.array([rng.choice(N, 6, replace=False) for _ in range(250)])
        far = np.linalg.norm(X[rows[:, :1]] - X[rows[:, 1:]], axis=2)
        nearest = np.argsort(far, axis=1)[:, :2]
        trials = nearer.Trials.near(
            rows[:, 0], rows[:, 1:], np.take_along_axis(rows[:, 1:], nearest, 1)
        )
    here = nearer.fit(trials, n_components=2, device="cpu", random_state=0)
    there = nearer.fit(trials, n_components=2, device="cuda", random_state=0)
    assert there.details["loss"] == pytest.approx(here.details["loss"], rel=0.01, abs=1e-4)
    assert there.held_out.accuracy == pytest.approx(here.held_out.accuracy, abs=0.01)
    assert nearer.metrics.procrustes(here.positions, there.positions).disparity < 0.02


def test_choices_go_to_the_gpu_that_is_wanted(monkeypatch):
    fitted = []
    fit = gpu.GpuChoices.fit

    def watched(self, *args, **how):
        fitted.append(self)
        return fit(self, *args, **how)

    monkeypatch.setattr(gpu.GpuChoices, "fit", watched)
    choices, start = as_answers(MIXED, N), np.random.default_rng(0).normal(size=(N, 2))
    with using("auto"):
        choices.maximise(Noise(), start, 5, 1e-6)
    assert not fitted  # too few to gain
    with using("cuda"):
        choices.maximise(Noise(), start, 5, 1e-6)
    assert len(fitted) == 1
