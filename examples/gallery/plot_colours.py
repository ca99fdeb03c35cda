"""
Colours
=======

Among the first maps of this kind were maps of colours. People say only which of two colours is more
like a third, and the map is the colour circle.
"""

# %%
# Forty colours of many hues. The people here are simulated: they see distances in CIE L*a*b*, in
# which equal steps look about equal, and are uncertain near ties.

import colorsys

import matplotlib.pyplot as plt
import numpy as np

import nearer

rng = np.random.default_rng(1)
hues = np.arange(40) / 40
strong = rng.uniform(0.45, 0.9, 40)
rgb = np.array([colorsys.hsv_to_rgb(h, s, 0.9) for h, s in zip(hues, strong, strict=True)])


def lab(rgb):
    """CIE L*a*b* of sRGB colours, in daylight."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(linear @ np.array(to_xyz).T / [0.9505, 1.0, 1.089]).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


people = nearer.asking.PsychometricOracle(lab(rgb), scale=6.0, random_state=0)

# %%
# The most informative questions are asked, until the map is good enough or the budget is spent.

embedding = nearer.run(nearer.adaptive(40, budget=2500, random_state=0), people)
print(f"{embedding.n_comparisons} answers, {embedding.dimension} dimensions")

# %%
# The circle closes, although no answer mentions it: red is beside purple.

X = embedding.positions
_, _, directions = np.linalg.svd(X - X.mean(0), full_matrices=False)
flat = X @ directions[:2].T
figure, ax = plt.subplots(figsize=(7, 4.6))
ax.scatter(*flat.T, s=330, color=rgb, edgecolors="white", linewidths=1.5, zorder=2)
ax.set_aspect("equal")
ax.axis("off")
