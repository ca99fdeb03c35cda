"""The idea of each figure of the paper, drawn from a run.

Every picture is made of what the algorithm has: rankings from heads, answered by points in the
plane. Circles of true distances show the reason for the rankings.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from nearer import PointOracle, choose_basis, rank_objects, run
from nearer.algorithms.basis import Basis
from nearer.algorithms.dominance import find_axis, hull_estimate, lens
from nearer.datasets import make_ball, make_cube
from nearer.metrics import mean_kendall_tau
from nearer.plotting import plot_basis

__all__ = ["FIGURES", "Drawing", "draw_figures"]

Points = NDArray[np.float64]
Rankings = NDArray[np.int64]

_GREY, _INK = "#b9bec6", "#2b2f36"
_RED, _BLUE, _GOLD = "#d1495b", "#2e6f9e", "#e09f3e"


@dataclass(frozen=True)
class Drawing:
    """A figure, its name, and its description."""

    name: str
    title: str
    caption: str
    figure: Figure

    @property
    def png(self) -> bytes:
        """The picture as a PNG file; the same picture gives the same file."""
        sink = io.BytesIO()
        self.figure.savefig(sink, format="png", dpi=130, metadata={"Software": None})
        return sink.getvalue()


def draw_figures(seed: int = 0) -> list[Drawing]:
    """All of them, in the paper's order.

    Parameters
    ----------
    seed
        Draws the points, and the choices of the algorithm.
    """
    return [
        draw(name, np.random.default_rng([seed, number]))
        for number, (name, draw) in enumerate(FIGURES.items())
    ]


def _missed_perfect_basis(name: str, rng: np.random.Generator) -> Drawing:
    """Figure 1: a set with two perfect axes in it, the axes found, the perfect ones."""
    line = np.linspace(-1, 1, 41)
    rows = np.stack([line, np.zeros_like(line)], axis=1)
    cloud = 0.98 * make_ball(260, 2, random_state=rng)
    turn = np.array([[np.cos(0.35), np.sin(0.35)], [-np.sin(0.35), np.cos(0.35)]])
    points = np.concatenate([rows, rows[:, ::-1], cloud]) @ turn
    oracle = PointOracle(points)
    ours = run(choose_basis(len(points), random_state=rng), oracle)
    perfect = _basis_between(points, [(0, 40), (41, 81)])

    figure = Figure(figsize=(12, 4.3), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _dots(left, points, s=10, color=_GREY, linewidths=0)
    _dots(left, points[:82], s=12, color=_INK, linewidths=0)
    left.set_title("two rows of evenly spaced objects in a cloud")
    taus = []
    for ax, basis, what in ((middle, ours, "axes found"), (right, perfect, "between their ends")):
        plot_basis(basis, points, ax=ax)
        taus.append(mean_kendall_tau(points, basis.coordinates()))
        ax.set_title(f"{what}: τ = {taus[-1]:.3f}")
    for ax in (left, middle, right):
        _bare(ax)
    return Drawing(
        name,
        "Figure 1: a perfect basis, and the one that is found",
        f"Left: the set. Middle: the axes that ChooseBasis finds, τ = {taus[0]:.3f}. Right: the "
        f"axes between the ends of the two rows, τ = {taus[1]:.3f}: each row and the few other "
        "objects so near it that no object of the row is nearer to both ends.",
        figure,
    )


def _above(name: str, rng: np.random.Generator) -> Drawing:
    """Figure 2: p is above q, for both heads are farther from p than from q."""
    points, heads = _cloud_with_heads(rng, 120)
    rankings = _rankings(points, heads)
    midway = (np.abs(points[:, 0]) < 0.4) & (points[:, 1] > 0)  # where a lens is easy to see
    under_each = [lens(rankings, x).sum() for x in range(len(points))]
    p = int(np.argmax(np.where(midway, under_each, -1)))
    under = np.flatnonzero(lens(rankings, p))
    others = under[under != p]
    q = int(others[np.argmin(np.linalg.norm(points[others] - points[p] / 2, axis=1))])

    figure, ax = _plate(points)
    _balls(ax, points, heads, p)
    _dots(ax, points[under], s=26, color=_GOLD, linewidths=0, zorder=2)
    _name(ax, points, {heads[0]: "p₁", heads[1]: "p₂"}, _BLUE)
    _name(ax, points, {p: "p", q: "q"}, _RED)
    return Drawing(
        name,
        "Figure 2: above",
        f"p is above q, and above all {len(others)} gold objects: they lie in both balls that "
        "reach to p, so both heads rank them nearer. Then p cannot lie between the heads.",
        figure,
    )


def _hull(name: str, rng: np.random.Generator) -> Drawing:
    """Figure 3: the hull estimate of two endpoints."""
    points, heads = _cloud_with_heads(rng, 400)
    members = np.flatnonzero(hull_estimate(_rankings(points, heads)))
    figure, ax = _plate(points)
    ax.plot(*points[heads].T, color=_BLUE, lw=1, alpha=0.6)
    _dots(ax, points[members], s=30, color=_RED, linewidths=0, zorder=2)
    _name(ax, points, {heads[0]: "p₁", heads[1]: "p₂"}, _BLUE)
    off = np.abs(points[members, 1]).max()
    return Drawing(
        name,
        "Figure 3: the hull estimate of two endpoints",
        f"The {len(members)} red objects are above no other: the axis between the two heads. "
        f"Lenses are thin near the line, so all are near it: the farthest is {off:.2f} away, where "
        "the line is 2 long.",
        figure,
    )


def _locate(name: str, rng: np.random.Generator) -> Drawing:
    """Figure 4: the lens under x, the members of the axis in it, the one chosen."""
    points, heads = _cloud_with_heads(rng, 160)
    rankings = _rankings(points, heads)
    axis = find_axis(*rankings)
    first, last = axis.intervals(*rankings)
    size = last - first + 1
    # an object over the middle of the axis, with a few members under it
    over = np.setdiff1d(np.flatnonzero(points[:, 1] > 0.15), axis.members)
    x = int(over[np.argmin(np.abs(size[over] - 5) + np.abs(points[over, 0]))])
    inside = axis.members[first[x] : last[x] + 1]
    chosen = inside[(len(inside) - 1) // 2]

    figure, ax = _plate(points)
    _balls(ax, points, heads, x)
    ax.plot(*points[heads].T, color=_BLUE, lw=1, alpha=0.5)
    _dots(ax, points[axis.members], s=64, facecolors="none", edgecolors=_INK, linewidths=1)
    _dots(ax, points[inside], s=30, color=_GOLD, linewidths=0, zorder=2)
    _dots(ax, points[chosen], s=44, color=_RED, linewidths=0, zorder=3)
    ax.plot([points[x, 0]] * 2, [points[x, 1], 0], color=_INK, lw=0.8, ls=":")
    for place, member in enumerate(axis.members):
        if first[x] - 3 <= place <= last[x] + 3:
            ax.annotate(
                str(place),
                points[member],
                xytext=(0, 7),
                fontsize=7,
                color=_INK,
                textcoords="offset points",
                ha="center",
            )
    _name(ax, points, {heads[0]: "p₁", heads[1]: "p₂"}, _BLUE)
    _name(ax, points, {x: "x"}, _RED)
    return Drawing(
        name,
        "Figure 4: a place on an axis",
        f"Circled: the members of the axis. Gold: those in the lens under x, places {first[x]} to "
        f"{last[x]}. Red: the median, place {(first[x] + last[x]) / 2:g}, taken for the one "
        "nearest to where x projects (dotted).",
        figure,
    )


def _hull_error(name: str, rng: np.random.Generator) -> Drawing:
    """Figure 5: how far from the hull can a member of the estimate be? Theorem 2, measured."""
    sizes = [50, 100, 200, 400, 800, 1600, 3200]
    worst, bound, shown = [], [], None
    for n in sizes:
        points, heads = _cloud_with_heads(rng, n)
        members = points[hull_estimate(_rankings(points, heads))]
        off = np.abs(members[:, 1])  # the heads are at (±1, 0), so the hull is the line y = 0
        gap = _largest_gap(points)
        worst.append(off.max())
        bound.append(np.sqrt(gap * (2 * 2.0 + gap)))
        if n == 200:
            shown = points, heads, members, members[np.argmax(off)]
    assert shown is not None
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    points, heads, members, p = shown
    _dots(left, points, s=10, color=_GREY, linewidths=0)
    _dots(left, members, s=20, color=_RED, linewidths=0)
    left.plot(*points[heads].T, color=_BLUE, lw=1)
    left.plot([p[0], p[0]], [p[1], 0], color=_INK, lw=1.2)
    left.annotate("h", (p[0], p[1] / 2), xytext=(5, 0), textcoords="offset points", color=_INK)
    left.annotate("p", p, xytext=(4, 4), textcoords="offset points", color=_RED)
    left.annotate("q", (p[0], 0), xytext=(4, -12), textcoords="offset points", color=_BLUE)
    _name(left, points, {heads[0]: "v₁", heads[1]: "v₂"}, _BLUE, offset=(-6, -18))
    _bare(left)
    right.loglog(sizes, bound, "o--", color=_BLUE, label="bound √(ε(2m + ε))")
    right.loglog(sizes, worst, "o-", color=_RED, label="farthest member h")
    right.set(xlabel="objects", ylabel="distance from the line")
    _plain_ticks(right, sizes, [0.1, 0.2, 0.5, 1.0])
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    return Drawing(
        name,
        "Figure 5: the error of the hull estimate",
        "The paper's construction for Theorem 2: p is the member of the estimate farthest from the "
        "line, q the point of the line nearest to it, h their distance. Right: h in growing sets, "
        "and the theorem's bound with ε from the largest empty ball on a grid of centres.",
        figure,
    )


FIGURES: dict[str, Callable[[str, np.random.Generator], Drawing]] = {
    "figure1": _missed_perfect_basis,
    "figure2": _above,
    "figure3": _hull,
    "figure4": _locate,
    "figure5": _hull_error,
}


def _cloud_with_heads(rng: np.random.Generator, n: int) -> tuple[Points, list[int]]:
    """Objects in a flat box, and two heads at the ends of its middle line."""
    box = (2 * make_cube(n - 2, 2, random_state=rng) - 1) * [0.98, 0.6]
    return np.concatenate([[[-1.0, 0.0], [1.0, 0.0]], box]), [0, 1]


def _rankings(points: Points, heads: list[int]) -> Rankings:
    oracle = PointOracle(points)
    return np.stack(
        [run(rank_objects(head, len(points), random_state=0), oracle) for head in heads]
    )


def _basis_between(points: Points, ends: list[tuple[int, int]]) -> Basis:
    """The basis whose axes have these endpoints, ranked and located as always."""
    rankings = {
        head: ranking
        for pair in ends
        for head, ranking in zip(pair, _rankings(points, list(pair)), strict=True)
    }
    axes = tuple(find_axis(rankings[p], rankings[q]) for p, q in ends)
    none = np.empty((0, 3), dtype=np.int64)
    return Basis(axes, rankings, none, 0, 0, "the endpoints were given", len(points))


def _largest_gap(points: Points) -> float:
    """Radius of the largest ball without an object, its centre on a grid over the box."""
    x, y = np.meshgrid(np.linspace(-0.9, 0.9, 91), np.linspace(-0.5, 0.5, 51))
    centres = np.stack([x.ravel(), y.ravel()], axis=1)
    nearest = np.full(len(centres), np.inf)
    for point in points:
        np.minimum(nearest, np.linalg.norm(centres - point, axis=1), out=nearest)
    return float(nearest.max())


def _plate(points: Points) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    ax = figure.subplots()
    _dots(ax, points, s=14, color=_GREY, linewidths=0)
    _bare(ax).set(xlim=(-1.12, 1.12), ylim=(-0.68, 0.68), adjustable="box")
    return figure, ax


def _bare(ax: Axes) -> Axes:
    """No ticks, a light frame, and the same scale in both directions."""
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_color("#d9dce1")
    return ax


def _balls(ax: Axes, points: Points, heads: list[int], apex: int) -> None:
    """The two balls around the heads that reach to the apex; where they overlap is its lens."""
    for head in heads:
        radius = float(np.linalg.norm(points[head] - points[apex]))
        ax.add_patch(Circle(tuple(points[head]), radius, color=_BLUE, alpha=0.09, lw=0))
        ax.add_patch(Circle(tuple(points[head]), radius, fill=False, color=_BLUE, alpha=0.5))


def _name(
    ax: Axes,
    points: Points,
    names: dict[int, str],
    colour: str,
    offset: tuple[float, float] = (6, 6),
) -> None:
    for i, name in names.items():
        _dots(ax, points[i], s=52, color=colour, edgecolors="white", zorder=4)
        ax.annotate(
            name,
            points[i],
            xytext=offset,
            textcoords="offset points",
            fontsize=12,
            color=colour,
            zorder=5,
        )


def _dots(ax: Axes, points: Points, **how: Any) -> None:
    x, y = np.atleast_2d(points).T
    ax.scatter(x, y, **how)


def _plain_ticks(ax: Axes, x: Sequence[int], y: Sequence[float]) -> None:
    """Ticks at these places of logarithmic axes, as plain numbers."""
    for axis, places in ((ax.xaxis, x), (ax.yaxis, y)):
        axis.set_major_locator(FixedLocator(places))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
