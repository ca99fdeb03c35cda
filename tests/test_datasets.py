"""Built-in data and files of points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearer import datasets
from nearer.datasets.loaders import load_named_points
from nearer.errors import AnswersWarning, InvalidInput

MAKERS = [
    datasets.make_ball,
    datasets.make_cube,
    datasets.make_gaussian,
    datasets.make_mixture,
    datasets.make_sphere,
]


@pytest.mark.parametrize("make", MAKERS)
def test_shape_seed_and_bad_arguments(make):
    a, b, c = (make(30, 4, random_state=seed) for seed in (1, 1, 2))
    assert a.shape == (30, 4)
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()
    with pytest.raises(InvalidInput, match="dimension=0"):
        make(30, 0)


def test_the_distributions_are_what_they_say():
    ball = np.linalg.norm(datasets.make_ball(20_000, 3, random_state=0), axis=1)
    assert ball.max() <= 1
    assert np.mean(ball**3) == pytest.approx(0.5, abs=0.01)  # uniform in volume
    cube = datasets.make_cube(20_000, 2, random_state=0)
    assert cube.min() >= 0
    assert cube.max() <= 1
    sphere = datasets.make_sphere(20_000, 4, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=1), 1)
    np.testing.assert_allclose(sphere.mean(axis=0), 0, atol=0.02)
    variance = [
        datasets.make_mixture(2000, 3, random_state=s).var(axis=0).mean() for s in range(50)
    ]
    assert np.mean(variance) == pytest.approx(1 + 2 / 3, abs=0.25)  # within + between 3 centres


def test_cities_are_chosen_as_in_the_paper():
    cities = datasets.load_cities()
    assert len(set(cities.countries)) == 244
    assert len(np.unique(cities.points, axis=0)) == 500
    counts = {c: cities.continents.count(c) for c in set(cities.continents)}
    assert counts == {"AS": 221, "AF": 76, "EU": 69, "NA": 66, "SA": 36, "OC": 30, "AN": 2}
    np.testing.assert_allclose(np.linalg.norm(cities.points, axis=1), 6371)
    london, paris = (cities.points[cities.names.index(name)] for name in ("London", "Paris"))
    assert np.linalg.norm(london - paris) == pytest.approx(344, abs=5)


def test_built_in_names():
    for name, shape in {"3dgmm": (500, 3), "5dgmm": (500, 5), "5dcube": (500, 5)}.items():
        assert datasets.load_points(name, random_state=0).shape == shape
    assert datasets.load_points("cities").shape == (500, 3)
    with pytest.raises(InvalidInput, match="did you mean 'cities'"):
        datasets.load_points("citys")
    with pytest.raises(InvalidInput, match="3dgmm, 5dgmm, 5dcube, cities"):
        datasets.load_points("zzzzzz")


@given(st.integers(1, 20), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_every_format_round_trips(n, d, seed):
    import tempfile
    from pathlib import Path

    import pandas as pd

    X = np.random.default_rng(seed).normal(size=(n, d))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    frame["name"] = "some name"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "a.npy", X)
        np.savez(folder / "a.npz", X=X, y=np.zeros(n))
        frame.to_csv(folder / "a.csv", index=False)
        frame.to_parquet(folder / "a.parquet")
        np.savetxt(folder / "bare.csv", X, delimiter=",", fmt="%.17g")
        for file in folder.iterdir():
            np.testing.assert_array_equal(datasets.load_points(file), X)


@pytest.mark.parametrize(
    ("content", "column"),
    [
        (b"id,x,y\n17,1,2\n5,3,4\n8,0,1\n", "id"),
        (b"x,y,Index\n1,2,17\n3,4,5\n0,1,8\n", "Index"),
        (b",x,y\n0,1,2\n1,3,4\n2,0,1\n", "column 1"),
        (b"1,1,2\n2,3,4\n3,0,1\n", "column 1"),
        (b"nr,who,x,y\n1,ann,1,2\n2,bob,3,4\n3,cy,0,1\n", "nr"),
    ],
)
def test_numbers_that_name_objects_are_no_coordinates_unless_said(tmp_path, content, column):
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.warns(AnswersWarning, match=f"'{column}' numbers the objects.*names='none'"):
        points = datasets.load_points(file)
    assert points.tolist() == [[1, 2], [3, 4], [0, 1]]
    assert datasets.load_points(file, names=column).tolist() == points.tolist()
    assert datasets.load_points(file, names="none").shape == (3, 3)


def test_names_go_before_numbers(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("nr,who,x,y\n1,ann,1,2\n2,bob,3,4\n3,cy,0,1\n")
    with pytest.warns(AnswersWarning, match="'nr' numbers the objects"):
        data = load_named_points(file)
    assert (data.names, data.points.shape, data.unread) == (("ann", "bob", "cy"), (3, 2), ())


def test_numbers_that_are_names_stay_apart(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("when,x,y\n0.25,1,2\n0.5,3,4\n12,0,1\n")
    data = load_named_points(file, names="when")
    assert data.names == ("0.25", "0.5", "12")
    assert data.points.tolist() == [[1, 2], [3, 4], [0, 1]]


@pytest.mark.parametrize(
    "content",
    [
        b"x,y\n0,1\n2,5\n1,3\n",  # whole numbers, but no count of the rows
        b"x,y\n5,0\n2,1\n1,2\n",  # a count of the rows, but not in the first column
        b"id,y\n7,0\n7,1\n1,2\n",  # called names, and the same twice
        b"id,y\n0.5,0\n7,1\n1,2\n",
    ],
)
def test_other_numbers_are_coordinates(tmp_path, content):
    (tmp_path / "a.csv").write_bytes(content)
    assert datasets.load_points(tmp_path / "a.csv").shape == (3, 2)


def test_a_column_of_names_must_be_there_and_tell_objects_apart(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("kind,x,y\na,1,2\na,3,4\n")
    with pytest.raises(InvalidInput, match="no column is called 'z'; there are kind, x, y"):
        datasets.load_points(file, names="z")
    with pytest.raises(InvalidInput, match="'kind' has the same name twice"):
        datasets.load_points(file, names="kind")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"1,2\n3\n", "line 2: has 1 fields"),
        ("a.csv", b"", "has no rows"),
        ("a.csv", b"x,y\na,b\n", "no column of numbers"),
        ("a.csv", b"x,y\n1,2\n1,oops\n", "line 3: column 2: 'oops'"),
        ("a.csv", b"x,y\n1,2\n1,\n", "line 3: column 2: '' is not a number; fill it in"),
        ("a.csv", b"x;y\n0,5;-,25\n1,5;2e1\n", "line 2: column 1: '0,5' is not a number; .*point"),
        ("a.csv", b"x;y\n0,5;1\n1,5;2\n", "line 2: column 1: '0,5' is not a number"),
        ("a.csv", b"x,y\n1,nan\n2,3\n", r"points\[0, 1\] = nan"),
        ("a.csv", b"x,y\n1,inf\n", "inf"),
        ("a.csv", b"\xff\xfe\x00", "UTF-8"),
        ("a.npy", b"nonsense", "NumPy file"),
        ("a.npy", b"", "NumPy file"),
        ("a.npz", b"PK nonsense", "NumPy file"),
        ("a.parquet", b"nonsense", "Parquet file"),
        ("a.xlsx", b"", "has no rows"),
    ],
)
def test_broken_files_are_named_with_the_place(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        datasets.load_points(tmp_path / name)


def test_an_npz_without_a_clear_array(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(InvalidInput, match="name the array of points X"):
        datasets.load_points(tmp_path / "a.npz")


def test_a_file_that_cannot_be_opened(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        datasets.load_points(tmp_path / "folder.csv")


def test_numbers_in_an_array_of_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(InvalidInput, match="NumPy file"):
        datasets.load_points(tmp_path / "a.npy")
