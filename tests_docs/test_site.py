"""The built site: whole, self-contained, searchable without a network, readable by everybody.

``make docs`` runs these after the build. ``NEARER_SCREENSHOTS=FOLDER`` keeps pictures of it.
"""

import os
import shutil
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[1] / "out" / "site"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1280, "height": 800}}
LOOKED_AT = [
    "index.html",
    "start.html",
    "gallery/index.html",
    "gallery/plot_world.html",
    "api.html",
    "reference/nearer.fit.html",
    "kernels.html",
    "benchmarks.html",
]
PATIENCE = 60_000  # milliseconds, on a loaded machine
LOADED = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src"}


class Page(HTMLParser):
    """What a page loads, where it links to, and what can be linked in it."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if attributes.get(LOADED.get(tag, "")):
            self.loads.append(attributes[LOADED[tag]])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])


@pytest.fixture(scope="module")
def pages():
    shown = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    result = {path: Page(path) for path in shown}
    assert len(result) > 100, "build the site first: make docs"
    return result


def test_nothing_is_loaded_from_elsewhere(pages):
    for path, page in pages.items():
        outside = [url for url in page.loads if urlsplit(url).netloc]
        assert not outside, f"{path}: {outside}"
    for path in SITE.rglob("*.css"):
        text = path.read_text("utf-8")
        assert "url(http" not in text, path
        assert "@import" not in text or "@import url(http" not in text, path


def test_every_link_leads_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                broken.append(f"{path.relative_to(SITE)}: {link}")
            known = {*pages[target].anchors, ""} if target in pages else {parts.fragment}
            if target.exists() and unquote(parts.fragment) not in known:
                broken.append(f"{path.relative_to(SITE)}: {link}: no such place")
    assert not broken


@contextmanager
def browser(size):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = program.new_context(viewport=SIZES[size], reduced_motion="reduce")
        asked = []
        context.route(
            lambda url: not url.startswith("file:"),
            lambda r: (asked.append(r.request.url), r.abort()),
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        yield page
        assert not asked, "the site asked for what is not part of it"
        program.close()


needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@needs_browser
def test_search_works_from_a_folder():
    with browser("desk") as page:
        page.goto(f"{(SITE / 'search.html').as_uri()}?q=lens")
        page.wait_for_selector("ul.search li a")
        assert "geometry" in page.inner_text("ul.search").lower()


@needs_browser
def test_search_for_the_odd_one_out_finds_the_guide():
    with browser("desk") as page:
        page.goto(f"{(SITE / 'search.html').as_uri()}?q=odd+one+out")
        page.wait_for_selector("ul.search li a")
        page.wait_for_timeout(1000)
        first = page.inner_text("ul.search").splitlines()[:6]
        assert "Which question should I ask?" in first


def test_signatures_name_types_as_they_are_written():
    text = (SITE / "reference" / "nearer.SOE.html").read_text("utf-8")
    assert "TypeAliasForwardRef" not in text


@needs_browser
@pytest.mark.parametrize("size", SIZES)
def test_everybody_can_read_it(size):
    from axe_playwright_python.sync_playwright import Axe

    keep = os.environ.get("NEARER_SCREENSHOTS")
    with browser(size) as page:
        for name in LOOKED_AT:
            page.goto((SITE / name).as_uri())
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= SIZES[size]["width"], f"{name} is {wide} wide on a {size}"
            if keep:
                shot = name.removesuffix(".html").replace("/", "-")
                page.screenshot(path=Path(keep) / f"{shot}-{size}.png")
            for mode in ("light", "dark"):
                page.evaluate(f"document.documentElement.dataset.theme = '{mode}'")
                page.wait_for_timeout(400)  # colours fade into each other
                result = Axe().run(page).response["violations"]
                violations = [(v["id"], [n["html"][:200] for n in v["nodes"]][:3]) for v in result]
                assert not violations, f"{name}, {mode}, {size}"
