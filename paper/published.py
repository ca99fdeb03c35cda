"""What the paper reports, each figure with its place.

Anderton, Pavlu and Aslam, "Revealing the Basis: Ordinal Embedding through Geometry". Nothing here
is computed; nothing elsewhere repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIMENSIONS", "FAMILIES", "TABLE_1", "TABLE_2", "TABLE_3", "Accuracy", "Quality"]

DIMENSIONS = (1, 2, 3, 5, 8, 10, 20)
FAMILIES = ("ball", "cube", "gaussian", "sphere")

#: Table 1, "Dimensionality Estimates (1,000 points, avg. of 100 runs)": family, true d → estimate
TABLE_1: dict[str, dict[int, float]] = {
    family: dict(zip(DIMENSIONS, estimates, strict=True))
    for family, estimates in {
        "ball": (1, 2, 2.11, 3.66, 4.22, 4.54, 5.53),
        "cube": (1, 2, 2.37, 3.74, 4.44, 4.58, 4.78),
        "gaussian": (1, 2, 2.98, 3.91, 4.44, 4.54, 4.52),
        "sphere": (1, 1, 2, 3.09, 3.85, 4.08, 4.93),
    }.items()
}


@dataclass(frozen=True)
class Quality:
    """A row of Table 2.

    Attributes
    ----------
    dimension
        d̂, in which the positions are.
    comparisons
        In thousands, as printed; None where the paper has a dash.
    tau, knn, rmse
        Mean Kendall's τ, kNN precision at ⌈log2 n⌉, RMSE of distances; None for a dash.
    optimum
        False if the paper's * says that no global optimum was found.
    """

    dimension: int
    comparisons: int | None
    tau: float | None
    knn: float | None
    rmse: float | None
    optimum: bool = True


_NO = {"optimum": False}

#: Table 2, "Embedding Quality": data set → method → row
TABLE_2: dict[str, dict[str, Quality]] = {
    "3dgmm": {
        "Basis": Quality(3, 38, 0.71, 0.64, 0.77),
        "Basis+SOE": Quality(3, 38, 0.99, 0.97, 0.02),
        "Extra+SOE": Quality(3, 61, 0.99, 0.99, 0.01),
        "Rand+SOE": Quality(3, 38, 0.95, 0.81, 0.11),
        "CK": Quality(3, 38, -0.01, 0.02, 1.79, **_NO),
    },
    "5dcube": {
        "Basis": Quality(3, 39, 0.49, 0.40, 0.26),
        "Basis+SOE": Quality(6, 39, 0.88, 0.73, 0.05),
        "Extra+SOE": Quality(6, 61, 0.94, 0.92, 0.03),
        "Rand+SOE": Quality(6, 39, 0.61, 0.30, 0.19, **_NO),
        "CK": Quality(5, 39, 0.01, 0.02, 0.34, **_NO),
    },
    "5dgmm": {
        "Basis": Quality(3, 39, 0.68, 0.60, 0.90),
        "Basis+SOE": Quality(6, 39, 0.94, 0.66, 0.14),
        "Extra+SOE": Quality(6, 62, 0.98, 0.97, 0.04),
        "Rand+SOE": Quality(6, 39, 0.01, 0.02, 1.77, **_NO),
        "CK": Quality(5, 39, -0.01, 0.02, 1.57, **_NO),
    },
    "20news": {
        "Basis": Quality(3, 186, 0.11, 0.06, 0.53),
        "Basis+SOE": Quality(6, 186, 0.01, 0.01, 0.34, **_NO),
        "Extra+SOE": Quality(6, 310, -0.01, 0.01, 0.34, **_NO),
        "Rand+SOE": Quality(3, 186, 0.01, 0.01, 0.44, **_NO),
        "CK": Quality(16, None, None, None, None),
    },
    "cities": {
        "Basis": Quality(2, 28, 0.37, 0.35, 0.60),
        "Basis+SOE": Quality(4, 28, 0.89, 0.54, 0.13),
        "Extra+SOE": Quality(4, 50, 0.96, 0.93, 0.05),
        "Rand+SOE": Quality(4, 28, 0.01, 0.02, 0.75, **_NO),
        "CK": Quality(3, 28, 0.01, 0.02, 0.67, **_NO),
    },
    "digits": {
        "Basis": Quality(6, 159, 0.52, 0.29, 3.18),
        "Basis+SOE": Quality(12, 159, 0.01, 0.01, 2.48, **_NO),
        "Extra+SOE": Quality(12, 211, 0.01, 0.01, 2.49, **_NO),
        "Rand+SOE": Quality(12, 159, 0.73, 0.40, 2.31, **_NO),
        "CK": Quality(10, None, None, None, None),
    },
    "spam": {
        "Basis": Quality(3, 85, 0.85, 0.78, 471),
        "Basis+SOE": Quality(6, 85, -0.01, 0.01, 596, **_NO),
        "Extra+SOE": Quality(6, 138, 0.01, 0.01, 596, **_NO),
        "Rand+SOE": Quality(3, 85, 0.94, 0.23, 150),
        "CK": Quality(10, None, None, None, None),
    },
}


@dataclass(frozen=True)
class Accuracy:
    """A half row of Table 3: dimension, and accuracy on the training and the test folds."""

    dimension: int
    train: float
    test: float


#: Table 3, "Classification Accuracy, 5 folds": data set → (original features, embedding)
TABLE_3: dict[str, tuple[Accuracy, Accuracy]] = {
    "20news": (Accuracy(34_072, 0.94, 0.54), Accuracy(3, 0.21, 0.08)),
    "cities": (Accuracy(3, 1.0, 0.95), Accuracy(2, 0.99, 0.90)),
    "digits": (Accuracy(784, 1.0, 0.84), Accuracy(6, 0.92, 0.71)),
    "spam": (Accuracy(57, 0.99, 0.97), Accuracy(3, 0.85, 0.74)),
}
