"""Fits on a GPU agree with those on the processor."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import nearer
from nearer.errors import InvalidInput
from nearer.fitting import solver as devices
from nearer.fitting.solver import LOSSES, Loss, Passes, fit_positions, prepare, using
from nearer.questions import answered, random_questions
from nearer.scale import gpu
from nearer.scale.gpu import GpuPasses


def triplets(n=25, d=2, m=1500, seed=0, flip=0.0):
    rng = np.random.default_rng(seed)
    oracle = nearer.PointOracle(rng.normal(size=(n, d)))
    if flip:
        oracle = nearer.NoisyOracle(oracle, flip, random_state=seed)
    questions = random_questions(n, m, rng)
    return answered(questions, oracle(questions))


SHAPES = [
    (name, shape) for name in LOSSES for shape in ((None, 0.1) if name == "logistic" else (None,))
]


@pytest.mark.parametrize(("name", "shape"), SHAPES)
@pytest.mark.parametrize("d", [1, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_pass_is_the_processors(name, shape, d, weighted):
    rng = np.random.default_rng(d)
    loss, rows = Loss(name, shape), triplets(m=700).astype(np.int32)
    X = rng.normal(size=(25, d))
    X[3] = X[4]  # no distance, no direction
    weights = rng.random(len(rows)) if weighted else np.ones(len(rows))
    value, gradient = loss.value_and_gradient(X, rows, weights)
    passes = GpuPasses(rows, weights if weighted else None, 25)
    total, slope = passes.sums(loss, X)
    assert total / passes.total == pytest.approx(value, rel=1e-5)
    slope = slope.cpu().numpy() / passes.total
    np.testing.assert_allclose(slope, gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("name", "shape"), SHAPES)
def test_a_fit_from_the_same_start_is_as_good(name, shape):
    """From a start near the truth, where there is one optimum to end in."""
    X = np.random.default_rng(0).normal(size=(25, 2))
    questions = random_questions(25, 2000, np.random.default_rng(1))
    rows = answered(questions, nearer.PointOracle(X)(questions))
    fits = []
    for device in ("cpu", "cuda"):
        with using(device):
            passes = prepare(rows[:1500], 25)
            assert isinstance(passes, GpuPasses if device == "cuda" else Passes)
            fits.append(
                fit_positions(passes, start=2 * X, loss=Loss(name, shape), ridge=1e-3, tol=1e-9)
            )
    here, there = fits
    assert there.loss == pytest.approx(here.loss, rel=0.01, abs=1e-6)
    wrong = [1 - nearer.metrics.triplet_accuracy(rows[1500:], f.positions) for f in fits]
    assert wrong[1] <= wrong[0] + 0.002


def test_a_callback_can_end_a_fit():
    def callback(step, loss, positions):
        if step == 3:
            raise StopIteration

    with using("cuda"):
        start = np.random.default_rng(0).normal(size=(25, 2))
        fit = fit_positions(triplets(), 25, start=start, callback=callback)
    assert (fit.n_iter, fit.converged) == (3, True)


def test_every_start_works():
    rows = triplets(m=1000)
    for init in ("above", "random", np.random.default_rng(0).normal(size=(25, 2))):
        model = nearer.SOE(2, init=init, device="cuda", max_iter=200, tol=1e-5, random_state=0)
        assert model.fit(rows).score(rows) > 0.85


def test_a_tensor_is_fitted_where_it_lies():
    rows, start = triplets(m=800).astype(np.int32), np.random.default_rng(0).normal(size=(25, 2))
    here, there = (
        fit_positions(GpuPasses(answers, None, 25), start=start, tol=1e-4).positions
        for answers in (rows, torch.tensor(rows, device=gpu._DEVICE))
    )
    np.testing.assert_allclose(here, there, rtol=1e-2, atol=1e-2)


def test_information_is_the_processors():
    rows = triplets(m=600).astype(np.int32)
    X = np.random.default_rng(0).normal(size=(25, 2))
    weights = np.random.default_rng(1).random(600)
    for lapse, tail in ((0.0, 0.0), (0.1, 0.0), (0.0, 1.0)):
        here = Passes(rows, weights, 25).information(X, lapse, tail)
        there = GpuPasses(rows, weights, 25).information(X, lapse, tail)
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-6)


def test_the_door_gives_the_same_map():
    rows = triplets(m=1500, flip=0.1)
    here = nearer.fit(rows, n_components=2, method="noisy", device="cpu", random_state=0)
    there = nearer.fit(rows, n_components=2, method="noisy", device="cuda", random_state=0)
    assert there.held_out.accuracy == pytest.approx(here.held_out.accuracy, abs=0.01)
    assert nearer.metrics.procrustes(here.positions, there.positions).disparity < 0.02


def test_it_runs_without_what_a_fit_does_not_need():
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in missing:
            raise ModuleNotFoundError(name)
missing = {'moocore', 'rich', 'pyarrow', 'sklearn'}
sys.meta_path.insert(0, Missing())
import conftest
import numpy as np, nearer
rng = np.random.default_rng(0)
rows = np.array([rng.choice(12, 3, replace=False) for _ in range(300)])
for method in ('soe', 'noisy'):
    options = dict(method=method, device='cuda', bootstrap=0, random_state=0)
    embedding = nearer.fit(rows, n_components=2, **options)
    assert embedding.positions.shape == (12, 2)
print('fitted')
"""
    command, here = [sys.executable, "-c", code], Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.stdout == "fitted\n", done.stderr


def test_too_little_memory_is_said_or_avoided(monkeypatch):
    monkeypatch.setattr(gpu, "free_memory", lambda: 1000.0)
    with pytest.raises(InvalidInput, match=r"need about .* GiB and the GPU has 0.0 GiB free"):
        nearer.fit(triplets(), n_components=2, device="cuda")
    with using("auto"):
        assert not devices.wants_gpu(10**9, 10**6)


def test_no_device_is_said(monkeypatch):
    monkeypatch.setattr(gpu, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match="PyTorch sees no CUDA device here"):
        nearer.fit(triplets(), n_components=2, device="cuda")
    with using("auto"):
        assert not devices.wants_gpu(10**9, 10**3)


def test_very_many_answers_are_fitted_on_the_device(monkeypatch):
    from nearer import _fit

    rows = triplets(m=3000)
    monkeypatch.setattr(_fit, "MANY", 1000)
    options = {"n_components": 2, "method": "soe", "max_iter": 100, "random_state": 0}
    here = nearer.fit(rows, device="cpu", **options)
    there = nearer.fit(iter(np.array_split(rows, 7)), device="cuda", **options)
    assert "in blocks" in there.history[0].note
    assert there.error_rate == pytest.approx(here.error_rate, abs=0.01)
    # of 95 answers: two or three may fall on the other side of a tie
    assert there.held_out.accuracy == pytest.approx(here.held_out.accuracy, abs=0.035)
    assert nearer.metrics.procrustes(here.positions, there.positions).disparity < 0.02
