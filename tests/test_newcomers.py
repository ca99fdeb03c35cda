"""Objects placed one by one among others, from answers that may be wrong."""

import numpy as np
import pytest
from scipy.special import ndtr

import nearer
from nearer._kernels import compiling
from nearer.algorithms.budgets import noisy_budget
from nearer.algorithms.newcomers import Newcomers
from nearer.fitting.posterior import Curve, Noise, Posterior

OLD = np.random.default_rng(3).normal(scale=10, size=(80, 2))
LAPSE = 0.1


def posterior(sd=0.3, *, tail=0.0, sharpness=1.0):
    covariances = np.tile(sd**2 * np.eye(OLD.shape[1]), (len(OLD), 1, 1))
    return Posterior(OLD, covariances, Noise(10.0, LAPSE, tail), Curve(sharpness, LAPSE))


def chances(fit, points, rows, new):
    """The model, written out: how likely "yes" is, for each point and question."""
    tail, beta = fit.noise.tail, fit.curve.sharpness
    count = (lambda r: (tail + 1) / 2 * np.log1p(r**2 / tail)) if tail else (lambda r: r)
    out = np.empty((len(points), len(rows)))
    for k, (h, a, b) in enumerate(rows):
        at = [np.broadcast_to(points if i == new else OLD[i], points.shape) for i in (h, a, b)]
        near, far = (np.linalg.norm(at[0] - at[c], axis=1) for c in (1, 2))
        step, noise = 1e-4, 0.0
        for i, who in enumerate((h, a, b)):  # by finite differences
            for axis in range(OLD.shape[1]) if who != new else ():
                moved = [part.copy() for part in at]
                moved[i][:, axis] += step
                shifted = count(np.linalg.norm(moved[0] - moved[2], axis=1))
                shifted = shifted - count(np.linalg.norm(moved[0] - moved[1], axis=1))
                slope = (shifted - (count(far) - count(near))) / step
                noise = noise + slope**2 * fit.covariances[who, 0, 0]
        t = beta * (count(far) - count(near))
        out[:, k] = LAPSE + (1 - 2 * LAPSE) * ndtr(t / np.sqrt(8 / np.pi + beta**2 * noise))
    return out


def ask(newcomers, x, rng, n_rounds, fit):
    """Answer as the model says, from a true place."""
    asked, said, count = [], [], 12
    questions = newcomers.first_questions(count)
    for _ in range(n_rounds):
        p = chances(fit, x[None], questions, len(OLD))[0]
        answers = rng.random(len(p)) < p
        newcomers.learn(count, answers)
        asked.append(questions)
        said.append(answers)
        count = 4
        questions = newcomers.next_questions(count)
    return np.concatenate(asked), np.concatenate(said)


@pytest.mark.parametrize(("tail", "sharpness"), [(0.0, 1.0), (0.0, 0.5), (2.0, 4.0)])
def test_the_belief_is_close_to_the_posterior_on_a_grid(tail, sharpness):
    fit = posterior(tail=tail, sharpness=sharpness)
    rng, off, sizes = np.random.default_rng(0), [], []
    for _ in range(9):
        x = rng.normal(scale=8, size=2)
        newcomers = Newcomers(fit, np.array([len(OLD)]), rng)
        asked, said = ask(newcomers, x, rng, 14, fit)
        mean, covariance = newcomers.positions[0], newcomers.covariances[0]
        sd = np.sqrt(np.trace(covariance) / 2)
        axis = np.linspace(-6, 6, 41) * sd
        grid = mean + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        p = chances(fit, grid, asked, len(OLD))
        logs = np.log(np.where(said, p, 1 - p)).sum(axis=1)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        exact = weights @ grid
        spread = np.sqrt(weights @ ((grid - exact) ** 2).sum(axis=1) / 2)
        off.append(np.linalg.norm(exact - mean) / spread)
        sizes.append(sd / spread)
    assert np.median(off) < 0.8
    assert 0.6 < np.median(sizes) < 1.5


def test_what_is_chosen_teaches_more_than_what_is_drawn():
    fit, rng = posterior(), np.random.default_rng(1)
    left = {}
    for way in ("chosen", "drawn"):
        newcomers = Newcomers(fit, np.arange(80, 180), rng)
        places = {80 + k: rng.normal(scale=8, size=2) for k in range(100)}
        for round_ in range(12):
            count = 12 if round_ == 0 else 4
            chosen = way == "chosen" and round_
            pick = newcomers.next_questions if chosen else newcomers.first_questions
            questions = pick(count)
            X = {**dict(enumerate(OLD)), **places}
            at = np.array([[X[i] for i in row] for row in questions.tolist()])
            near, far = (np.linalg.norm(at[:, 0] - at[:, c], axis=1) for c in (1, 2))
            answers = (near < far) ^ (rng.random(len(near)) < LAPSE)
            newcomers.learn(count, answers)
        truth = np.array(list(places.values()))
        left[way] = np.median(np.linalg.norm(newcomers.positions - truth, axis=1))
    assert left["chosen"] < 0.5 * left["drawn"]


def test_no_question_is_put_twice_and_each_holds_one_newcomer():
    newcomers, seen = Newcomers(posterior(), np.arange(90, 95), np.random.default_rng(2)), []
    count, questions = 12, None
    for _ in range(30):
        questions = newcomers.next_questions(count)
        seen.append(questions)
        newcomers.learn(count, np.ones(len(questions), dtype=np.bool_))
    rows = np.concatenate(seen)
    assert ((rows >= 80).sum(axis=1) == 1).all()
    keys = nearer.questions.pack(rows)[0]
    assert len(np.unique(keys)) == len(keys)


def test_any_number_of_threads_gives_the_same(monkeypatch):
    X = np.random.default_rng(0).normal(size=(700, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=0)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(compiling, "_CORES", cores)
        compiling._threads.cache_clear()
        old = posterior()
        newcomers = Newcomers(old, np.arange(80, 700), np.random.default_rng(0))
        for count, ask in ((12, newcomers.first_questions), (4, newcomers.next_questions)):
            newcomers.learn(count, people(ask(count)))
        found.append(newcomers.positions)
    compiling._threads.cache_clear()
    assert np.array_equal(*found)


@pytest.mark.slow
def test_many_doubtful_answers_are_embedded_by_a_core_and_the_others():
    X = np.random.default_rng(0).normal(size=(700, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=1)
    found = nearer.embed(people, 700, random_state=0, progress=False)
    assert [phase.name for phase in found.history] == ["check", "informative", "place"]
    assert found.dimension_low <= 2 <= found.dimension_high
    assert found.n_comparisons == len(found.triplets) <= noisy_budget(700, 0.12)
    assert nearer.metrics.mean_kendall_tau(X, found.positions) > 0.97
    assert found.details["expected_tau"] > 0.97
    assert 0.08 < found.error_rate < 0.2  # those that were chosen are harder
    assert found.covariances.shape == (700, found.dimension, found.dimension)
    assert len(found.details["never_asked"]) == 0


def test_a_small_budget_is_kept_by_core_and_others():
    X = np.random.default_rng(0).normal(size=(700, 2))
    people = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=1)
    found = nearer.embed(people, 700, noise=0.1, budget=4001, random_state=0, progress=False)
    assert found.n_comparisons == len(found.triplets) == 4001
    assert found.positions.shape[0] == 700
    assert np.isfinite(found.positions).all()
