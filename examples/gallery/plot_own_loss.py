"""
Writing your own loss
=====================

A loss of your own is an object with one method. Here triplets are answered by people who do not see
small differences, and the loss does not ask for differences below that threshold.
"""

# %%
# Far should be farther from the head than near by `margin`. The loss of a triplet is the square of
# what is missing.

import matplotlib.pyplot as plt
import numpy as np

import nearer


class Margin:
    """The squared shortfall of d(head, far) − d(head, near) from a margin."""

    def __init__(self, margin):
        self.margin = margin

    def sums(self, X, triplets, weights):
        """The weighted sum of the losses, and its gradient in the positions."""
        head, near, far = triplets.T
        to_near, to_far = X[head] - X[near], X[head] - X[far]
        d_near, d_far = np.linalg.norm(to_near, axis=1), np.linalg.norm(to_far, axis=1)
        missing = np.maximum(self.margin + d_near - d_far, 0)
        weight = 2 * missing * (1.0 if weights is None else weights)
        pull = (weight / np.maximum(d_near, 1e-12))[:, None] * to_near
        push = (weight / np.maximum(d_far, 1e-12))[:, None] * to_far
        gradient = np.zeros_like(X)
        for objects, part in ((head, pull - push), (near, -pull), (far, push)):
            np.add.at(gradient, objects, part)
        return float((weight * missing / 2).sum()), gradient


# %%
# People compare forty objects. The fit begins at the positions that `nearer.fit` finds.

rng = np.random.default_rng(1)
X = rng.normal(size=(40, 2))
questions = np.array([rng.choice(40, 3, replace=False) for _ in range(3000)])
people = nearer.asking.PsychometricOracle(X, scale=0.2, random_state=0)
near = np.asarray(people(questions)) > 0.5
triplets = np.where(near[:, None], questions, questions[:, [0, 2, 1]])

start = nearer.fit(triplets, n_components=2, n_objects=40, random_state=0).positions
margins = [0.05, 0.5, 2.0]
fits = [nearer.fitting.fit_positions(triplets, 40, 2, loss=Margin(m), start=start) for m in margins]

# %%
# A larger margin spreads the map. The order of its distances hardly changes.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, margin, fit in zip(axes, margins, fits, strict=True):
    nearer.plotting.plot_positions(fit.positions, ax=ax)
    tau = nearer.metrics.mean_kendall_tau(X, fit.positions)
    ax.set_title(f"margin {margin}: τ = {tau:.2f}", fontsize=10)
