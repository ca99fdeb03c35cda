"""Answers that are sometimes wrong: chosen against random questions, ranking, dimension.

People's answers are replayed from the recorded sets (a quarter of the questions held out), the
others simulated. Curves go to out/bench/noise.png.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import nearer
from nearer.algorithms.candidates import Candidates, draw_questions
from nearer.algorithms.informative import draw_round
from nearer.asking.memory import pack
from nearer.asking.record import as_triplets
from nearer.fitting.belief import Belief
from nearer.fitting.calibration import reliability_diagram

SEEDS = (11, 12, 13)
HUMAN = {  # name: (dimension, sizes)
    "zappos85": (3, (500, 1000, 2000, 3000, 4000, 5000, 6000)),
    "alieneggs30": (2, (500, 1000, 2000, 4000)),
    "alieneggs300": (2, (600, 2400, 6000)),
    "cars": (2, (500, 1500, 4000)),
    "musicians": (3, (600, 2400, 4800)),
}


def main() -> None:
    curves = human()
    draw(curves, Path("out", "bench"))
    prior()
    flips()
    ranking()
    dimension()


def human() -> dict[str, Any]:
    print("\npeople, held-out accuracy (median of seeds), calibration error at the last size")
    curves = {}
    for name, (d, sizes) in HUMAN.items():
        try:
            data = nearer.datasets.load_human(name)
        except nearer.errors.MissingData as missing:
            print(f"{name}: {missing}")
            continue
        print(f"{name}, d = {d}:", *(f"{m:>6,}" for m in sizes), "  error")
        curves[name] = sizes, {}
        for way in ("random", "chosen"):
            runs = [replay(data, d, sizes, way, seed) for seed in SEEDS]
            accuracy = np.median([run[0] for run in runs], axis=0)
            error = np.median([run[1] for run in runs])
            curves[name][1][way] = accuracy
            print(f"{way:>{len(name) + 7}}:", *(f"{a:6.3f}" for a in accuracy), f"  {error:.3f}")
    return curves


def replay(
    data: Any, d: int, sizes: tuple[int, ...], way: str, seed: int
) -> tuple[list[float], float]:
    rng = np.random.default_rng(seed)
    n, rows = data.n_objects, majority(data.triplets)
    rows = rows[rng.permutation(len(rows))]
    test, train = rows[: len(rows) // 4], rows[len(rows) // 4 :]
    oracle = nearer.RecordedOracle(train)
    belief, candidates = Belief(n, d, rng), Candidates(n, oracle.knows)
    triplets, accuracy = train[:0], []
    for size in sizes:
        while len(triplets) < min(size, len(train)):
            count = min(3 * n, size - len(triplets))
            if way == "random":
                questions = train[len(triplets) :][:count]
            else:
                questions, _ = draw_round(belief, candidates, count, rng)
                candidates.exclude(questions)
            if not len(questions):
                break
            triplets = np.concatenate([triplets, as_triplets(questions, oracle(questions))])
            belief.learn(triplets)
        p = belief.fit.probability(test)
        accuracy.append(float(np.mean(p > 0.5)))
    return accuracy, reliability_diagram(p, np.ones(len(p), dtype=bool)).error


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
            questions = draw_questions(100, m, np.random.default_rng(0))
            answers = as_evidence(as_triplets(questions, oracle(questions)), 100)
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
    print("  answers  flips  dimension      τ    kNN  estimated  seconds")
    X = nearer.datasets.make_mixture(500, 3, random_state=SEEDS[0])
    for budget in (27_000, 80_000):
        for flip in (0.05, 0.1, 0.2):
            oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip, random_state=1)
            start = time.perf_counter()
            found = nearer.run(nearer.informative(500, budget=budget, random_state=0), oracle)
            seconds = time.perf_counter() - start
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


def dimension() -> None:
    print("\ndimension from 20,000 random answers about 200 objects, a tenth flipped")
    for d in (2, 3, 5):
        found, times = [], []
        for seed in range(10):
            X = nearer.datasets.make_gaussian(200, d, random_state=seed)
            oracle = nearer.NoisyOracle(nearer.PointOracle(X), 0.1, random_state=seed)
            questions = draw_questions(200, 20_000, np.random.default_rng(seed + 100))
            triplets = as_triplets(questions, oracle(questions))
            start = time.perf_counter()
            estimate = nearer.estimate_dimension(triplets, 200, random_state=seed)
            times.append(time.perf_counter() - start)
            found.append(estimate.dimension)
        print(f"d = {d}: {found}, {np.median(times):.1f} s each")


if __name__ == "__main__":
    main()
