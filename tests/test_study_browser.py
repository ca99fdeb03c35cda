"""A real browser walks through a study, as a participant and as a researcher.

Debian's chromium, headless, at the size of a phone and of a desk; every page is also checked for
accessibility by axe. ``NEARER_SCREENSHOTS=docs/images`` makes the pictures of the tutorial anew.
"""

import threading
from pathlib import Path

import numpy as np
import pytest
from browserkit import (
    HUES,
    LOOKS,
    begin,
    choose,
    look,
    needs_browser,
    open_page,
    shapes,
    shown,
    study,
    wait_for_question,
)

from benchmarks._study_people import answer_all, served
from nearer.study.config import Config
from nearer.study.items import read_files
from nearer.study.simulate import Crowd
from nearer.study.store import new_study

pytestmark = needs_browser

QUESTIONS = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "flowers.db"
    config = {
        "method": "random",
        "questions": QUESTIONS,
        "practice": 2,
        "title": "Which flowers are alike?",
        "show_names": True,  # simulated people read them
        "joins_per_minute": 0,
    }
    new_study(path, read_files(shapes(20)), Config.of(config))
    with served(path) as running:
        yield running
        assert running.said() == ""


@pytest.mark.parametrize("size", ["phone", pytest.param("desk", marks=pytest.mark.slow)])
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
        page.wait_for_selector("#things:not(.loading)")
        page.wait_for_timeout(360)
        same = page.get_attribute("#head img", "data-src") == page.get_attribute(
            "#left img", "data-src"
        )
        choose(page, size, "right" if same else "left")
        assert "Look again" in page.inner_text("#feedback")
        choose(page, size, "left" if same else "right")
        page.wait_for_timeout(1000)
    wait_for_question(page, 1)
    look(page, f"question-{size}")
    sizes = page.eval_on_selector_all(
        "#things img", "all => all.map((i) => `${i.width} ${i.height}`)"
    )
    assert len(set(sizes)) == 1, "all three are shown at the same size"
    assert page.eval_on_selector(
        "#undecided", "b => b.getBoundingClientRect().bottom <= innerHeight"
    )
    choose(page, size, "left")
    wait_for_question(page, 2)
    choose(page, size, "right")

    wait_for_question(page, 3)
    pair = page.get_attribute("#left img", "data-src"), page.get_attribute("#right img", "data-src")
    page.reload()
    wait_for_question(page, 3)
    assert pair == (
        page.get_attribute("#left img", "data-src"),
        page.get_attribute("#right img", "data-src"),
    )

    page.context.set_offline(True)
    choose(page, size, "left")
    page.wait_for_selector("#waiting:not([hidden])")
    assert "stored on this device" in page.inner_text("#waiting")
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


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_whole_way_by_keyboard_alone(browser, server, scheme):
    page = open_page(browser, "desk", color_scheme=scheme)
    page.goto(f"http://127.0.0.1:{server.port}/?participant=keys-{scheme}")
    for section in ("consent", "instructions"):
        shown(page, section)
        look(page, f"{section}-keys-{scheme}")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    for _ in range(2):
        page.wait_for_selector("#things:not(.loading)")
        page.wait_for_timeout(360)
        same = page.get_attribute("#head img", "data-src")
        right = same == page.get_attribute("#right img", "data-src")
        page.keyboard.press("ArrowRight" if right else "ArrowLeft")
        look(page, f"practice-keys-{scheme}")
        page.wait_for_timeout(1000)
    ways = [("ArrowLeft",), ("ArrowRight",), ("ArrowDown",), ("Tab", "Enter"), ("Tab", "Space")]
    for number, keys in enumerate([*ways, ("Tab", "Tab", "Tab", "Tab", "Enter")], start=1):
        wait_for_question(page, number)
        look(page, f"question-keys-{scheme}")
        for key in keys:
            page.keyboard.press(key)
    shown(page, "finished")
    look(page, f"finished-keys-{scheme}")
    assert page.faults == []
    page.context.close()


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_pages_on_which_it_does_not_go_on(browser, server, size, scheme):
    page = open_page(browser, size, color_scheme=scheme)
    base = f"http://127.0.0.1:{server.port}/"

    def but(**changes):
        def change(route):
            reply = route.fetch()
            route.fulfill(response=reply, json={**reply.json(), **changes})

        return change

    page.route("**/api/study", but(open=False))
    page.goto(base)
    shown(page, "paused")
    assert "not open" in page.inner_text("#paused-title")
    look(page, f"closed-{scheme}-{size}")
    page.unroute("**/api/study")

    page.route("**/api/join", but(stage="paused", trials=[]))
    page.goto(base)
    page.click("#agree")
    shown(page, "paused")
    assert "break" in page.inner_text("#paused-title")
    look(page, f"paused-{scheme}-{size}")

    page.route("**/api/me", lambda route: route.fulfill(status=410, json={"detail": "gone"}))
    page.goto(base)
    shown(page, "paused")
    assert "withdrew" in page.inner_text("#paused-title")
    look(page, f"withdrawn-{scheme}-{size}")
    page.goto(base + "nothing-here")
    look(page, f"missing-{scheme}-{size}")
    page.context.close()


def test_a_personal_link_and_an_early_end_are_shown(browser, server):
    page = open_page(browser, "phone")

    def extended(route, **more):
        reply = route.fetch()
        route.fulfill(response=reply, json={**reply.json(), **more})

    end = {"stage": "finished", "trials": [], "completion": {"code": "C0DE", "redirect": None}}
    page.route("**/api/join", lambda route: extended(route, resume="?resume=abc"))
    page.route("**/api/me", lambda route: extended(route, enough=True, **end))
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.click("#agree")
    shown(page, "instructions")
    link = f"http://127.0.0.1:{server.port}/?resume=abc"
    assert page.inner_text("#resume-link") == link
    look(page, "resume-phone")
    page.goto(link)  # another person's, for all that this browser knows
    shown(page, "consent")
    page.goto(link.partition("?")[0])
    shown(page, "finished")
    assert page.is_visible("#enough")
    look(page, "enough-phone")
    page.context.close()


@pytest.mark.parametrize(
    ("size", "scheme"), [("phone", "dark"), pytest.param("desk", "light", marks=pytest.mark.slow)]
)
def test_in_a_lab_the_next_person_starts_clean(browser, tmp_path, size, scheme):
    with study(tmp_path, read_files(shapes(6)), questions=1, lab=True) as base:
        page = open_page(browser, size, color_scheme=scheme)
        begin(page, base)
        page.reload()
        wait_for_question(page, 1)  # a refresh goes on
        beside = page.context.new_page()
        beside.goto(base)
        shown(beside, "consent")  # in another tab the next person begins
        beside.close()
        choose(page, size, "left")
        shown(page, "finished")
        code = page.inner_text("#code")
        look(page, f"lab-{scheme}-{size}")
        page.click("#next-person")
        shown(page, "consent")
        stores = "JSON.stringify([{...localStorage}, {...sessionStorage}])"
        assert page.evaluate(stores) == "[{},{}]"
        page.go_back()
        page.wait_for_timeout(500)
        assert code not in page.content(), "the way back does not lead to the last person"
        begin(page, base)
        choose(page, size, "right")
        shown(page, "finished")
        assert page.inner_text("#code") != code
        assert page.faults == []
        page.context.close()


@pytest.fixture(scope="module")
def researched(server):
    """The study with answers of simulated people, and an account."""
    colours = np.c_[np.cos(2 * np.pi * HUES), np.sin(2 * np.pi * HUES)]  # what they look at
    crowd = Crowd(colours, error=0.12, seconds=0.01, dropout=0.1)
    thread = threading.Thread(target=answer_all, args=(server.port, crowd, 6, 450))
    thread.start()  # the browser's own loop runs in this thread
    thread.join()
    return {"used": False}


@pytest.mark.parametrize("size", [pytest.param("phone", marks=pytest.mark.slow), "desk"])
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
    else:
        look(page, f"login-{size}")
        page.fill("#name", "ada")
        page.fill("#password", "a long password")
        page.click("text=Log in >> nth=-1")
    steer(page, size)
    read_the_map(page, size)
    see_a_line(page, size)
    judge_people(page, size)

    page.click("nav >> text=Items")
    page.wait_for_selector(".gallery img")
    look(page, f"items-{size}")
    page.click("nav >> text=Data")
    look(page, f"data-{size}")
    bar = "(bar => bar.scrollWidth <= bar.clientWidth)(document.querySelector('.bar nav'))"
    assert page.evaluate(bar), "no tab is cut off"
    with page.expect_download() as download:
        page.click("text=triplets.csv")
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("head,winner,loser")
    assert len(lines) > 300
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
    page.select_option("#setting", "contact")
    page.fill("#value", f"ada-{size}@example.org")
    page.click("#settings-form button")
    page.wait_for_selector(f"#changes li:first-child:has-text('ada-{size}@example.org')")
    page.select_option("#setting", "questions")
    page.fill("#value", "0")  # cannot be: it is said, and nothing changes
    page.click("#settings-form button")
    page.wait_for_selector("#setting-error:has-text('must be at least 1')")
    page.faults.clear()  # the browser reports the refusal, rightly
    assert "questions" not in page.inner_text("#changes")


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


def see_a_line(page, size: str) -> None:
    """A map of one dimension, on which no picture covers another."""

    def flattened(route):
        result = route.fetch().json()
        result["map"] |= {"dimension": 1, "positions": [p[:1] for p in result["map"]["positions"]]}
        route.fulfill(json=result)

    page.route("**/api/researcher/map", flattened)
    page.reload()
    page.wait_for_selector(".spot image")
    look(page, f"line-{size}")
    covered = """() => {
      const images = [...document.querySelectorAll('.spot image')];
      const boxes = images.map(x => x.getBoundingClientRect());
      return boxes.filter((a, i) => boxes.some((b, j) => i < j
        && Math.abs(a.x - b.x) < 0.5 * a.width && Math.abs(a.y - b.y) < 0.5 * a.height)).length;
    }"""
    assert page.evaluate(covered) == 0
    page.unroute("**/api/researcher/map")


def judge_people(page, size: str) -> None:
    page.click("nav >> text=People")
    page.wait_for_selector("#people tr")
    look(page, f"people-{size}")
    everybody = page.locator("#people tr").count()
    page.click(".sort[data-key=answered]")
    assert page.get_attribute("th:has(.sort[data-key=answered])", "aria-sort") == "ascending"
    column = "rows => rows.map((row) => Number(row.cells[2].textContent))"
    upwards = page.eval_on_selector_all("#people tr", column)
    assert upwards == sorted(upwards)
    page.click(".sort[data-key=answered]")
    downwards = page.eval_on_selector_all("#people tr", column)
    assert downwards == sorted(upwards, reverse=True)
    assert downwards != upwards
    someone = page.inner_text("#people tr:nth-child(3) th")
    page.fill("#search", someone[1:7].upper())
    page.wait_for_selector("#matches:has-text('1 of')")
    assert page.inner_text("#people th") == someone
    look(page, f"people-matches-{size}")
    page.fill("#search", "nobody-like-this")
    page.wait_for_selector("#matches:has-text('0 of')")
    page.fill("#search", "")
    assert page.locator("#people tr").count() >= everybody
    page.click("#people tr:first-child button >> nth=0")
    page.wait_for_selector("#people tr:first-child.out")
    page.click("#people tr:first-child button >> nth=0")
    page.wait_for_selector("#people tr:first-child:not(.out)")
