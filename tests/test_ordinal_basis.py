"""OrdinalBasis keeps scikit-learn's rules and says the same as the strategy it wraps."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import nearer
from nearer.errors import InvalidInput


@parametrize_with_checks([nearer.OrdinalBasis(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def X():
    return nearer.datasets.make_gaussian(80, 2, random_state=1)


def test_same_as_the_strategy(X):
    model = nearer.OrdinalBasis(random_state=5).fit(X)
    basis = nearer.run(nearer.choose_basis(80, random_state=5), nearer.PointOracle(X))
    np.testing.assert_array_equal(model.embedding_, basis.coordinates())
    assert (model.dimension_, model.n_comparisons_) == (basis.dimension, basis.n_comparisons)


def test_features_distances_and_oracle_agree(X):
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    by_features = nearer.OrdinalBasis(random_state=0).fit_transform(X)
    by_distances = nearer.OrdinalBasis(random_state=0, metric="precomputed").fit_transform(D)
    by_oracle = nearer.OrdinalBasis(random_state=0).fit_transform(
        nearer.PointOracle(X), n_objects=80
    )
    np.testing.assert_array_equal(by_features, by_distances)
    np.testing.assert_array_equal(by_features, by_oracle)


def test_oracle_needs_a_number_of_objects(X):
    with pytest.raises(InvalidInput, match="n_objects=None: is needed with an oracle"):
        nearer.OrdinalBasis().fit(nearer.PointOracle(X))
    with pytest.raises(InvalidInput, match="n_objects=80"):
        nearer.OrdinalBasis().fit(X, n_objects=80)
    with pytest.raises(InvalidInput, match="n_objects='many': must be a whole number"):
        nearer.OrdinalBasis().fit(nearer.PointOracle(X), n_objects="many")


def test_old_and_new_random_states(X):
    for seed in (3, np.random.RandomState(3), np.random.default_rng(3), None):
        assert nearer.OrdinalBasis(random_state=seed).fit(X).dimension_ >= 1


def test_frames_come_out_where_they_are_wanted(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, index=[f"thing {i}" for i in range(len(X))], columns=["a", "b"])
    out = nearer.OrdinalBasis(random_state=0).set_output(transform="pandas").fit_transform(frame)
    assert out.index.equals(frame.index)
    assert list(out.columns) == [f"ordinalbasis{j}" for j in range(out.shape[1])]
