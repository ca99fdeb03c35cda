"""Maps to print: what they say, and that names, dots and pictures keep apart."""

import json
import re

import numpy as np
import pytest
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.offsetbox import AnnotationBbox
from matplotlib.text import Annotation, Text
from scipy.stats import chi2

import nearer
from nearer.errors import AnswersWarning, InvalidInput
from nearer.plotting import explore_positions, plot_basis, plot_positions, plot_world, save


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def regions(n, d, seed=0):
    roots = 0.2 * np.random.default_rng(seed).normal(size=(n, d, d))
    return roots @ roots.transpose(0, 2, 1) + 0.01 * np.eye(d)


def names(n):
    return [f"thing {i}, {'long ' * (i % 4)}name" for i in range(n)]


def written(ax):
    """The rectangles of the names on a map, in pixels, by what they say."""
    ax.figure.draw_without_rendering()
    texts = [t for t in ax.texts if isinstance(t, Annotation) and t.get_text().startswith("thing")]
    return {t.get_text(): Text.get_window_extent(t).extents for t in texts}  # without its line


def overlap(a, b, slack=0.5):
    return (a[:2] + slack < b[2:]).all() and (b[:2] + slack < a[2:]).all()


@pytest.mark.parametrize(("n", "d"), [(8, 2), (60, 2), (300, 2), (60, 3), (60, 1), (300, 1)])
def test_names_cover_neither_each_other_nor_a_dot(n, d):
    X = points(n, d)
    for ax in plot_positions(X, labels=names(n)).figure.axes:
        boxes = list(written(ax).values())
        assert len(boxes) >= min(n, 20)
        for i, box in enumerate(boxes):
            assert not any(overlap(box, other) for other in boxes[:i])
            assert (box[:2] >= ax.bbox.p0 - 1).all()
            assert (box[2:] <= ax.bbox.p1 + 1).all()
        dots = next(c for c in ax.collections if isinstance(c, PathCollection))
        middles = ax.transData.transform(dots.get_offsets())
        for box in boxes:
            assert not ((middles > box[:2] + 0.5) & (middles < box[2:] - 0.5)).all(axis=1).any()


def test_few_names_are_all_written_and_many_are_counted():
    assert len(written(plot_positions(points(8, 2), labels=names(8)))) == 8
    ax = plot_positions(points(400, 2), labels=names(400))
    notes = [t.get_text() for t in ax.texts if "as far as there is room" in t.get_text()]
    assert notes == [f"{len(written(ax))} of 400 names, as far as there is room"]


def test_a_name_is_written_as_it_is():
    label = "thing $x_1$ and $5"
    assert list(written(plot_positions(points(3, 2), labels=[label, "a", "b"]))) == [label]


@pytest.mark.parametrize(("d", "panels"), [(2, 1), (3, 3), (4, 6), (5, 10), (7, 10)])
def test_more_than_two_dimensions_are_a_grid_of_pairs(d, panels):
    X, C = points(30, d), regions(30, d)
    ax = plot_positions(X, covariances=C)
    drawn = ax.figure.axes
    assert len(drawn) == panels
    _, size, turn = np.linalg.svd(X - X.mean(axis=0))
    turn = turn if d > 2 else np.eye(2)  # two dimensions are drawn as they are
    pairs = [(i, j) for j in range(1, min(d, 5)) for i in range(j)]
    for panel, pair in zip(drawn, pairs, strict=True):
        [dots] = [c for c in panel.collections if isinstance(c, PathCollection)]
        away, seen = np.asarray(dots.get_offsets()), X @ turn.T[:, pair]
        seen = seen * np.sign(away[0] * seen[0])  # which way a direction points is no matter
        assert away == pytest.approx(seen)
        [ellipses] = [c for c in panel.collections if isinstance(c, PolyCollection)]
        wide = [np.ptp(path.vertices, axis=0) for path in ellipses.get_paths()]
        along = np.einsum("ki,nij,kj->nk", turn[list(pair)], C, turn[list(pair)])
        assert np.array(wide) == pytest.approx(2 * np.sqrt(chi2.ppf(0.95, 2) * along), rel=0.01)
        assert panel.get_aspect() == 1, "both directions of a panel at one scale"
        if d > 2:
            shares = np.round(100 * size**2 / np.sum(size**2))
            last = max(j for _, j in pairs)
            says = [f"direction {k + 1} of {d}\n({shares[k]:.0f} % of the spread)" for k in pair]
            assert panel.get_xlabel() == (says[0] if pair[1] == last else "")
            assert panel.get_ylabel() == (says[1] if pair[0] == 0 else "")


def test_axes_of_the_caller_show_the_first_two_directions():
    ax = Figure().subplots()
    assert plot_positions(points(20, 4), labels=names(20), ax=ax) is ax
    assert len(ax.figure.axes) == 1
    assert ax.get_xlabel().startswith("direction 1 of 4")


def test_a_region_holds_95_per_cent():
    X, C = points(12, 2), regions(12, 2)
    ax = plot_positions(X, covariances=C, colour=["odd", "even"] * 6)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["even", "odd", "95 %"]
    [drawn] = [c for c in ax.collections if isinstance(c, PolyCollection)]
    for middle, covariance, path in zip(X, C, drawn.get_paths(), strict=True):
        away = path.vertices[:-1] - middle
        squared = np.einsum("vi,ij,vj->v", away, np.linalg.inv(covariance), away)
        assert squared == pytest.approx(chi2.ppf(0.95, 2), rel=1e-6)


def test_one_dimension_is_drawn_in_order():
    X = np.array([[3.0], [1.0], [2.0]])
    ax = plot_positions(X, covariances=np.ones((3, 1, 1)), colour=X[:, 0])
    [dots] = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert np.asarray(dots.get_offsets()).tolist() == [[3, 2], [1, 0], [2, 1]]
    bars = next(c for c in ax.collections if not isinstance(c, PathCollection))
    ends = np.array([path.vertices[:, 0] for path in bars.get_paths()])
    assert ends == pytest.approx(X + 1.959964 * np.array([-1, 1]), abs=1e-5)
    assert ax.get_xlabel() == "dimension 1 (100 % of the spread)"
    assert ax.get_ylabel() == ""


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 1), (6, 1), (30, 1), (5, 2)])
def test_the_legend_is_below_the_label(n, d):
    ax = plot_positions(points(n, d), labels=names(n), covariances=regions(n, d))
    ax.figure.draw_without_rendering()
    label, legend = ax.xaxis.label.get_window_extent(), ax.get_legend().get_window_extent()
    gap = (label.y0 - legend.y1) * 72 / ax.figure.dpi
    assert 0 <= gap < 12, "points"


def test_colours_are_explained():
    X = points(60, 2)
    many = plot_positions(X, colour=np.arange(60) % 40)
    legend = [t.get_text() for t in many.get_legend().get_texts()]
    assert len(legend) == 36
    assert legend[-1] == "and 5 more"
    looks = {
        (*c.get_facecolor()[0].tolist(), c.get_paths()[0].vertices.tobytes())
        for c in many.collections
    }
    assert len(looks) >= 36, "classes beyond the sixth have other marks"
    numbers = plot_positions(X, colour=X[:, 0])
    assert len(numbers.figure.axes) == 2, "a colour bar"
    [dots] = numbers.collections
    assert np.asarray(dots.get_array()).tolist() == X[:, 0].tolist()


def test_pictures_have_their_names_beside_them(tmp_path):
    files = [tmp_path / f"p{i}.png" for i in range(10)]
    for i, file in enumerate(files):
        imsave(file, np.full((300, 200, 3), i / 10))
    ax = plot_positions(points(10, 2), pictures=files, labels=names(10))
    boxes = [a for a in ax.artists if isinstance(a, AnnotationBbox)]
    assert len(boxes) == 10
    for box in boxes:
        inside = box.get_window_extent()
        assert (ax.bbox.p0 <= inside.p0).all(), "a picture covers no label of an axis"
        assert (inside.p1 <= ax.bbox.p1).all()
    assert len(written(ax)) >= 8
    for rectangle in written(ax).values():
        assert not any(overlap(rectangle, b.get_window_extent().extents, 3) for b in boxes)
    plot_positions(points(10, 2), pictures=files, labels=names(10), picture_size=1e30)
    files[3].write_text("no picture")
    with pytest.raises(InvalidInput, match=r"p3\.png: cannot be read as a picture"):
        plot_positions(points(10, 2), pictures=files)


def test_a_notebook_shows_the_map():
    ax = plot_positions(points(5, 2))
    assert ax._repr_png_().startswith(b"\x89PNG")


def test_degenerate_positions_are_drawn():
    assert plot_positions(np.zeros((4, 2)), labels=names(4)).get_xlabel() == "dimension 1"
    assert plot_positions(np.zeros((4, 3))).get_ylabel() == "direction 2 of 3"
    assert plot_positions([[1.0, 2.0]], labels=["thing"]) is not None
    assert "dimension 1" in explore_positions([[1.0]]).html


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": [1, 2, 3]}, "colour: 3 for 20 objects"),
        ({"labels": ["a"]}, "labels: 1 for 20 objects"),
        ({"pictures": []}, "pictures: 0 for 20 objects"),
        (
            {"covariances": np.ones((2, 2, 2))},
            r"covariances of shape \(2, 2, 2\): must be \(20, 2, 2\), a",
        ),
        ({"covariances": np.full((20, 2, 2), "x")}, "covariances must be numbers, a matrix"),
        ({"covariances": [[1], [1, 2]]}, "covariances must be numbers, a matrix"),
        ({"covariances": np.full((20, 2, 2), np.nan)}, "covariances must be finite numbers"),
        ({"colour": [[1], [1, 2]] * 10}, r"colour=.* no lists within the list"),
        ({"colour": [1e308, -1e308] * 10}, "rescale numbers that are too large"),
        ({"colour": [0.5, 10**400] * 10}, "rescale numbers that are too large"),
        ({"pictures": [3] * 20}, "pictures=3: must be .* the path of an image file, or None"),
        (
            {"pictures": ["gone.png"] * 20},
            r"gone\.png: cannot be read as a picture .* or None for an object",
        ),
        ({"labels": set(range(20))}, r"labels=\{0, 1.* must be a list, .* in their order"),
        ({"labels": dict.fromkeys(range(20))}, r"labels=\{0: .* must be a list"),
        ({"labels": np.array("x")}, r"labels=array.* must be a list"),
        ({"labels": iter(range(20))}, r"labels=<range.* must be a list"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    for draw in (plot_positions, explore_positions):
        with pytest.raises(InvalidInput, match=message):
            draw(points(20, 2), **options)


def test_what_cannot_be_drawn_on_is_refused():
    figure = Figure()
    for ax in (figure, figure.subplots(1, 2)):
        with pytest.raises(InvalidInput, match=r"ax=.*must be one Matplotlib Axes; of a figure"):
            plot_positions(points(5, 2), ax=ax)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    ("odd", "shown"), [("_x", "_x"), ("", "(empty)"), (r"$\frac$", r"$\frac$")]
)
def test_every_class_is_in_the_legend_as_it_is_called(tmp_path, d, odd, shown):
    ax = plot_positions(points(8, d), colour=[odd] * 4 + ["b"] * 4)
    legend = ax.get_legend() if d == 2 else ax.figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [shown, "b"]
    save(ax, tmp_path / "map.png")  # is read as it is, not as mathematics


def test_a_legend_also_explains_what_was_on_the_axes():
    ax = Figure().subplots()
    ax.plot([0, 1], [0, 1], label="a line")
    plot_positions(points(4, 2), colour=list("aabb"), ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a line", "a", "b"]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_files_are_what_their_names_say_and_the_same_again(tmp_path, kind):
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for i in range(2):
        save(plot_positions(points(9, 2), labels=names(9)), tmp_path / f"{i}.{kind}")
    first, second = ((tmp_path / f"{i}.{kind}").read_bytes() for i in range(2))
    assert first.startswith(heads[kind])
    assert first == second


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"map\.jpg: a drawing is written to \.png or \.svg"):
        save(plot_positions(points(5, 2)), tmp_path / "map.jpg")
    with pytest.raises(InvalidInput, match=r"map\.png: a map to explore is written to \.html"):
        save(explore_positions(points(5, 2)), tmp_path / "map.png")
    for nothing in (None, points(5, 2)):
        with pytest.raises(InvalidInput, match=r"is no picture; give the axes or figure"):
            save(nothing, tmp_path / "map.png")
    assert list(tmp_path.iterdir()) == []


def test_a_page_holds_everything_and_asks_for_nothing():
    page = explore_positions(
        points(6, 3), labels=["</script><script>alert(1)</script>", *"bcdef"], title="<i>maps</i>"
    )
    assert page.html.count("</script>") == 2
    assert "&lt;i&gt;maps" in page.html
    assert not re.search(r"https?:|src=\"[^\"]|@import|url\(", page.html)
    assert "srcdoc=" in page._repr_html_()


def test_a_page_holds_places_and_regions():
    X, C = points(6, 2), regions(6, 2)
    page = explore_positions(X, covariances=C, colour=[1.5, 2, 3, 4, 5, 6]).html
    data = json.JSONDecoder().raw_decode(page, page.index('{"names"'))[0]
    assert np.array(data["places"]) == pytest.approx(X, rel=1e-4)
    assert np.array(data["regions"]) == pytest.approx(C, rel=1e-4)
    assert data["colour"] == [1.5, 2, 3, 4, 5, 6]
    shares = 100 * X.var(axis=0) / X.var(axis=0).sum()
    assert data["axes"] == [
        f"dimension {k} ({s:.0f} % of the spread)" for k, s in enumerate(shares, 1)
    ]


def test_the_world_is_redrawn_from_the_positions():
    """Cities turned, mirrored and shrunk come back to where they are; others do not."""
    cities = nearer.datasets.load_cities()
    turn = np.linalg.qr(points(3, 3))[0]
    there = np.stack([cities.longitude, cities.latitude], axis=1)
    for positions, same in ((0.1 * cities.points @ turn + 5, True), (points(500, 3), False)):
        world, redrawn = plot_world(positions, cities).axes
        for drawn, ours in zip(world.collections, redrawn.collections, strict=True):
            assert drawn.get_label() == ours.get_label()
            where = np.asarray(drawn.get_offsets())
            assert (np.allclose(where, np.asarray(ours.get_offsets()))) == same
            assert {tuple(x) for x in where.tolist()} <= {tuple(x) for x in there.tolist()}
    assert sum(len(c.get_offsets()) for c in world.collections) == 500


def test_a_basis_is_drawn_from_end_to_end():
    X = nearer.datasets.make_cube(60, 2, random_state=0)
    basis = nearer.run(nearer.choose_basis(60, random_state=0), nearer.PointOracle(X))
    ax = plot_basis(basis, X)
    for line, axis in zip(ax.lines, basis.axes, strict=True):
        assert line.get_xydata() == pytest.approx(X[axis.members])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        f"axis {i + 1}" for i in range(len(basis.axes))
    ]


def test_positions_of_another_number_of_cities_are_refused():
    cities = nearer.datasets.load_cities()
    with pytest.raises(InvalidInput, match="3 positions: the map has 500 cities"):
        plot_world(np.zeros((3, 2)), cities)


@pytest.mark.parametrize("colour", [["a", None, "b", "a"], [0.5, None, 1.0, 2.0], [1, None, 2, 2]])
def test_a_missing_colour_is_grey_and_explained(colour):
    ax = plot_positions(points(4, 2), colour=colour)
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown.count("no value") == 1
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == 4
    assert "null" in explore_positions(points(4, 2), colour=colour).html.split('"colour":')[1][:20]


def test_a_missing_picture_is_not_drawn(tmp_path):
    imsave(tmp_path / "a.png", np.zeros((4, 4, 3)))
    files = [tmp_path / "a.png", None, tmp_path / "a.png"]
    ax = plot_positions(points(3, 2), pictures=files)
    assert len([x for x in ax.get_children() if isinstance(x, AnnotationBbox)]) == 2
    assert explore_positions(points(3, 2), pictures=files).html.count("data:image/webp") == 2


@pytest.mark.parametrize(
    "options",
    [
        {"covariances": -1},
        {"covariances": [None] * 14},
        {"labels": 3},
        {"pictures": 1},
    ],
)
def test_what_is_no_list_is_refused(options):
    for draw in (plot_positions, explore_positions):
        with pytest.raises(InvalidInput, match=next(iter(options))):
            draw(points(14, 2), **options)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_both_maps_take_a_title(d):
    figure = plot_positions(points(6, d), title="cost in $").figure
    assert "cost in $" in [text.get_text() for text in figure.findobj(Text)]
    assert "cost in $" in explore_positions(points(6, d), title="cost in $").html
    assert "<h1>Map of the objects</h1>" in explore_positions(points(6, d), title=None).html


def test_letters_that_no_font_has_are_one_warning(tmp_path):
    """Whatever fonts there are, these have no letter: they are for private use."""
    odd = ["\U000f0000", "ape", "\U000f0001"]
    with pytest.warns(AnswersWarning, match="no installed font") as warned:
        ax = plot_positions(points(3, 2), labels=odd, colour=odd, title="\U000f0002")
    assert len(warned) == 1
    save(ax, tmp_path / "map.png")  # a warning here would be an error
    assert {text.get_text() for text in ax.texts} == {"□", "ape"}
