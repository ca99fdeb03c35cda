"""
Screens: choose k of m
======================

In the time of two comparisons people can look at eight things and choose the two that are most
like a given one. Which is the better use of ten minutes of their time?
"""

# %%
# `nearer.Pace` estimates how long screens take, from 9,904 recorded ones. Each task gets ten
# minutes of the same simulated people.

import matplotlib.pyplot as plt
import numpy as np

import nearer

X = np.random.default_rng(2).normal(size=(24, 2))
pace, minutes = nearer.Pace(), 10
taus, screens = {}, {}
for task in ("1 of 2", "1 of 4", "2 of 8"):
    asked = nearer.Task.parse(task)
    screens[task] = int(60 * minutes / pace.seconds(asked))
    taus[task] = []
    for seed in range(2):
        people = nearer.asking.PsychometricOracle(
            X, scale=0.6, choose=asked.choose, random_state=seed
        )
        strategy = nearer.adaptive(
            24, n_components=2, budget=screens[task], task=task, quality=1, random_state=seed
        )
        embedding = nearer.run(strategy, people)
        taus[task].append(nearer.metrics.mean_kendall_tau(X, embedding.positions))

# %%
# Fewer screens give better maps, since each answer carries more information. A dot is a study.

figure, ax = plt.subplots(figsize=(7, 3.6))
for row, values in enumerate(taus.values()):
    ax.barh(row, np.median(values), height=0.55, color="#2e6f9e", alpha=0.35)
    ax.scatter(values, [row] * 2, s=28, color="#2e6f9e", zorder=3)
ax.set_yticks(range(len(taus)), [f"{task}\n{screens[task]} screens" for task in taus])
ax.invert_yaxis()
ax.set(xlim=(0, 1), xlabel="Kendall's τ between estimated and true distances from a head")
ax.spines[["top", "right"]].set_visible(False)

# %%
# ``nearer plan --objects 24 --dim 2 --noise 0.2 --hours 0.25`` compares tasks for your own study.
