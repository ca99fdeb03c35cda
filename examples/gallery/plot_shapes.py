"""
Shapes: pictures on the map
===========================

Twenty-five blossoms that differ in their petals and in how round they are. People see three and
say which is the odd one out; the map shows the pictures themselves.
"""

# %%
# Draw the pictures, each to a file.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nearer

folder = Path(tempfile.mkdtemp())
depths, hues = np.meshgrid(np.linspace(0.05, 0.6, 5), np.linspace(0, 1, 5))
look = np.stack([depths.ravel(), hues.ravel()], axis=1)
turn = np.linspace(0, 2 * np.pi, 400)
pictures = []
for number, (depth, hue) in enumerate(look):
    figure = plt.figure(figsize=(1, 1), layout="none")
    ax = figure.add_axes((0, 0, 1, 1))
    reach = 1 + depth * np.cos(5 * turn)
    ax.fill(reach * np.cos(turn), reach * np.sin(turn), color=plt.get_cmap("viridis")(0.9 * hue))
    ax.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7))
    ax.axis("off")
    pictures.append(folder / f"blossom-{number:02d}.png")
    figure.savefig(pictures[-1], dpi=96, transparent=True)
    plt.close(figure)

# %%
# Simulated people choose the odd one out of three, 1,500 times. ``query`` is −1 for no query.

rng = np.random.default_rng(0)
shown = np.array([rng.choice(25, 3, replace=False) for _ in range(1500)])
people = nearer.asking.PsychometricOracle(look * [2.0, 1.0], scale=0.12, random_state=0)
screens = np.column_stack([np.full(len(shown), -1), shown])
odd = people(screens).argmax(axis=1)
trials = nearer.Trials.odd_one_out(shown=shown, odd=shown[np.arange(len(shown)), odd])
embedding = nearer.fit(trials, n_components=2, random_state=0)
print(f"{embedding.held_out.accuracy:.0%} of the choices held out are predicted, of three each")

# %%

embedding.plot(pictures=pictures)
