r"""What is believed of one object among others that stay: the model of its answers.

The *anchors* have positions, each with a variance. A newcomer x is asked about with two of them, i
and j, in one of two ways: is it nearer to i than j is, or is i nearer to it than j is? With t the
margin (`margins`), the answer "yes" has probability ε + (1 − 2ε)Φ(t/√(8/π + w)), w the variance of
t because of the anchors: the logistic curve of `nearer.fitting.posterior`, written with the normal
distribution function so that averages over normal margins have a closed form.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nearer._kernels.compiling import helper
from nearer._kernels.margins import counted

__all__ = [
    "FROM_NEW",
    "FROM_OLD",
    "LOGISTIC",
    "PEAK",
    "STEPS",
    "Anchors",
    "Belief",
    "Few",
    "Floats",
    "Ints",
    "Model",
    "Places",
    "Prior",
    "Scene",
    "Singles",
    "Told",
    "Work",
    "copy",
    "margin",
]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Few = NDArray[np.int32]
# of c anchors: positions (c, d); variances (c,); by distance from each (c, c − 1); distances (c, c)
Anchors = tuple[Floats, Floats, Few, Floats]
# where an object may be: points (p, d), the anchors first; what their distances from the anchors
# count (p, c); variances of what they stand for (p,); log-chances of "yes" for z in steps
Places = tuple[Floats, Floats, Floats, Floats]
Model = tuple[float, float, float]  # sharpness, lapse, tail
Prior = tuple[Floats, Floats]  # mean (d,) and precision (d, d)
Belief = tuple[Floats, Floats]  # mean (d,), covariance (d, d); of q objects with one more axis
# of each answer the two anchors and the way of asking (3,), −1 where there is none; the share that
# says yes; precision and target of its site (2,); of q objects with one more axis
Told = tuple[Few, Singles, Singles]
Scene = tuple[Anchors, Places, Model, Prior, Floats]  # …, draws of a normal variable (s, d)
Work = tuple[Floats, Floats, Floats, Floats]  # gradient (d,), two directions (d,), matrix (d, d)

FROM_OLD, FROM_NEW = 0, 1  # whose distances are compared
STEPS = 64  # a unit of z in the table of log-chances

LOGISTIC = 8.0 / math.pi  # the variance at which Φ is closest to the logistic curve
PEAK = 0.3989422804014327  # of the normal density


@helper
def margin(
    x: Floats, anchors: Anchors, asked: Few, model: Model, work: Work
) -> tuple[float, float]:
    """The margin of a question and its variance because of the anchors; its gradient in x."""
    (X, variance, _, _), (sharpness, _, tail), (gradient, u, w, _) = anchors, model, work
    i, j, from_new = asked[0], asked[1], asked[2] == FROM_NEW
    to_i = to_j = 0.0
    for k in range(len(x)):
        u[k], w[k] = x[k] - X[i, k], (x[k] if from_new else X[i, k]) - X[j, k]
        to_i += u[k] * u[k]
        to_j += w[k] * w[k]
    near, by_near = counted(to_i, tail)
    far, by_far = counted(to_j, tail)
    by_i = by_j = 0.0
    for k in range(len(x)):
        u[k] *= by_near
        w[k] *= by_far
        gradient[k] = sharpness * ((w[k] if from_new else 0.0) - u[k])
        in_i = u[k] if from_new else w[k] + u[k]
        by_i += in_i * in_i
        by_j += w[k] * w[k]
    noise = by_i * variance[i] + by_j * variance[j]
    return sharpness * (far - near), sharpness * sharpness * noise


@helper
def copy(belief: Belief, to: Belief) -> None:
    """Write one belief over another."""
    for i in range(len(belief[0])):
        to[0][i] = belief[0][i]
        for j in range(len(belief[0])):
            to[1][i, j] = belief[1][i, j]
