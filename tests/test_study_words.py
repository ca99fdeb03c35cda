"""The words of the participant's pages: every language whole, and every page in it."""

import functools
import re
from importlib.resources import files

import pytest
import yaml
from browserkit import (
    choose,
    look,
    needs_browser,
    open_page,
    shapes,
    shown,
    study,
)

from nearer.errors import InvalidInput
from nearer.study.config import Config, read_words, shipped
from nearer.study.items import read_files

PAGES = files("nearer.study") / "pages"
ENGLISH = yaml.safe_load((PAGES / "words" / "en.yaml").read_text(encoding="utf-8"))


def made_up(direction: str = "rtl") -> dict[str, str]:
    """A language in which every word is Hebrew letters, with the same names to be filled in."""

    def said(text: str) -> str:
        parts = re.split(r"(\{\w+\})", text)
        return "".join(p if p.startswith("{") else re.sub(r"[A-Za-z]", "ש", p) for p in parts)

    return {**{key: said(text) for key, text in ENGLISH.items()}, "direction": direction}


@pytest.mark.parametrize("language", shipped())
def test_every_shipped_language_has_every_word(language):
    own = yaml.safe_load((PAGES / "words" / f"{language}.yaml").read_text(encoding="utf-8"))
    assert list(own) == [key for key in ENGLISH if key in own]
    assert read_words("en-GB", own).keys() == {*ENGLISH, "language"}


def test_every_word_is_used_and_every_used_word_is_there():
    pages = [
        (PAGES / name).read_text(encoding="utf-8") for name in ("participant.html", "error.html")
    ]
    text = " ".join(pages)
    code = (PAGES.parent / "config.py").read_text(encoding="utf-8")
    used = set(re.findall(r"words\.(\w+)", text)) | {"direction"}
    used |= {word for word in re.findall(r'"(\w+)"', code) if word in ENGLISH}
    for script in (PAGES / "static").iterdir():
        if script.name.endswith(".js"):
            code = script.read_text(encoding="utf-8")
            used |= {word for word in re.findall(r'"(\w+)"', code) if word in ENGLISH}
            assert set(re.findall(r'say\("(\w+)"', code)) <= ENGLISH.keys()
    assert used - {"language"} >= ENGLISH.keys()
    assert used - {"language"} <= ENGLISH.keys()


def test_the_page_itself_holds_no_words():
    text = (PAGES / "participant.html").read_text(encoding="utf-8")
    body = text[text.index("<body") :]
    said = re.sub(r"<[^>]*>|\{\{.*?\}\}", " ", body).split()
    assert said == []


@pytest.mark.parametrize(
    ("language", "own", "message"),
    [
        ("en", {"skpi": "x"}, "did you mean 'skip'"),
        ("en", {"skip": False}, "words.skip=False: must be a text"),
        ("en", {"skip": ""}, "words.skip='': must have at least 1"),
        ("en", {"length": "many"}, "must hold {n}"),
        ("en", {"skip": "{n}"}, "must hold nothing in braces"),
        ("en", {"skip": "{"}, "braces come in pairs"),
        ("xx", {"skip": "x"}, "'xx': is not shipped"),
        ("Klingon!", {}, "must be a language tag"),
        ("en", {"direction": "down"}, "must be ltr or rtl"),
    ],
)
def test_words_that_do_not_fit_are_refused(language, own, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Config.of({"language": language, "words": own})


def test_a_study_without_texts_speaks_its_language_and_keeps_what_it_said():
    config = Config.of({"language": "de", "title": "Blumen"})
    assert (config.title, config.question) == ("Blumen", read_words("de", {})["question"])
    assert Config.model_validate_json(config.model_dump_json()) == config


@needs_browser
@pytest.mark.parametrize(
    ("size", "language"),
    [
        ("desk", "de"),
        ("phone", "he"),
        pytest.param("phone", "de", marks=pytest.mark.slow),
        pytest.param("desk", "he", marks=pytest.mark.slow),
    ],
)
def test_every_page_in_another_language(browser, tmp_path, size, language):
    words = {} if language == "de" else made_up()
    settings = {"language": language, "words": words, "practice": 1, "questions": 2}
    seen = []
    with study(tmp_path, read_files(shapes(4)), **settings) as base:
        page = open_page(browser, size, color_scheme="dark" if size == "phone" else "light")
        page.goto(base + "?survey_code=someone")
        for section, button in (("consent", "#agree"), ("instructions", "#begin")):
            shown(page, section)
            look(page, f"{section}-{language}-{size}")
            seen.append(page.inner_text("body"))
            page.click(button)
        page.wait_for_selector("#things:not(.loading)")
        page.wait_for_timeout(360)
        left, right = (page.query_selector(f"#{side}").bounding_box() for side in ("left", "right"))
        assert left["x"] < right["x"], "left is left in every language"
        same = page.get_attribute("#head img", "data-src")
        first = page.get_attribute("#left img", "data-src")
        choose(page, size, "left" if same == first else "right")
        page.wait_for_timeout(1900)
        for number in (1, 2):
            page.wait_for_selector(f'#count:text-matches("{number}")')
            page.wait_for_selector("#things:not(.loading)")
            page.wait_for_timeout(360)
            look(page, f"question-{language}-{size}")
            seen.append(page.inner_text("body"))
            choose(page, size, "left")
        shown(page, "finished")
        look(page, f"finished-{language}-{size}")
        seen.append(page.inner_text("body").replace(page.inner_text("#code"), ""))
        on_dialog = []
        page.on("dialog", lambda d: on_dialog.append(d.message) or d.accept())
        page.click("#withdraw")
        page.wait_for_selector("#withdrawn:not([hidden])")
        seen += [*on_dialog, page.inner_text("#withdrawn")]
        assert not page.is_visible("#stored"), "it does not say that deleted answers are stored"
        assert page.faults == []
        page.goto(base + "nothing-here")
        look(page, f"missing-{language}-{size}")
        seen.append(page.inner_text("body"))
        page.faults.clear()  # the browser reports the missing page, rightly
        assert page.get_attribute("html", "dir") == ("ltr" if language == "de" else "rtl")
        assert page.faults == []
        page.context.close()
    said = " ".join(seen)
    if language == "he":
        assert not re.findall(r"[A-Za-z]{2,}", said), said
    else:
        assert not re.findall(r"\b(the|you|answers?|of)\b", said), said
        assert "von" in said


def refused(status, route):
    route.fulfill(status=status, json={"detail": "in English"})


@needs_browser
def test_a_study_that_cannot_be_joined_says_so_in_its_language(browser, tmp_path):
    with study(tmp_path, read_files(shapes(4)), language="de") as base:
        page = open_page(browser, "phone")
        for status, said in (
            (403, "refused_link"),
            (409, "refused_taken"),
            (429, "refused_busy"),
            (500, "refused"),
        ):
            refuse = functools.partial(refused, status)
            page.route("**/api/join", refuse)
            page.goto(base + "?survey_code=someone")
            page.click("#agree")
            page.wait_for_selector("#consent-error:not([hidden])")
            assert page.inner_text("#consent-error") == read_words("de", {})[said]
            page.unroute("**/api/join")
        look(page, "refused-phone")
        page.context.close()
