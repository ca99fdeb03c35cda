"""A real browser explores a map: by mouse, by keys, by search; phone and desk, light and dark."""

import numpy as np
import pytest
from browserkit import LOOKS, look, needs_browser, open_page, shapes

from nearer.plotting import explore_positions, save

pytestmark = needs_browser

NAMES = ["</script><b>", *(f"thing {i}" for i in range(19))]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    pictures = []
    for name, content in shapes(20):
        (folder / name).write_bytes(content)
        pictures.append(folder / name)
    X = np.random.default_rng(0).normal(size=(20, 3))
    page = explore_positions(
        X,
        labels=NAMES,
        covariances=np.tile(0.05 * np.eye(3), (20, 1, 1)),
        pictures=pictures,
        colour=["odd", "even"] * 10,
    )
    save(page, folder / "map.html")
    return folder / "map.html"


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_keys_go_from_object_to_object(browser, file, size, scheme):
    page = open_page(browser, size, color_scheme=scheme)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{file}")
    look(page, f"map-before-{size}-{scheme}")
    page.focus("#map")
    seen = set()
    for key in ["ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowDown"]:
        page.keyboard.press(key)
        seen.add(page.inner_text("#name"))
    assert len(seen) >= 3
    assert seen <= set(NAMES)
    assert page.is_visible("#picture")
    assert len(page.query_selector_all("#others li")) == 5
    page.check("#regions")
    page.select_option("#y", "2")
    page.keyboard.press("Escape")
    look(page, f"map-{size}-{scheme}")
    assert page.faults == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.context.close()


def test_search_and_mouse_find_an_object(browser, file):
    page = open_page(browser, "desk")
    page.goto(f"file://{file}")
    page.fill("#find", "THING 7")
    assert page.inner_text("#name") == "thing 7"
    page.fill("#find", "</scr")
    assert page.inner_text("#name") == NAMES[0], "a name is text, whatever it holds"
    x, y = page.evaluate("dots[12]")
    box = page.query_selector("#map").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert page.inner_text("#name") == NAMES[12]
    page.click("#in")
    near, far = page.evaluate("dots[12]"), (x, y)
    assert near != list(far), "zooming moves what is not in the middle"
    page.click("#whole")
    assert page.evaluate("dots[12]") == pytest.approx([x, y])
    assert page.faults == []
    page.context.close()


def test_names_leave_what_the_frame_says_alone(browser, tmp_path):
    X = np.array([[0.0, 0.0], [0.6, 0.0], [4.0, 3.0], [4.0, -3.0], [8.0, 0.0]])
    save(explore_positions(X, labels=["apple", *"bcde"]), tmp_path / "map.html")
    page = open_page(browser, "phone")
    page.goto(f"file://{tmp_path / 'map.html'}")
    written = page.evaluate("""() => {
        const found = {};
        text = (name, left, middle) => { found[name] = [left, middle]; };
        draw();
        return found;
    }""")
    up, tall = page.evaluate("[pen.measureText(axes[y]).width, canvas.clientHeight]")
    left, middle = written["apple"]
    assert left > 16 or abs(middle - tall / 2) > up / 2
    page.context.close()


def test_a_line_and_numbers(browser, tmp_path):
    X = np.arange(6.0)[:, None]
    save(explore_positions(X, labels=list("abcdef"), colour=X[:, 0]), tmp_path / "line.html")
    page = open_page(browser, "desk")
    page.goto(f"file://{tmp_path}/line.html")
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#name")
    page.keyboard.press("ArrowRight")
    assert ord(page.inner_text("#name")) == ord(first) + 1
    assert page.inner_text("#ends").split() == ["0", "5"]
    look(page, "map-line")
    assert page.faults == []
    page.context.close()
