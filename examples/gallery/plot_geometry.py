"""
The geometry of rankings
========================

What do rankings from a few heads show about space? The paper's algorithm has three notions,
*above*, the *lens* and the *hull estimate*. From them it derives axes, and from the axes the
dimension.
"""

# %%
# Four hundred points in a disc. All that is known is how two heads rank them by distance.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import nearer
from nearer.algorithms.dominance import hull_estimate, lens

X = nearer.datasets.make_ball(400, 2, random_state=12)
oracle = nearer.PointOracle(X)
heads = [int(X[:, 0].argmin()), int(X[:, 0].argmax())]
strategy = nearer.asking.together(
    *(nearer.rank_objects(head, 400, random_state=0) for head in heads)
)
rankings = np.array(nearer.run(strategy, oracle))

# %%
# An object is **above** another if both heads are farther from it. The **lens** of an object holds
# all objects that it is above: the intersection of the discs around both heads, with the object on
# their edges. The **hull estimate** is the set of objects that are above no other object: a chain
# from head to head, near the line between them.

apex = int(np.argmin(np.abs(X - [0.05, 0.55]).sum(axis=1)))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.8))
for ax, mask, name in (
    (left, lens(rankings, apex), "the lens of an object"),
    (right, hull_estimate(rankings), "the hull estimate: above no object"),
):
    ax.scatter(*X.T, s=9, color="#b9bec6", linewidths=0)
    ax.scatter(*X[mask].T, s=16, color="#2e6f9e", linewidths=0, zorder=2)
    ax.scatter(*X[heads].T, s=80, marker="s", color="#d1495b", edgecolors="white", zorder=3)
    ax.set(xticks=[], yticks=[], aspect="equal", title=name, xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
for head in heads:
    reach = float(np.linalg.norm(X[head] - X[apex]))
    left.add_patch(Circle(X[head], reach, fill=False, color="#d1495b", alpha=0.4))
left.scatter(*X[apex], s=110, marker="*", color="#e09f3e", edgecolors="white", zorder=4)
chain = np.flatnonzero(hull_estimate(rankings))
chain = chain[np.argsort(rankings[0, chain])]
_ = right.plot(*X[chain].T, color="#2e6f9e", lw=1, alpha=0.6)

# %%
# That chain is an **axis**. `nearer.choose_basis` finds one after the other. The next endpoint is
# the object above most of the hull estimate of all endpoints so far; the search ends when that
# endpoint is not affinely independent of the others. The number of axes is the paper's estimate of
# the dimension.

basis = nearer.run(nearer.choose_basis(400, random_state=0), oracle)
print(f"{len(basis.axes)} axes from {basis.n_comparisons} comparisons")
nearer.plotting.plot_basis(basis, X)
