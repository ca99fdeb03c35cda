"""Neighbour lists are enough for the shape of the data."""

import numpy as np
import pytest
from scipy import sparse

import nearer
from nearer.errors import InvalidInput
from nearer.estimators import _as_graph


def lists(X, k):
    return np.argsort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1 : k + 1]


@pytest.fixture(scope="module")
def square():
    return nearer.datasets.make_cube(150, 2, random_state=0)


def test_loe_recovers_neighbours_and_shape(square):
    model = nearer.LOE(2, random_state=0).fit(lists(square, 8))
    assert nearer.metrics.knn_precision(square, model.embedding_, k=8) > 0.8
    assert nearer.metrics.mean_kendall_tau(square, model.embedding_) > 0.7


def test_random_walks_recover_the_metric(square):
    model = nearer.KNNGraphEmbedding(2).fit(lists(square, 12))
    assert nearer.metrics.mean_kendall_tau(square, model.embedding_) > 0.8


def test_walks_may_not_be_longer_than_rounding_shows(square):
    assert np.isfinite(
        nearer.KNNGraphEmbedding(2, reach=1e6).fit(lists(square, 12)).embedding_
    ).all()
    with pytest.raises(InvalidInput, match="reach=1000000000: must be at most"):
        nearer.KNNGraphEmbedding(2, reach=10**9).fit(lists(square, 12))


def test_lists_and_matrices_are_the_same_graph(square):
    near = lists(square, 4)
    dense = np.zeros((150, 150))
    np.put_along_axis(dense, near, 1, axis=1)
    for form in (dense, sparse.csr_matrix(dense)):
        assert (_as_graph(form) != _as_graph(near)).nnz == 0


@pytest.mark.parametrize(
    ("neighbours", "message"),
    [
        ([[1], [2], [7]], "object 7"),
        ([[0.5]], "must be"),
        (np.zeros((3, 3)), "no neighbours"),
        (sparse.csr_matrix(np.ones((2, 3))), "square"),
    ],
)
def test_bad_graphs(neighbours, message):
    with pytest.raises(InvalidInput, match=message):
        nearer.LOE(1).fit(neighbours)


def test_pieces_are_named():
    with pytest.raises(InvalidInput, match="2 pieces"):
        nearer.KNNGraphEmbedding(1).fit([[1], [0], [3], [2]])
    with pytest.raises(InvalidInput, match="nothing is compared"):
        nearer.LOE(1).fit([[1, 2], [0, 2], [0, 1]])


def test_frames_and_generators():
    pytest.importorskip("pandas")
    lists = [[1, 2], [0, 2], [1, 3], [2, 4], [3, 5], [4, 3]]
    model = nearer.LOE(n_components=1, random_state=np.random.default_rng(0))
    out = model.set_output(transform="pandas").fit_transform(lists)
    assert out.shape == (6, 1)
    assert list(out.columns) == ["loe0"]
    graph = nearer.KNNGraphEmbedding(n_components=1).set_output(transform="pandas")
    assert list(graph.fit_transform(lists).columns) == ["knngraphembedding0"]


def test_where_objects_are_dense_their_neighbours_are_near():
    """Neighbourhoods are narrow there, so a step of the walk is short."""
    X = np.sort(np.random.default_rng(0).random(200) ** 3)[:, None]
    model = nearer.KNNGraphEmbedding(1).fit(lists(X, 12))
    pairs = np.triu_indices(200, 1)
    assert np.corrcoef(model.distances_[pairs], np.abs(X - X.T)[pairs])[0, 1] > 0.99
