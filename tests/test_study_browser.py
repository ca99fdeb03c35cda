"""A real browser walks through a study, as a participant and as a researcher.

Debian's chromium, headless, at the size of a phone and of a desk; every page is also checked for
accessibility by axe. ``NEARER_SCREENSHOTS=docs/images`` makes the pictures of the tutorial anew.
"""

import io
import math
import os
import shutil
import struct
import threading
import wave
from pathlib import Path

import numpy as np
import pytest

from nearer.study.config import Config
from nearer.study.create import new_study
from nearer.study.imports import read_files
from nearer.study.simulate import Crowd, answer_all, served

HUES = np.random.default_rng(3).random(20)
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium on this machine: `apt-get install chromium` as root"
)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 800}}
QUESTIONS = 6
SHOWN_IN_DOCS = {
    "consent-phone",
    "question-phone",
    "question-desk",
    "overview-desk",
    "map-desk",
    "people-desk",
}


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield made
        made.close()


def shapes(n: int) -> list[tuple[str, bytes]]:
    """Pictures of flowers that differ in colour, size and number of petals."""
    import colorsys

    from PIL import Image, ImageDraw

    made = []
    for k, hue in enumerate(HUES[:n]):
        size, petals = (0.55, 0.75, 0.95)[k % 3], 3 + k % 4
        image = Image.new("RGB", (320, 320), (251, 250, 247))
        colour = tuple(int(255 * v) for v in colorsys.hsv_to_rgb(hue, 0.55, 0.75))
        turn = [2 * math.pi * t / 240 for t in range(240)]
        reach = [118 * size * (1 + 0.25 * math.cos(petals * t)) for t in turn]
        outline = [
            (160 + r * math.cos(t), 160 + r * math.sin(t)) for r, t in zip(reach, turn, strict=True)
        ]
        ImageDraw.Draw(image).polygon(outline, fill=colour)
        out = io.BytesIO()
        image.save(out, "PNG")
        made.append((f"flower-{k:02d}.png", out.getvalue()))
    return made


def tones(n: int) -> list[tuple[str, bytes]]:
    made = []
    for k in range(n):
        out = io.BytesIO()
        with wave.open(out, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            samples = (int(8000 * math.sin(t * (0.2 + 0.1 * k))) for t in range(1200))
            sound.writeframes(b"".join(struct.pack("<h", s) for s in samples))
        made.append((f"tone-{k}.wav", out.getvalue()))
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "flowers.db"
    config = {
        "method": "random",
        "questions": QUESTIONS,
        "practice": 2,
        "title": "Which flowers are alike?",
    }
    new_study(path, read_files(shapes(20)), Config.of(config))
    with served(path) as running:
        yield running
        assert running.said() == ""


def open_page(browser, size: str):
    context = browser.new_context(viewport=SIZES[size], has_touch=size == "phone")
    page = context.new_page()
    page.set_default_timeout(120_000)  # a loaded machine draws its first map slowly
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda m: m.type == "error" and page.faults.append(m.text))
    return page


def look(page, name: str) -> None:
    """Check a page with axe, and that it fits its width; keep a picture if asked to."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, f"{name} is {wide} pixels wider than the screen"
    folder = os.environ.get("NEARER_SCREENSHOTS")
    if folder and name in SHOWN_IN_DOCS:
        page.screenshot(path=Path(folder) / f"study-{name}.png")


def shown(page, section: str) -> None:
    page.wait_for_selector(f"#{section}:not([hidden])")


def wait_for_question(page, number: int) -> None:
    page.wait_for_selector(f'#count:text-matches("^{number} of")')
    page.wait_for_selector("#triad:not(.loading)")
    page.wait_for_timeout(220)  # a choice within 150 ms is taken for a slip


def choose(page, size: str, side: str) -> None:
    if size == "phone":
        page.tap(f"#{side}")
    else:
        page.keyboard.press({"left": "ArrowLeft", "right": "ArrowRight"}[side])


@pytest.mark.parametrize("size", SIZES)
def test_a_participant_from_consent_to_the_code(browser, server, size):
    page = open_page(browser, size)
    page.goto(f"http://127.0.0.1:{server.port}/?PROLIFIC_PID=browser-{size}")
    shown(page, "consent")
    look(page, f"consent-{size}")
    page.click("#agree")
    shown(page, "instructions")
    look(page, f"instructions-{size}")
    page.click("#begin")
    for _ in range(2):
        page.wait_for_selector("#triad:not(.loading)")
        page.wait_for_timeout(220)
        same = page.get_attribute("#head img", "src") == page.get_attribute("#left img", "src")
        choose(page, size, "right" if same else "left")
        assert "Look again" in page.inner_text("#feedback")
        choose(page, size, "left" if same else "right")
        page.wait_for_timeout(1000)
    wait_for_question(page, 1)
    look(page, f"question-{size}")
    sizes = page.eval_on_selector_all(
        "#triad img", "all => all.map((i) => `${i.width} ${i.height}`)"
    )
    assert len(set(sizes)) == 1, "all three are shown at the same size"
    assert page.eval_on_selector(
        "#undecided", "b => b.getBoundingClientRect().bottom <= innerHeight"
    )
    choose(page, size, "left")
    wait_for_question(page, 2)
    choose(page, size, "right")

    wait_for_question(page, 3)
    pair = page.get_attribute("#left img", "src"), page.get_attribute("#right img", "src")
    page.reload()
    wait_for_question(page, 3)
    assert pair == (page.get_attribute("#left img", "src"), page.get_attribute("#right img", "src"))

    page.context.set_offline(True)
    choose(page, size, "left")
    page.wait_for_selector("#waiting:not([hidden])")
    assert "kept on this device" in page.inner_text("#waiting")
    page.context.set_offline(False)
    page.wait_for_selector("#waiting", state="hidden")
    page.faults.clear()  # the browser reports the lost connection as an error, rightly

    wait_for_question(page, 4)
    page.click("#undecided")
    wait_for_question(page, 5)
    page.click("#skip")
    wait_for_question(page, 6)
    choose(page, size, "left")
    shown(page, "finished")
    assert len(page.inner_text("#code")) == 10
    look(page, f"finished-{size}")
    page.reload()
    shown(page, "finished")
    assert page.faults == []
    page.context.close()


@pytest.fixture(scope="module")
def researched(server):
    """The study with answers of simulated people, and an account."""
    colours = np.c_[np.cos(2 * np.pi * HUES), np.sin(2 * np.pi * HUES)]  # what they look at
    crowd = Crowd(colours, error=0.12, seconds=0.01, dropout=0.1, undecided=0.02)
    thread = threading.Thread(target=answer_all, args=(server.port, crowd, 6, 900))
    thread.start()  # the browser's own loop runs in this thread
    thread.join()
    return {"used": False}


@pytest.mark.parametrize("size", SIZES)
def test_a_researcher_from_set_up_to_export(browser, server, researched, size):
    page = open_page(browser, size)
    base = f"http://127.0.0.1:{server.port}"
    page.goto(f"{base}/dashboard")
    assert page.url.endswith("/login")
    if not researched["used"]:
        researched["used"] = True
        page.goto(server.setup)
        look(page, f"setup-{size}")
        page.fill("#name", "ada")
        page.fill("#password", "a long password")
        page.click("button")
    look(page, f"login-{size}")
    page.fill("#name", "ada")
    page.fill("#password", "a long password")
    page.click("text=Log in >> nth=-1")
    steer(page, size)
    read_the_map(page, size)
    judge_people(page, size)

    page.click("nav >> text=Items")
    page.wait_for_selector(".gallery img")
    look(page, f"items-{size}")
    page.click("nav >> text=Data")
    look(page, f"data-{size}")
    with page.expect_download() as download:
        page.click("text=triplets.csv")
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("head,winner,loser")
    assert len(lines) > 300
    page.goto(f"{base}/docs")
    look(page, f"api-{size}")
    assert page.faults == []
    page.context.close()


def steer(page, size: str) -> None:
    page.wait_for_selector("#cards .card")
    look(page, f"overview-{size}")
    page.click("#pause")
    page.wait_for_selector("#state.paused")
    page.click("#start")
    page.wait_for_selector("#state.running")
    page.fill("#quota", "5000")
    page.click("#quota-form button")
    page.wait_for_selector("#remaining:has-text('still wanted')")


def read_the_map(page, size: str) -> None:
    page.click("nav >> text=Map")
    page.wait_for_selector("#map .spot")
    page.wait_for_selector("#chart .dot")
    page.click("#zoom-in")
    page.click("#zoom-reset")
    page.hover("#map .spot >> nth=3", force=True)
    page.wait_for_selector("#peek:not([hidden])")
    assert "nearest:" in page.inner_text("#peek")
    look(page, f"map-{size}")


def judge_people(page, size: str) -> None:
    page.click("nav >> text=People")
    page.wait_for_selector("#people tr")
    look(page, f"people-{size}")
    page.click("#people tr:first-child button >> nth=0")
    page.wait_for_selector("#people tr:first-child.out")
    page.click("#people tr:first-child button >> nth=0")
    page.wait_for_selector("#people tr:first-child:not(.out)")


def test_sound_must_be_played_before_a_choice(browser, tmp_path):
    new_study(
        tmp_path / "s.db",
        read_files(tones(4)),
        Config.of({"method": "random", "questions": 2, "practice": 0}),
    )
    with served(tmp_path / "s.db") as server:
        page = open_page(browser, "desk")
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.click("#agree")
        page.click("#begin")
        wait_for_question(page, 1)
        assert page.is_disabled("#left button")
        assert page.is_disabled("#right button")
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("#count").startswith("1 of")
        page.evaluate("for (const a of document.querySelectorAll('audio')) a.play()")
        page.wait_for_selector("#left button:not([disabled])")
        page.click("#left button")
        wait_for_question(page, 2)
        assert page.faults == []
        page.context.close()


def test_scripts_in_labels_are_shown_as_text(browser, tmp_path):
    from nearer.study.imports import Item

    evil = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    items = [Item(f"{evil}{k}", "text", f"{evil}{k}") for k in range(4)]
    new_study(
        tmp_path / "s.db",
        items,
        Config.of({"method": "random", "practice": 0, "title": f"T{evil}"}),
    )
    with served(tmp_path / "s.db") as server:
        page = open_page(browser, "phone")
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.click("#agree")
        page.click("#begin")
        wait_for_question(page, 1)
        assert "<script>" in page.inner_text("#left")
        assert page.title() != "hacked"
        assert page.query_selector("#left img") is None
        page.context.close()
