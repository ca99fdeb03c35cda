"""Draw the pictures of README and docs that no other command makes: docs/images/.

python scripts/make_pictures.py
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse, Rectangle

import nearer
from nearer.algorithms.dominance import hull_estimate, lens

FOLDER = Path(__file__).parents[1] / "docs" / "images"
GREY, RED, BLUE, GOLD = "#b9bec6", "#d1495b", "#2e6f9e", "#e09f3e"


def world() -> Figure:
    """The world, and the same from comparisons alone."""
    cities = nearer.datasets.load_cities()
    embedding = nearer.embed(nearer.PointOracle(cities.points), 500, random_state=0, progress=False)
    return nearer.plotting.plot_world(embedding.positions, cities)


def uncertainty() -> Figure:
    """A map from noisy answers, with a 95 % region for each object."""
    truth = np.random.default_rng(4).normal(size=(26, 2))
    people = nearer.asking.PsychometricOracle(truth, scale=0.5, random_state=0)
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for ax, budget in zip(figure.subplots(1, 2), (1000, 4000), strict=True):
        strategy = nearer.adaptive(26, budget=budget, n_components=2, quality=1, random_state=0)
        embedding = nearer.run(strategy, people)
        laid = nearer.metrics.procrustes(truth, embedding.positions)
        covariances = laid.scale**2 * (laid.turn.T @ embedding.covariances @ laid.turn)
        nearer.plotting.plot_positions(laid.aligned, covariances=covariances, ax=ax)
        ax.scatter(*truth.T, s=40, facecolors="none", edgecolors=RED, label="truth")
        ax.set_title(f"{budget:,} answers of people who err", fontsize=10)
    return figure


def geometry() -> Figure:
    """Above, lens and hull estimate, from the rankings of two heads."""
    X = nearer.datasets.make_ball(400, 2, random_state=12)
    heads = [int(X[:, 0].argmin()), int(X[:, 0].argmax())]
    strategy = nearer.asking.together(*(nearer.rank_objects(h, 400, random_state=0) for h in heads))
    rankings = np.array(nearer.run(strategy, nearer.PointOracle(X)))
    apex = int(np.argmin(np.abs(X - [0.05, 0.55]).sum(axis=1)))
    hull = np.flatnonzero(hull_estimate(rankings))
    hull = hull[np.argsort(rankings[0, hull])]
    figure = Figure(figsize=(9.5, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, shown, title in (
        (left, np.flatnonzero(lens(rankings, apex)), "the lens of an object: what it is above"),
        (right, hull, "the hull estimate: objects above no other"),
    ):
        ax.scatter(*X.T, s=9, color=GREY, linewidths=0)
        ax.scatter(*X[shown].T, s=16, color=BLUE, linewidths=0, zorder=2)
        ax.scatter(*X[heads].T, s=80, marker="s", color=RED, edgecolors="white", zorder=3)
        ax.set(xticks=[], yticks=[], aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
        ax.set_title(title, fontsize=10)
    for head in heads:
        reach = float(np.linalg.norm(X[head] - X[apex]))
        left.add_patch(Circle((X[head, 0], X[head, 1]), reach, fill=False, color=RED, alpha=0.4))
    left.scatter(*X[apex], s=110, marker="*", color=GOLD, edgecolors="white", zorder=4)
    right.plot(*X[hull].T, color=BLUE, lw=1, alpha=0.6)
    return figure


def tasks() -> Figure:
    """The questions that people are asked: two objects, the odd one out, two of eight."""
    rng = np.random.default_rng(3)
    figure = Figure(figsize=(10, 3.1), layout="constrained")
    asked = (
        ("Which is more like the one above?", 2, [0]),
        ("Which is the odd one out?", 3, [2]),
        ("Which two are most like the one above?", 8, [1, 6]),
    )
    for ax, (title, n, chosen) in zip(figure.subplots(1, 3), asked, strict=True):
        places = [(1.2 * (i % 4) - 0.6 * (min(n, 4) - 1), -1.2 * (i // 4)) for i in range(n)]
        places += [] if n == 3 else [(0.0, 1.45)]
        for i, (x, y) in enumerate(places):
            edge = GOLD if i in chosen else BLUE if i == n else GREY
            tile = Rectangle(
                (x - 0.5, y - 0.5), 1, 1, fill=False, ec=edge, lw=3 * (i in chosen) + 1
            )
            ax.add_patch(tile)
            size, leaves = rng.uniform(0.14, 0.24), rng.integers(4, 9)
            for turn in np.linspace(0, 2 * np.pi, leaves, endpoint=False):
                leaf = Ellipse(
                    (x + size * np.cos(turn), y + size * np.sin(turn)),
                    1.3 * size, 0.7 * size, angle=np.degrees(turn), color=(RED, BLUE, GOLD)[i % 3],
                )  # fmt: skip
                ax.add_patch(leaf)
            ax.add_patch(Circle((x, y), 0.45 * size, color="white"))
        ax.set(xlim=(-2.5, 2.5), ylim=(-1.8, 2.05), aspect="equal")
        ax.set_axis_off()
        ax.set_title(title, fontsize=11)
    return figure


def main() -> None:
    """Draw all of them."""
    for draw in (world, uncertainty, geometry, tasks):
        sink = io.BytesIO()
        draw().savefig(sink, format="png", dpi=90, metadata={"Software": None})
        (FOLDER / f"{draw.__name__}.png").write_bytes(sink.getvalue())
        print(FOLDER / f"{draw.__name__}.png", f"{len(sink.getvalue()) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
