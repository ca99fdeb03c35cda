"""
An unknown dimension
====================

How many dimensions do answers need? Fits in too few cannot predict held-out answers; fits in too
many learn the noise. If answers do not determine the dimension, the result says so.
"""

# %%
# Sixty objects that differ in three ways; every tenth answer is wrong.

import matplotlib.pyplot as plt
import numpy as np

import nearer

rng = np.random.default_rng(3)
truth = nearer.datasets.make_cube(60, 3, random_state=3)
oracle = nearer.NoisyOracle(nearer.PointOracle(truth), flip=0.1, random_state=3)
questions = np.array([rng.choice(60, 3, replace=False) for _ in range(8000)])
near = oracle(questions)
answers = np.where(near[:, None], questions, questions[:, [0, 2, 1]])

# %%
# Every dimension has a probability. With 400 answers little is known; with 1,500 one and two are
# excluded, and three, the truth, is most probable; with 8,000 it alone remains. Report the range
# (blue).

sizes = (400, 1500, 8000)
estimates = [
    nearer.estimate_dimension(answers[:m], 60, max_dimension=6, random_state=0) for m in sizes
]
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
for ax, m, estimate in zip(axes, sizes, estimates, strict=True):
    chances = {d: row["probability"] for d, row in estimate.evidence.items()}
    inside = [estimate.dimension_low <= d <= estimate.dimension_high for d in chances]
    ax.bar(chances.keys(), chances.values(), color=["#2e6f9e" if b else "#d5d9df" for b in inside])
    low, high = estimate.dimension_low, estimate.dimension_high
    span = str(low) if low == high else f"{low} to {high}" if high <= 6 else f"{low} or more"
    ax.set(title=f"{m:,} answers: {span}", xlabel="dimensions", xticks=list(chances))
    ax.title.set_fontsize(10)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("probability")

# %%
# The evidence: how well each dimension predicts held-out answers, with two standard errors.

estimates[-1].plot()
