"""Questions with more than two choices, on the page: as the server poses them, in a browser."""

import hashlib
import json
from contextlib import contextmanager

import pytest
from browserkit import (
    LOOKS,
    SIZES,
    look,
    needs_browser,
    open_page,
    shapes,
    study,
    tones,
    wait_for_question,
)
from test_study_words import made_up

from nearer.study.items import read_files
from nearer.study.store import connect

pytestmark = needs_browser


def things(files, kind="image"):
    """Files as the page's data names them."""
    return [
        {
            "id": 100 + k,
            "kind": kind,
            "name": "",
            "text": "",
            "alt": "",
            "src": f"/media/{hashlib.sha256(content).hexdigest()}",
        }
        for k, (_, content) in enumerate(files)
    ]


def words(n, length=10):
    texts = [f"thing {k} " + "and so on " * length for k in range(n)]
    return [
        {"id": 100 + k, "kind": "text", "name": "", "text": t[: length + 7], "alt": "", "src": None}
        for k, t in enumerate(texts)
    ]


def posed(task, seen, choose=1):
    head, *rest = seen if task != "odd" else [None, *seen]
    return {"task": task, "head": head, "shown": rest, "choose": choose}


@contextmanager
def asked(browser, folder, size, trials, files=(), **settings):
    """A page to which these questions are put; it and the answers it sends."""
    sent: list[dict] = []
    numbered = [{"lease": k + 1, "number": k + 1, **t} for k, t in enumerate(trials)]

    def standing(done):
        left = [t for t in numbered if t["lease"] not in {a["lease"] for a in sent}]
        stage = "trials" if left else "finished"
        reply = {"stage": stage, "answered": len(sent), "questions": len(trials)}
        ended = None if left else {"code": "C0DE", "redirect": None}
        return {**reply, "trials": left[:2], "completion": ended, "stored": done, "refused": {}}

    def answers(route):
        new = json.loads(route.request.post_data)["answers"]
        sent.extend(new)
        route.fulfill(json=standing([a["lease"] for a in new]))

    options = {key: settings.pop(key) for key in ("color_scheme",) if key in settings}
    with study(folder, read_files(files or shapes(3)), **settings) as base:
        page = open_page(browser, size, **options)
        page.route("**/api/ready", lambda route: route.fulfill(json=standing([])))
        page.route("**/api/answers", answers)
        page.goto(base)
        page.click("#agree")
        page.click("#begin")
        page.wait_for_selector("#things:not(.loading)")
        page.wait_for_timeout(360)
        yield page, sent
        assert page.faults == []
        page.context.close()


@pytest.mark.parametrize(
    ("task", "things_shown", "choose", "asked_so"),
    [
        ("choose", 8, 2, "Which 2 are most like this one?"),
        ("rank", 4, 2, "Which 2 are most like this one? Choose the best one first."),
        ("odd", 3, 1, "Which one is the odd one out?"),
    ],
)
def test_a_study_with_a_task_from_end_to_end(
    browser, tmp_path, task, things_shown, choose, asked_so
):
    """Not posed by a stub, as below, but by the server; and read out of the file."""
    settings = {"task": task, "things": things_shown, "choose": choose, "questions": 3}
    items = read_files(shapes(12))
    with study(tmp_path, items, method="random", **settings) as base:
        page = open_page(browser, "phone")
        page.goto(base)
        page.click("#agree")
        page.wait_for_selector("#instructions:not([hidden])")
        said = page.inner_text("#instructions-text")
        assert ("least like" if task == "odd" else f"the {choose}") in said
        page.click("#begin")
        for number in (1, 2, 3):
            wait_for_question(page, number)
            assert page.inner_text("#ask") == asked_so
            assert len(page.query_selector_all("[data-place]")) == things_shown
            for k in range(choose):
                page.click(f"#choice-{things_shown - 1 - k}")
            if choose > 1:
                page.click("#next")
        page.wait_for_selector("#finished:not([hidden])")
        assert page.faults == []
        page.context.close()
    db = connect(tmp_path / "s.db", read_only=True)
    rows = db.execute(
        "SELECT a.chosen, l.shown FROM answers a JOIN leases l ON l.id = a.lease"
    ).fetchall()
    db.close()
    assert len(rows) == 3
    for chosen, on_screen in rows:
        picked = json.loads(on_screen)[::-1][:choose]
        output = json.loads(chosen)
        assert (output if task == "rank" else sorted(output)) == (
            picked if task == "rank" else sorted(picked)
        )


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_choose_two_of_eight(browser, tmp_path, size, scheme):
    files = shapes(9)
    seen = things(files)
    trials = [posed("choose", seen, 2), posed("choose", seen[::-1], 2)]
    with asked(browser, tmp_path, size, trials, files, color_scheme=scheme) as (page, sent):
        assert page.inner_text("#ask") == "Which 2 are most like this one?"
        look(page, f"choose-{scheme}-{size}")
        sizes = page.eval_on_selector_all("#things img", "all => all.map((i) => i.width)")
        assert len(sizes) == 9
        assert len(set(sizes)) == 1, "all are shown at the same size"
        assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "it all fits"
        assert page.get_attribute("#next", "aria-disabled") == "true"
        page.click("#next", force=True)
        assert sent == []
        for k in (5, 1, 5, 6):  # the first is taken back
            page.click(f"#choice-{k}")
        assert page.inner_text("#hint") == "2 of 2 chosen"
        page.click("#choice-0")
        assert "take one back" in page.inner_text("#hint")
        pressed = page.eval_on_selector_all(
            "[aria-pressed=true]", "all => all.map((b) => b.id).sort()"
        )
        assert pressed == ["choice-1", "choice-6"]
        look(page, f"chosen-{scheme}-{size}")
        page.click("#next")
        wait_for_question(page, 2)
        assert page.query_selector(".chosen, [aria-pressed=true]") is None
        (answer,) = sent
        assert answer.pop("response_ms") > 300
        assert answer == {"lease": 1, "choice": "chosen", "chosen": [102, 107]}
        page.click("#undecided")
        page.wait_for_selector("#finished:not([hidden])")
        assert sent[1]["choice"] == "undecided"


def test_ranks_are_shown_and_sent_best_first(browser, tmp_path):
    with asked(browser, tmp_path, "desk", [posed("rank", words(5), 3)]) as (page, sent):
        assert "best one first" in page.inner_text("#ask")
        for k in (3, 0, 2):
            page.click(f"#choice-{k}")
        marks = page.eval_on_selector_all(".chosen", "all => all.map((e) => e.dataset.mark)")
        assert marks == ["2", "3", "1"]
        look(page, "rank-desk")
        page.click("#next")
        page.wait_for_selector("#finished:not([hidden])")
        assert sent[0]["chosen"] == [104, 101, 103]


@pytest.mark.parametrize("size", SIZES)
def test_the_odd_one_out(browser, tmp_path, size):
    files = shapes(3)
    with asked(browser, tmp_path, size, [posed("odd", things(files))], files) as (page, sent):
        assert page.inner_text("#ask") == "Which one is the odd one out?"
        assert page.query_selector("#head") is None
        assert page.get_attribute("#choice-1 img", "alt") == "number 2"
        look(page, f"odd-{size}")
        page.click("#choice-1")
        page.wait_for_selector("#finished:not([hidden])")
        assert sent[0]["chosen"] == [101]


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_a_grid_by_keyboard_alone(browser, tmp_path, direction):
    trials = [posed("choose", words(9), 2), posed("choose", words(9), 1)]
    settings = {} if direction == "ltr" else {"language": "he", "words": made_up()}
    with asked(browser, tmp_path, "desk", trials, **settings) as (page, sent):
        columns = int(page.evaluate("getComputedStyle(things).getPropertyValue('--columns')"))

        def spot():
            return page.evaluate("document.activeElement.getBoundingClientRect().toJSON()")

        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "choice-0"
        here = spot()
        page.keyboard.press("ArrowRight" if direction == "ltr" else "ArrowLeft")
        assert page.evaluate("document.activeElement.id") == "choice-1"
        assert (spot()["x"] > here["x"]) == (direction == "ltr"), "the key points where it goes"
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.id") == f"choice-{1 + columns}"
        page.keyboard.press("Enter")
        while page.evaluate("document.activeElement.id") != "next":
            page.keyboard.press("Tab")
        look(page, f"grid-keys-{direction}")
        page.keyboard.press("Enter")
        page.wait_for_selector('#count:text-matches("^2")')
        page.wait_for_timeout(360)
        page.keyboard.press("4")
        page.wait_for_selector("#finished:not([hidden])")
        assert [a["chosen"] for a in sent] == [[102, 102 + columns], [104]]


@pytest.mark.parametrize(
    ("size", "length"),
    [
        ("phone", 150),
        ("desk", 5),
        pytest.param("phone", 5, marks=pytest.mark.slow),
        pytest.param("desk", 150, marks=pytest.mark.slow),
    ],
)
def test_texts_in_a_grid_are_not_cut(browser, tmp_path, size, length):
    with asked(browser, tmp_path, size, [posed("choose", words(13, length), 4)]) as (page, _):
        look(page, f"grid-texts-{length}-{size}")
        cut = page.eval_on_selector_all(
            "#things .text",
            "all => all.filter((e) => e.scrollHeight > e.clientHeight + 1 ||"
            " e.scrollWidth > e.clientWidth + 1).length",
        )
        assert cut == 0


def test_sounds_in_a_grid_are_played_first(browser, tmp_path):
    files = tones(4)
    trial = posed("choose", things(files, "audio"), 2)
    with asked(browser, tmp_path, "phone", [trial], files) as (page, sent):
        look(page, "grid-sounds-phone")
        assert page.inner_text("#hint").endswith("0 of 4 played.")
        page.click("#choice-0 button", force=True)
        assert page.query_selector("[aria-pressed=true]") is None
        page.evaluate("for (const p of document.querySelectorAll('audio')) p.play()")
        page.wait_for_selector("#choice-0 button[aria-disabled=false]")
        page.click("#choice-0 button")
        page.click("#choice-2 button")
        page.click("#next")
        page.wait_for_selector("#finished:not([hidden])")
        assert sent[0]["chosen"] == [101, 103]
