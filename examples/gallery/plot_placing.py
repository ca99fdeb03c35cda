"""
Placing new objects
===================

New objects are added to a map by comparing them with objects on it. No question is asked again, and
no object on the map moves.
"""

# %%
# A map of 200 objects first. The last forty are new: no question was about them.

import matplotlib.pyplot as plt
import numpy as np

import nearer

X = nearer.datasets.make_mixture(240, 2, n_centres=4, random_state=2)
oracle = nearer.PointOracle(X)
known = nearer.embed(oracle, 200, random_state=0)

# %%
# Each new object is compared with objects of the map until its position is as certain as theirs.

placed = known.place(oracle, np.arange(200, 240))
print(f"the map: {known.n_comparisons / 200:.0f} comparisons an object")
print(f"placing: {placed.n_comparisons / 40:.0f} comparisons an object")

# %%
# Aligned with the truth, the new objects are where they should be.

both = np.vstack([known.positions, placed.positions])
laid = nearer.metrics.procrustes(X, both).aligned
figure, ax = plt.subplots(figsize=(7, 5.5))
ax.scatter(*laid[:200].T, s=14, color="#b9bec6", label="on the map already")
ax.scatter(*laid[200:].T, s=34, color="#d1495b", label="placed")
ax.scatter(*X[200:].T, s=90, facecolors="none", edgecolors="#2e6f9e", label="where they truly are")
ax.set(xticks=[], yticks=[], aspect="equal")
ax.legend(frameon=False, loc="best")
