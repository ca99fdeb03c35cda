"""
Estimators in a scikit-learn pipeline
=====================================

`nearer.SOE`, `nearer.OrdinalEmbedding` and the others are scikit-learn estimators:
cross-validation, grid search and pipelines work with them as they are.
"""

# %%
# Fifty objects in the plane, 4,000 questions, an eighth of the answers wrong. Questions are rows
# (head, a, b), and ``y`` says whether a is nearer.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearer

rng = np.random.default_rng(6)
X = nearer.datasets.make_mixture(50, 2, n_centres=3, random_state=8) * [1.0, 1.5]
questions = np.array([rng.choice(50, 3, replace=False) for _ in range(4000)])
y = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.125, random_state=0)(questions)

# %%
# Which loss suits these answers? Five folds show how many held-out answers are predicted. One
# answer of eight is wrong, so that .875 is the most that can be reached.

models = {"SOE": nearer.SOE, "STE": nearer.STE, "TSTE": nearer.TSTE, "CKL": nearer.CKL,
          "GNMDS": nearer.GNMDS, "OrdinalEmbedding": nearer.OrdinalEmbedding}  # fmt: skip
scores = {
    name: cross_val_score(model(2, n_objects=50, random_state=0), questions, y, cv=5)
    for name, model in models.items()
}
figure, ax = plt.subplots(figsize=(7, 3.6))
for row, values in enumerate(scores.values()):
    ax.scatter(values, [row] * len(values), s=22, color="#2e6f9e", alpha=0.6)
    ax.scatter(values.mean(), row, s=220, marker="|", color="#d1495b")
ax.axvline(0.875, color="0.6", ls="--", lw=1)
ax.set_yticks(range(len(scores)), list(scores))
ax.invert_yaxis()
ax.set(xlabel="accuracy on answers held out")
ax.spines[["top", "right"]].set_visible(False)

# %%
# In a pipeline the next step gets the positions.

pipeline = make_pipeline(
    nearer.OrdinalEmbedding(2, n_objects=50, random_state=0),
    StandardScaler(),
    KMeans(3, n_init=10, random_state=0),
)
nearer_is = np.where(y[:, None], questions, questions[:, [0, 2, 1]])
pipeline.fit(nearer_is)
model, groups = pipeline[0], pipeline[-1].labels_
nearer.plotting.plot_positions(model.embedding_, colour=[f"group {g + 1}" for g in groups])
