"""ChooseBasis as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearer.algorithms.basis import Basis, Endpoints, choose_basis
from nearer.algorithms.dominance import Axis
from nearer.asking.oracles import DistanceOracle, PointOracle
from nearer.asking.protocol import Oracle
from nearer.asking.run import run
from nearer.asking.sort import Order
from nearer.errors import InvalidInput
from nearer.estimators.embedders import as_generator

__all__ = ["OrdinalBasis"]


class OrdinalBasis(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embed objects by the axes that their rankings reveal (the paper's ``Basis``).

    Parameters
    ----------
    metric
        How distances between the rows of X are computed: ``"euclidean"``, any metric of
        `scipy.spatial.distance.cdist`, or ``"precomputed"`` when X holds distances.
    endpoints
        ``"above"``, the paper's way to choose endpoints, or ``"farthest-rank"``.
    order
        ``"fewest-comparisons"`` or ``"fewest-rounds"``.
    random_state
        Seed, `numpy.random.Generator`, `numpy.random.RandomState` or None.

    Attributes
    ----------
    embedding_
        ``(n, dimension_)`` coordinates.
    dimension_
        The estimated dimension.
    axes_
        The axes, each with its endpoints and its members in order.
    basis_
        The whole `nearer.algorithms.Basis`: rankings, triplets, why it stopped.
    n_comparisons_, n_rounds_
        What was asked, and in how many rounds.

    Examples
    --------
    >>> import nearer
    >>> X = nearer.datasets.make_cube(300, 2, random_state=0)
    >>> model = nearer.OrdinalBasis(random_state=0).fit(X)
    >>> model.dimension_, model.embedding_.shape
    (2, (300, 2))

    Any oracle will do in place of X:

    >>> model = nearer.OrdinalBasis(random_state=0).fit(nearer.PointOracle(X), n_objects=300)
    >>> model.dimension_
    2
    """

    def __init__(
        self,
        *,
        metric: Any = "euclidean",
        endpoints: Endpoints = "above",
        order: Order = "fewest-comparisons",
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.endpoints = endpoints
        self.order = order
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, *, n_objects: int | None = None) -> OrdinalBasis:
        """Rank, find axes, place all objects on them.

        Parameters
        ----------
        X
            ``(n, d)`` features, ``(n, n)`` distances with ``metric="precomputed"``, or an oracle.
        y
            Ignored; there for scikit-learn's sake.
        n_objects
            How many objects there are; needed with an oracle, and only there.
        """
        if callable(X):
            if n_objects is None:
                raise InvalidInput("fit(oracle) needs n_objects=, the number of objects")
            oracle: Oracle = X
            n = int(n_objects)
        else:
            if n_objects is not None:
                raise InvalidInput(f"n_objects={n_objects}: only goes with an oracle; X has rows")
            points = validate_data(
                self, X, accept_sparse="csr", ensure_min_samples=3, dtype=np.float64
            )
            precomputed = self.metric == "precomputed"
            oracle = DistanceOracle(points) if precomputed else PointOracle(points, self.metric)
            n = points.shape[0]
        strategy = choose_basis(
            n,
            random_state=as_generator(self.random_state),
            endpoints=self.endpoints,
            order=self.order,
        )
        self.basis_: Basis = run(strategy, oracle)
        self.embedding_: NDArray[np.float64] = self.basis_.coordinates()
        self.dimension_: int = self.basis_.dimension
        self.axes_: tuple[Axis, ...] = self.basis_.axes
        self.n_comparisons_: int = self.basis_.n_comparisons
        self.n_rounds_: int = self.basis_.n_rounds
        return self

    def fit_transform(
        self, X: Any, y: object = None, *, n_objects: int | None = None
    ) -> NDArray[np.float64]:
        """Fit and return ``embedding_``."""
        return self.fit(X, y, n_objects=n_objects).embedding_

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the coordinates, which ``set_output`` gives to the columns of a frame."""
        check_is_fitted(self, "embedding_")
        return np.array([f"ordinalbasis{j}" for j in range(self.dimension_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = self.metric in ("euclidean", "cosine")
        tags.non_deterministic = self.random_state is None
        return tags
