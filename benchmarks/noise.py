"""Answers that are sometimes wrong: people, calibration, flips, ranking, dimension.

People's answers are replayed from the recorded sets, a quarter of the questions held out; where an
answer became two triplets, or a question was asked about the same three objects, all of that is
held out together. The others are simulated. Curves go to out/bench/noise.png.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from benchmarks._calibration import reliability_diagram
from benchmarks.soe import cblearn_environment
from nearer.algorithms.candidates import Candidates
from nearer.algorithms.informative import draw_round
from nearer.fitting.belief import Belief
from nearer.questions import answered, pack, random_questions
from nearer.reproduce.material import draw as draw_points

SEEDS = (101, 102, 103, 104, 105)
HUMAN = {  # name, dimension: sizes
    ("zappos85", 3): (500, 1000, 2000, 3000, 4000, 5000, 6000),
    ("zappos85", 5): (500, 1000, 2000, 3000, 4000, 5000, 6000),
    ("alieneggs30", 2): (500, 1000, 2000, 4000),
    ("alieneggs300", 2): (500, 1000, 2400, 6000),
    ("cars", 2): (500, 1000, 2000, 4000),
    ("musicians", 3): (500, 1000, 2400, 4800),
}
PARTS = 4
THINGS = 60_000  # answers of the largest set that are fitted
THEIRS = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from cblearn.embedding import SOE, estimate_dimensionality_cv
triplets, start = np.load(sys.argv[1]), time.process_time()
found = estimate_dimensionality_cv(SOE(1), triplets, n_jobs=1, random_state=0)
print(found.estimated_dimension, time.process_time() - start)
"""


def main() -> None:
    curves = human()
    draw(curves, Path("out", "bench"))
    calibration()
    prior()
    flips()
    ranking()
    bases()
    dimension()


def human() -> dict[str, Any]:
    print(f"\npeople: accuracy on held-out answers, median of {len(SEEDS)} splits")
    curves = {}
    for (name, d), sizes in HUMAN.items():
        data = people(name)
        if data is None:
            continue
        print(f"{name + ', d = ' + str(d):>20}:", *(f"{m:>6,}" for m in sizes))
        curves[f"{name}, d = {d}"] = sizes, {}
        for way in ("random", "chosen"):
            runs = [replay(data, d, sizes, way, seed) for seed in SEEDS]
            accuracy = np.median(runs, axis=0)
            curves[f"{name}, d = {d}"][1][way] = accuracy
            print(f"{way:>20}:", *(f"{a:6.3f}" for a in accuracy), flush=True)
    return curves


def people(name: str) -> Any:
    try:
        return nearer.datasets.load_human(name)
    except nearer.errors.MissingData as missing:
        print(f"{name}: {missing}")
        return None


def replay(data: Any, d: int, sizes: tuple[int, ...], way: str, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    n, rows = data.n_objects, majority(data.triplets)
    out = parts(rows, rng) == 0
    test, train = rows[out], rng.permutation(rows[~out])
    oracle = nearer.RecordedOracle(train)
    belief, candidates = Belief(n, d, rng), Candidates(n, oracle.knows)
    triplets, accuracy = train[:0], []
    for size in sizes:
        while len(triplets) < min(size, len(train)):
            count = min(3 * n, size - len(triplets))
            if way == "random":  # in the same order as the first ones of the other way
                questions = candidates.draw(count, rng)
                questions = questions[rng.permutation(len(questions))]
            else:
                questions, _ = draw_round(belief, candidates, count, rng)
            candidates.exclude(questions)
            if not len(questions):
                break
            triplets = np.concatenate([triplets, answered(questions, oracle(questions))])
            belief.learn(triplets)
        accuracy.append(float(np.mean(belief.fit.probability(test) > 0.5)))
    return accuracy


def parts(rows: Any, rng: np.random.Generator) -> Any:
    """A part for each answer, the same for all about the same three objects."""
    _, which = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
    return (rng.permutation(which.max() + 1) % PARTS)[which]


def calibration() -> None:
    """Each answer is predicted once, by a fit to the three quarters it is not in."""
    print(
        "\ncalibration: every answer held out once; ten bins of equally many, and of equal width;"
    )
    print("even perfect probabilities show an error in so many answers: the last column")
    print("set          fit to       answers  accuracy  error  by width  perfect")
    dimensions = dict(reversed(HUMAN)) | {"things": 5}
    for name, d in dimensions.items():
        data = people(name)
        if data is None:
            continue
        n = data.n_objects
        _calibrated(name, "all", data.triplets, partial(_fitted, n=n, d=d))
        if (name, d) in HUMAN:
            budget = HUMAN[name, d][-1]
            rows = majority(data.triplets)
            _calibrated(name, f"{budget:,} chosen", rows, partial(_chosen, n=n, d=d, budget=budget))


def _fitted(rows: Any, seed: int, n: int, d: int) -> Any:
    some = np.random.default_rng(seed).permutation(rows)[:THINGS]
    model = nearer.OrdinalEmbedding(d, n_objects=n, random_state=seed)
    return model.fit(some).fit_


def _chosen(rows: Any, seed: int, n: int, d: int, budget: int) -> Any:
    oracle = nearer.RecordedOracle(rows)
    asking = nearer.informative(
        n, budget=budget, n_components=d, askable=oracle.knows, random_state=seed
    )
    return nearer.run(asking, oracle).details["posterior"]


def _calibrated(name: str, what: str, rows: Any, fit: Callable[[Any, int], Any]) -> None:
    rng = np.random.default_rng(SEEDS[0])
    part = parts(rows, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # people contradict each other
        p = np.concatenate(
            [fit(rows[part != k], k).probability(rows[part == k]) for k in range(PARTS)]
        )
    said = np.ones(len(p), dtype=bool)
    lucky = [reliability_diagram(p, rng.random(len(p)) < p, equal="mass").error for _ in range(20)]
    print(
        f"{name:12} {what:12} {len(p):7,}  {np.mean(p > 0.5):8.3f}  "
        f"{reliability_diagram(p, said, equal='mass').error:.3f}  "
        f"{reliability_diagram(p, said).error:8.3f}  {np.mean(lucky):7.3f}",
        flush=True,
    )


def majority(triplets: Any) -> Any:
    """One answer a question, the more frequent one; ties are left out."""
    keys, mirrored = pack(triplets)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    votes = np.bincount(which, np.where(mirrored == mirrored[first][which], 1, -1))
    rows = triplets[first].copy()
    rows[votes < 0, 1:] = rows[votes < 0, :0:-1]
    return rows[votes != 0]


def draw(curves: dict[str, Any], folder: Path) -> None:
    if not curves:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(curves), 3.2), layout="constrained")
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    for ax, (name, (sizes, ways)) in zip(axes, curves.items(), strict=True):
        for way, accuracy in ways.items():
            ax.plot(sizes, accuracy, marker="o", label=f"{way} questions")
        ax.set(title=name, xlabel="answers", ylabel="held-out accuracy")
        ax.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "noise.png", dpi=130)
    print(f"curves in {folder / 'noise.png'}")


def prior() -> None:
    """Where held-out answers to random questions are most likely: prior and sharpness."""
    from nearer.fitting.heldout import hold_out
    from nearer.fitting.posterior import Noise, as_evidence

    print("\nthe prior under which held-out answers are most likely, and the sharpness there")
    X = nearer.datasets.make_mixture(100, 3, random_state=0)
    for flip in (0.05, 0.2):
        oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=0)
        for m in (1500, 6000):
            questions = random_questions(100, m, np.random.default_rng(0))
            answers = as_evidence(answered(questions, oracle(questions)), 100)
            tried = [
                hold_out(answers, 3, Noise(s, flip), rng=np.random.default_rng(1))
                for s in 2.0 ** np.arange(-1, 6)
            ]
            best = max(tried, key=lambda held: held.score)
            aim = 1 + 3.2 / np.sqrt(m / 300)
            print(
                f"flips {flip:.0%}, {m:,} answers: prior {best.noise.prior:4.1f}, "
                f"sharpness {best.noise.sharpness:.2f}, aim {aim:.2f}"
            )


def flips() -> None:
    print("\n3dgmm, 500 objects, answers flipped; dimension chosen from the answers")
    print("  answers  flips  dimension      τ    kNN  estimated  CPU seconds")
    X = nearer.datasets.make_mixture(500, 3, random_state=SEEDS[0])
    for budget in (27_000, 80_000):
        for flip in (0.05, 0.1, 0.2):
            oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=1)
            start = time.process_time()
            found = nearer.run(nearer.informative(500, budget=budget, random_state=0), oracle)
            seconds = time.process_time() - start
            tau = nearer.metrics.mean_kendall_tau(X, found.positions)
            knn = nearer.metrics.knn_precision(X, found.positions)
            print(
                f"{budget:9,}  {flip:5.0%}  {found.dimension:9}  {tau:.3f}  {knn:.3f}  "
                f"{found.details['noise'].lapse:9.3f}  {seconds:7.0f}"
            )


def ranking() -> None:
    print("\nranking 500 objects from a head by re-asking; bound of Gu and Xu (2023)")
    n = 500
    exact = nearer.PointOracle(nearer.datasets.make_mixture(n, 3, random_state=0))
    for flip, factor in ((0.05, 1.66), (0.1, 2.28), (0.2, 4.43)):
        right, cost = 0, []
        for head in range(100):
            oracle = nearer.NoisyOracle(exact, flip, noise="fresh", random_state=head)
            count = [0]
            asking = nearer.rank_objects(head, n, noise=flip, random_state=head)
            found = nearer.run(asking, oracle, progress=lambda c, _, to=count: to.append(c))
            truth = nearer.run(nearer.rank_objects(head, n), exact)
            right += bool((found == truth).all())
            cost.append(count[-1])
        bound = factor * n * np.log2(n)
        print(
            f"flips {flip:.0%}: exact in {right} of 100 heads, "
            f"{np.median(cost):,.0f} comparisons, {np.median(cost) / bound:.2f} of the bound"
        )


def bases() -> None:
    print("\nBasis, 1,000 objects of Table 1, a tenth of the answers flipped: same dimension?")
    for family in ("ball", "cube", "gaussian", "sphere"):
        found = []
        for d in (2, 3, 5, 10):
            for seed in SEEDS[:3]:
                exact = nearer.PointOracle(draw_points(family, d, 1000, seed))
                noisy = nearer.NoisyOracle(exact, 0.1, noise="fresh", random_state=seed)
                told = nearer.run(nearer.choose_basis(1000, random_state=seed), exact)
                heard = nearer.run(nearer.choose_basis(1000, random_state=seed, noise=0.1), noisy)
                found.append((told.dimension, heard.dimension))
        same = sum(told == heard for told, heard in found)
        exact_mean, noisy_mean = np.mean(found, axis=0)
        print(
            f"{family:>9}: same in {same} of {len(found)}, "
            f"mean {exact_mean:.2f} exact, {noisy_mean:.2f} flipped",
            flush=True,
        )


def dimension() -> None:
    print("\ndimension from 20,000 random answers about 200 objects, a tenth flipped; CPU seconds")
    seconds = {}
    for d in (2, 3, 5):
        found, times = [], []
        for seed in range(10):
            triplets = flipped(d, seed)
            start = time.process_time()
            estimate = nearer.estimate_dimension(triplets, 200, random_state=seed)
            times.append(time.process_time() - start)
            found.append(estimate.dimension)
        seconds[d] = np.median(times)
        start = time.process_time()
        lore = nearer.estimate_dimension(flipped(d, 0), 200, method="low-rank", random_state=0)
        took = time.process_time() - start
        print(
            f"d = {d}: {found}, {seconds[d]:.1f} s each; LORE {lore.dimension} in {took:.1f} s",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "triplets.npy")
        np.save(path, flipped(2, 0))
        command = [str(cblearn_environment()), "-c", THEIRS, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    print(
        f"cblearn's estimate_dimensionality_cv, d = 2, dimensions 1 to 3: {said[0]} in "
        f"{float(said[1]):.0f} s, {float(said[1]) / seconds[2]:.0f} times as long"
    )


def flipped(d: int, seed: int) -> Any:
    X = nearer.datasets.make_gaussian(200, d, random_state=seed)
    oracle = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=seed)
    questions = random_questions(200, 20_000, np.random.default_rng(seed + 100))
    return answered(questions, oracle(questions))


if __name__ == "__main__":
    main()
