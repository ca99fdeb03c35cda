"""What the tests in a real browser share: chromium, pages, stimuli, and how to look at a page."""

import io
import logging
import math
import os
import shutil
import socket
import struct
import threading
import wave
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import uvicorn

from nearer.study.actions import set_state
from nearer.study.app import create_app
from nearer.study.config import Config
from nearer.study.store import new_study
from nearer.study.web import Study

HUES = np.random.default_rng(3).random(20)
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
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
# Milliseconds; a loaded machine draws its first map slowly.
PATIENCE = 1000 * int(os.environ.get("NEARER_PATIENCE", "120"))
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 800}}
# Sizes and colour schemes; `make test` looks at two of the four pairs.
LOOKS = [
    ("phone", "light"),
    ("desk", "dark"),
    pytest.param("phone", "dark", marks=pytest.mark.slow),
    pytest.param("desk", "light", marks=pytest.mark.slow),
]
SHOWN_IN_DOCS = {
    "consent-phone",
    "question-phone",
    "chosen-light-phone",
    "question-desk",
    "overview-desk",
    "map-desk",
    "people-desk",
}


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


def tones(n: int, seconds: float = 0.15) -> list[tuple[str, bytes]]:
    made = []
    for k in range(n):
        out = io.BytesIO()
        with wave.open(out, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            samples = (
                int(8000 * math.sin(t * (0.2 + 0.1 * k))) for t in range(int(8000 * seconds))
            )
            sound.writeframes(b"".join(struct.pack("<h", s) for s in samples))
        made.append((f"tone-{k}.wav", out.getvalue()))
    return made


@contextmanager
def study(folder: Path, items, **settings: object):
    """Serve a study of these items; its address.

    A thread serves it, without processes of its own, which would take longer to start than most
    tests last. `test_study_browser.py` and `test_study_wire.py` are about the real server.
    """
    path = folder / "s.db"
    new_study(path, items, Config.of({"method": "random", "practice": 0, **settings}))
    opened = Study(path, work=False)
    opened.store.write(lambda ledger: set_state(ledger, "running"))
    config = uvicorn.Config(create_app(opened), http="h11", ws="none", log_config=None)
    server, logger, errors = uvicorn.Server(config), logging.getLogger("uvicorn"), Errors()
    logger.addHandler(errors)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()
            logger.removeHandler(errors)
    assert errors.texts == []


class Errors(logging.Handler):
    """Keeps what a server reports as wrong."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


def open_page(browser, size: str, **options: object):
    context = browser.new_context(viewport=SIZES[size], has_touch=size == "phone", **options)
    page = context.new_page()
    page.set_default_timeout(int(os.environ.get("NEARER_PATIENCE", "120")) * 1000)
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda m: m.type == "error" and page.faults.append(m.text))
    return page


def look(page, name: str) -> None:
    """Check a page with axe, and that it fits its width; keep a picture if asked to."""
    from axe_playwright_python.sync_playwright import Axe

    # A colour that is still changing on a loaded machine is none to judge a contrast by.
    page.evaluate(
        "Promise.allSettled(document.getAnimations().map((a) => a.finished)).then(() => 0)"
    )
    problems = Axe().run(page)
    assert problems.violations_count == 0, problems.generate_report()
    wide = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, f"{name} is {wide} pixels wider than the screen"
    if os.environ.get("NEARER_LOOK"):  # every page, to be looked at
        page.screenshot(path=Path(os.environ["NEARER_LOOK"]) / f"{name}.png", full_page=True)
    folder = os.environ.get("NEARER_SCREENSHOTS")
    if folder and name in SHOWN_IN_DOCS:
        page.screenshot(path=Path(folder) / f"study-{name}.png")


def shown(page, section: str) -> None:
    page.wait_for_selector(f"#{section}:not([hidden])")


def wait_for_question(page, number: int) -> None:
    page.wait_for_selector(f'#count:text-matches("^{number} of")')
    page.wait_for_selector("#things:not(.loading)")
    page.wait_for_timeout(360)  # a choice within 300 ms is taken for a slip


def choose(page, size: str, side: str) -> None:
    if size == "phone":
        page.tap(f"#{side}")
    else:
        page.keyboard.press({"left": "ArrowLeft", "right": "ArrowRight"}[side])


def begin(page, base: str) -> None:
    """From the link to the first question, without practice."""
    page.goto(base)
    page.click("#agree")
    page.click("#begin")
    wait_for_question(page, 1)
