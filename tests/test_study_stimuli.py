"""What a stimulus looks like to people, seen in a real browser."""

import io

import pytest
from browserkit import (
    SIZES,
    begin,
    choose,
    look,
    needs_browser,
    open_page,
    shapes,
    study,
    tones,
    wait_for_question,
)
from studykit import picture

from nearer.errors import InvalidInput
from nearer.study.config import Config
from nearer.study.items import Item, read_files

pytestmark = needs_browser

LENGTHS = (5, 78, 260, 1_900)


def texts(length: int) -> list[Item]:
    written = [(f"item {k} " + "compares well with others " * 80)[:length] for k in range(5)]
    named = [f"{text[:-2]} {k}" for k, text in enumerate(written)]
    return [Item(text, "text", text) for text in named]


def clear_pictures() -> list[Item]:
    """Pictures that are transparent but for one square."""
    from PIL import Image

    files = []
    for k in range(4):
        image = Image.new("RGBA", (60, 60), (0, 0, 0, 0))
        image.paste((40 * k, 90, 160, 255), (20, 20, 40, 40))
        out = io.BytesIO()
        image.save(out, "PNG")
        files.append((f"secret_liar_{k}.png", out.getvalue()))
    return read_files(files)


def pixel(page, selector: str, dx: float, dy: float) -> tuple[int, int, int]:
    """The colour that is seen at a place of an element."""
    from PIL import Image

    box = page.eval_on_selector(selector, "e => e.getBoundingClientRect().toJSON()")
    with Image.open(io.BytesIO(page.screenshot())) as image:
        seen = image.convert("RGB").getpixel(
            (int(box["x"] + dx * box["width"]), int(box["y"] + dy * box["height"]))
        )
    assert isinstance(seen, tuple)
    return seen


@pytest.mark.parametrize(
    ("size", "length"),
    [
        pytest.param(size, length, marks=[pytest.mark.slow] if length in (5, 260) else [])
        for size in SIZES
        for length in LENGTHS
    ],
)
def test_no_text_is_cut(browser, tmp_path, size, length):
    with study(tmp_path, texts(length)) as base:
        page = open_page(browser, size)
        begin(page, base)
        look(page, f"text-{length}-{size}")
        for place in ("#head", "#left", "#right"):
            cut = page.eval_on_selector(
                f"{place} .text",
                "e => [e, e.parentElement].some((x) => x.scrollHeight > x.clientHeight + 1 ||"
                " x.scrollWidth > x.clientWidth + 1)",
            )
            assert not cut, f"{place} is cut"
        written = page.eval_on_selector_all(
            "#things .text", "all => all.map((e) => getComputedStyle(e).fontSize + e.clientWidth)"
        )
        assert len(set(written)) == 1, "all three are written alike"
        assert page.faults == []
        page.context.close()


def test_transparency_looks_the_same_in_the_dark_and_for_head_and_choices(browser, tmp_path):
    seen = set()
    with study(tmp_path, clear_pictures(), surround="#4080c0") as base:
        for scheme in ("light", "dark"):
            page = open_page(browser, "desk", color_scheme=scheme)
            begin(page, base)
            look(page, f"surround-{scheme}")
            for place in ("#head", "#left", "#right"):
                assert pixel(page, f"{place} img", 0.5, 0.5) != (0x40, 0x80, 0xC0)
                seen.add(pixel(page, f"{place} img", 0.1, 0.1))
                seen.add(pixel(page, place, 0.5, 0.02))
            page.context.close()
    assert seen == {(0x40, 0x80, 0xC0)}


def test_the_surround_is_recorded_and_must_be_a_colour():
    assert '"surround":"#ffffff"' in Config().model_dump_json()
    with pytest.raises(InvalidInput, match="surround='grey': must be a colour like #808080"):
        Config.of({"surround": "grey"})


def test_the_next_question_lights_no_side(browser, tmp_path):
    look_of = """e => ['borderColor', 'outlineStyle', 'backgroundColor']
        .map((p) => getComputedStyle(e)[p]).join()"""
    with study(tmp_path, read_files(shapes(6)), questions=6) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        page.hover("#left")  # the pointer stays where the answer is given
        page.wait_for_timeout(200)
        lit = page.eval_on_selector("#left", look_of)
        plain = page.eval_on_selector("#right", look_of)
        assert lit != plain, "a side under a moving pointer is lit"
        for number, give in (
            (2, lambda: page.mouse.down() or page.mouse.up()),
            (3, lambda: page.focus("#left") or page.keyboard.press("Enter")),
            (4, lambda: page.keyboard.press("ArrowLeft")),
        ):
            give()
            wait_for_question(page, number)
            for side in ("#left", "#right"):
                assert page.eval_on_selector(side, look_of) == plain, f"{side} of {number}"
            assert page.evaluate("document.activeElement.id") == "ask"
        page.context.close()


def test_every_kind_of_picture_is_shown(browser, tmp_path):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'><circle r='9'/></svg>"
    kinds = {"avif": "AVIF", "tif": "TIFF", "webp": "WEBP"}
    files = [(f"{suffix}.{suffix}", picture(kind=kind)) for suffix, kind in kinds.items()]
    with study(tmp_path, read_files([*files, ("a.svg", svg)]), questions=8) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        seen = set()
        for number in range(2, 9):
            for src, width in page.eval_on_selector_all(
                "button.thing img", "all => all.map((i) => [i.dataset.src, i.naturalWidth])"
            ):
                assert width > 0
                seen.add(src)
            choose(page, "desk", "left")
            wait_for_question(page, number)
        assert len(seen) == 4
        assert page.faults == []
        page.context.close()


@pytest.mark.parametrize("named", [False, True])
def test_names_of_files_are_sent_only_where_the_researcher_says_so(browser, tmp_path, named):
    with study(tmp_path, clear_pictures(), show_names=named) as base:
        page = open_page(browser, "phone")
        replies = []
        page.on("response", lambda r: "/api/" in r.url and replies.append(r.text()))
        begin(page, base)
        everything = " ".join(replies) + page.content()
        assert ("liar" in everything) == named
        if not named:
            alts = page.eval_on_selector_all("#things img", "all => all.map((i) => i.alt)")
            assert alts == ["the one at the top", "the one on the left", "the one on the right"]
        page.context.close()


def test_a_description_is_read_aloud(browser, tmp_path):
    items = [
        Item(i.name, i.kind, "", f"a square {k}", i.mime, i.content)
        for k, i in enumerate(clear_pictures())
    ]
    with study(tmp_path, items) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        assert "a square" in page.get_attribute("#left img", "alt")
        assert "a square" in page.inner_text("#spoken")
        page.context.close()


def test_every_file_is_fetched_once(browser, tmp_path):
    with study(tmp_path, read_files([*tones(2), *shapes(2)]), questions=4, must_play=False) as base:
        page = open_page(browser, "phone")
        asked = []
        page.on("request", lambda r: "/media/" in r.url and asked.append(r.url))
        begin(page, base)
        for number in (2, 3, 4):
            for player in page.query_selector_all("audio"):
                player.evaluate("p => p.play()")
            page.click("#left button, button#left")
            wait_for_question(page, number)
        served = page.evaluate(
            "performance.getEntriesByType('resource').filter((e) => e.name.includes('/media/')"
            " && e.transferSize > 0).map((e) => e.name)"
        )
        assert len(served) == len(set(served)) == len(set(asked))
        assert len(served) <= 8, "as the query and as a choice, under two addresses"
        page.context.close()


def test_a_sound_must_be_played_to_the_end_and_the_page_says_so(browser, tmp_path):
    with study(tmp_path, read_files(tones(4, seconds=1.0)), questions=2) as base:
        page = open_page(browser, "desk")
        begin(page, base)
        look(page, "sound-desk")
        button = "#left button"
        assert page.get_attribute(button, "aria-disabled") == "true"
        hint = page.inner_text("#" + page.get_attribute(button, "aria-describedby"))
        assert hint == "Play everything to the end before you choose: 0 of 3 played."
        page.click(button, force=True)
        page.keyboard.press("ArrowLeft")

        page.evaluate(  # skip to the end
            """() => Promise.all([...document.querySelectorAll('audio')].map((p) => {
              const ended = new Promise((done) => p.addEventListener('ended', done));
              p.currentTime = 0.9 * p.duration;
              return p.play().then(() => ended);
            }))"""
        )
        page.wait_for_timeout(200)
        assert page.get_attribute(button, "aria-disabled") == "true", "seeking is not listening"
        speeds = page.eval_on_selector_all(
            "audio", "all => all.map((p) => { p.playbackRate = 8; return p; }).length"
        )
        assert speeds == 3
        page.wait_for_function(
            "[...document.querySelectorAll('audio')].every((p) => p.playbackRate === 1)"
        )
        assert page.inner_text("#count").startswith("1 of")

        page.evaluate(
            "for (const p of document.querySelectorAll('audio')) { p.currentTime = 0; p.play(); }"
        )
        page.wait_for_selector(f"{button}[aria-disabled=false]")
        assert page.inner_text("#hint") == ""
        page.click(button)
        wait_for_question(page, 2)
        assert page.faults == []
        page.context.close()


def test_scripts_in_labels_are_shown_as_text(browser, tmp_path):
    evil = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    items = [Item(f"{evil}{k}", "text", f"{evil}{k}") for k in range(4)]
    long_ones = dict.fromkeys(("title", "consent", "instructions"), f"T{evil}")
    with study(tmp_path, items, **long_ones) as base:
        page = open_page(browser, "phone")
        page.goto(base)
        page.wait_for_selector("#consent:not([hidden])")
        assert "<script>" in page.inner_text("#consent-text")
        begin(page, base)
        assert "<script>" in page.inner_text("#left")
        assert page.title() != "hacked"
        assert page.query_selector("main img, main script") is None
        choose(page, "phone", "left")
        page.context.close()
