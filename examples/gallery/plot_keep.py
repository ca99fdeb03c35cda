"""
Keep a map, and use it elsewhere
================================

A map can be saved to one file without pickles, used in pandas and SciPy, and converted to a
dissimilarity matrix for RSA tools, always with its uncertainty.
"""

# %%
# Thirty objects of three kinds; some answers are wrong.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import dendrogram, linkage
from scipy.spatial.distance import squareform

import nearer

rng = np.random.default_rng(11)
kinds = np.repeat(["tool", "fruit", "animal"], 10)
centres = np.repeat([[0.0, 0.0], [3.0, 0.5], [1.2, 2.6]], 10, axis=0)
X = centres + 0.6 * rng.normal(size=(30, 2))
people = nearer.asking.PsychometricOracle(X, scale=0.4, random_state=0)
embedding = nearer.run(nearer.adaptive(30, budget=1500, random_state=0), people)
embedding

# %%
# The loaded map is the same to the last bit.

file = Path(tempfile.mkdtemp()) / "map.nearer.npz"
embedding.save(file)
again = nearer.load(file)
same = np.array_equal(again.positions, embedding.positions)
print(f"{file.stat().st_size / 1024:.0f} KiB; the same positions: {same}")

# %%
# A frame has names, positions and standard deviations.

again.to_frame().head().round(2)

# %%
# ``distances()`` has SciPy's order, so that a tree takes one line; ``to_rdm()`` returns descriptors
# and dissimilarities for RSA toolboxes.

print({key: np.shape(value) for key, value in again.to_rdm().items()})
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.6), width_ratios=[1, 1.3])
shown = left.imshow(squareform(again.distances()), cmap="viridis")
left.set(xticks=[4.5, 14.5, 24.5], yticks=[4.5, 14.5, 24.5], title="distances")
left.set_xticklabels(["tool", "fruit", "animal"])
left.set_yticklabels(["tool", "fruit", "animal"])
figure.colorbar(shown, ax=left, shrink=0.7)
dendrogram(linkage(again.distances(), "average"), labels=kinds, ax=right, color_threshold=0,
           above_threshold_color="#4f5d75", leaf_rotation=90, leaf_font_size=8)  # fmt: skip
right.set(yticks=[], title="average linkage")
right.spines[["top", "right", "left"]].set_visible(False)

# %%
# Draws give an interval for any figure that is computed from a map. How far are fruits from
# tools, compared with animals?

means = [[draw[kinds == kind].mean(axis=0) for kind in ("tool", "fruit", "animal")]
         for draw in again.draws(200, random_state=0)]  # fmt: skip
ratio = [np.linalg.norm(b - a) / np.linalg.norm(c - a) for a, b, c in means]
low, high = np.quantile(ratio, [0.025, 0.975])
print(f"{np.mean(ratio):.2f} times as far (95 %: {low:.2f} to {high:.2f})")
