import io
import random
import time
import zipfile

import pytest
from studykit import picture, zipped

from nearer.errors import InvalidInput
from nearer.study.config import Config
from nearer.study.items import read_files, read_items, read_zip


def test_a_folder_of_pictures(tmp_path):
    for k in range(3):
        (tmp_path / f"red_{k}.png").write_bytes(picture((k, 0, 0)))
    (tmp_path / "notes.txt").write_text("not an item")
    (tmp_path / ".hidden.png").write_bytes(b"not looked at")
    items, settings, *_ = read_items(tmp_path)
    assert [(i.name, i.kind, i.alt) for i in items] == [(f"red_{k}", "image", "") for k in range(3)]
    assert settings == {}


def test_a_zip_of_pictures(tmp_path):
    files = {f"set/{k}.png": picture((k, 0, 0)) for k in range(3)}
    (tmp_path / "items.zip").write_bytes(zipped({**files, "__MACOSX/._0.png": b"x", "set/": b""}))
    assert [i.name for i in read_items(tmp_path / "items.zip")[0]] == ["set/0", "set/1", "set/2"]


@pytest.mark.parametrize(
    "name", ["../a.png", "x/../../a.png", "/a.png", "..\\a.png", "C:\\a.png", "C:a.png"]
)
def test_paths_that_leave_the_zip_are_refused(name):
    with pytest.raises(InvalidInput, match="leaves the archive"):
        read_zip(zipped({name: picture()}), "items.zip")


def test_damaged_zips_are_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", random.Random(0).randbytes(400))
    whole = out.getvalue()
    for content in (whole[:-30], whole[:40], whole[:60] + b"\xff" * 40 + whole[100:]):
        with pytest.raises(InvalidInput, match="cannot be read as a ZIP"):
            read_zip(content, "items.zip")


def test_a_csv_of_texts(tmp_path):
    (tmp_path / "w.csv").write_text('label,alt\nhouse,a house\ntree,\n"a, b",x\n', encoding="utf-8")
    items, *_ = read_items(tmp_path / "w.csv")
    assert [(i.kind, i.text, i.alt) for i in items] == [
        ("text", "house", "a house"),
        ("text", "tree", ""),
        ("text", "a, b", "x"),
    ]


def test_a_csv_of_files(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.png").write_bytes(picture((k, 0, 0)))
    (tmp_path / "w.csv").write_text("file,name\n0.png,zero\n1.png,one\n2.png,two\n")
    items, *_ = read_items(tmp_path / "w.csv")
    assert [(i.name, i.kind) for i in items] == [
        ("zero", "image"),
        ("one", "image"),
        ("two", "image"),
    ]
    (tmp_path / "w.csv").write_text("file\nnone.png\n")
    with pytest.raises(InvalidInput, match=r"'none.png', which is not a file beside it"):
        read_items(tmp_path / "w.csv")


def test_salmons_file_is_imported_as_it_is(tmp_path):
    (tmp_path / "init.yaml").write_text(
        "targets: [zero, '<b>one</b>', two & three, \"<script>x</script>\"]\n"
        "samplers: {ARR: {}, Random: {}}\n"
        "sampling: {probs: {ARR: 80, Random: 20}, common: {d: 3}}\n"
        "html:\n  instructions: Which is <i>more</i> similar?\n  max_queries: 25\n"
        "  skip_button: true\n  debrief: <b>Thanks!</b>\n"
    )
    items, settings, *_ = read_items(tmp_path / "init.yaml")
    assert [i.text for i in items] == ["zero", "one", "two & three", "x"]
    config = Config.of(settings)
    assert config.question == "Which is more similar?"
    assert (config.questions, config.can_skip, config.n_components) == (25, True, 3)
    assert config.debrief == "Thanks!"


def test_salmons_older_file_with_pictures(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.png").write_bytes(picture((k, 0, 0)))
    lines = "".join(f"  - <img src='/static/targets/{k}.png' width=50 />\n" for k in range(3))
    (tmp_path / "init.yaml").write_text(
        f"targets:\n{lines}max_queries: -1\nd: 2\ninstructions: Pick\n"
    )
    items, settings, *_ = read_items(tmp_path / "init.yaml")
    assert [i.kind for i in items] == ["image"] * 3
    assert settings == {"question": "Pick", "can_skip": False, "n_components": 2}
    (tmp_path / "init.yaml").write_text(
        "targets: [a, b, \"<img src='https://x.example/a.png'>\"]\n"
    )
    with pytest.raises(InvalidInput, match="not a file beside it"):
        read_items(tmp_path / "init.yaml")


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("a.csv", "label\nx\ny\n", "holds 2 items; comparing needs at least 3"),
        ("a.csv", "label\nx\ny\nx\n", "two items are called 'x'"),
        ("a.csv", "id,text\n1,x\n2,y, or z\n", "line 3: has 3 fields where line 1 has 2"),
        ("a.csv", "number\n1\n2\n3\n", "has columns .'number'.; one must be called"),
        ("a.csv", 'label\nx\n""\nz\n', "the item '': must have at least 1"),
        ("a.yaml", "targets: 5", "targets=5: must be a list"),
        ("a.yaml", "- a\n- b", "holds a list: must be"),
        ("a.yaml", "a: [", "cannot be read as YAML"),
        ("a.yaml", "a: 1\nb: 2020-13-45\n", "put what is almost a date or a number in quotes"),
        ("a.yaml", "a: 1\nb: !!bool abc\n", "in quotes"),
        ("a.yaml", "a: " + "1" * 6000, "in quotes"),
        ("a.yaml", "a: " + "[" * 5000, "nest brackets less deeply"),
        ("a.yaml", "a: 1\nb: 2\na: 3\n", "line 3: 'a' is there twice, first on line 1; take"),
        ("a.rtf", "x", "must be a folder or ZIP"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(tmp_path, name, text, match):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=match):
        read_items(tmp_path / name)


def test_a_missing_path_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no such file or folder"):
        read_items(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.png", b""),
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"\x00" * 100),
        ("a.jpg", picture()),
        ("a.mp3", b"<html>"),
        ("a.wav", b"RIFF\x00\x00\x00\x00WEBP"),
        ("a.svg", b"<svg/>"),
        ("a.svg", picture()),
        ("a.avif", b"\0\0\0\x20ftypisom" + bytes(50)),
        ("a.mp4", picture(kind="AVIF")),
        ("a.tif", picture()),
        ("a.bmp", picture(kind="BMP")),
        ("a", b"x"),
    ],
)
def test_media_that_are_not_what_their_name_says_are_refused(name, content):
    with pytest.raises(InvalidInput):
        read_files([(name, content)])


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [("png", "PNG"), ("jpg", "JPEG"), ("gif", "GIF"), ("webp", "WEBP"), ("avif", "AVIF")],
)
def test_pictures_that_are_what_they_say(suffix, kind):
    (item,) = read_files([(f"a.{suffix}", picture(kind=kind))])
    assert item.kind == "image"


def tiff(mode, value, **options):
    from PIL import Image

    out = io.BytesIO()
    Image.new(mode, (6, 4), value).save(out, "TIFF", **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "mode", "value"),
    [
        (tiff("RGB", (9, 8, 7)), "RGB", (9, 8, 7)),
        (tiff("RGBA", (9, 8, 7, 6), compression="tiff_lzw"), "RGBA", (9, 8, 7, 6)),
        (tiff("CMYK", (0, 0, 0, 255)), "RGB", (0, 0, 0)),
        (tiff("I;16", 0x8123), "L", 0x81),
    ],
)
def test_tiff_becomes_a_picture_that_browsers_show(content, mode, value):
    from PIL import Image

    (item,) = read_files([("a.tif", content)])
    assert item.mime == "image/png"
    with Image.open(io.BytesIO(item.content)) as image:
        assert (image.format, image.mode, image.size) == ("PNG", mode, (6, 4))
        assert image.getpixel((0, 0)) == value


def test_tiff_that_cannot_be_shown_is_refused():
    from PIL import Image

    pages = Image.new("L", (4, 4))
    with pytest.raises(InvalidInput, match="has several pages"):
        read_files([("a.tif", tiff("L", 0, save_all=True, append_images=[pages]))])
    with pytest.raises(InvalidInput, match="mode F has no known range"):
        read_files([("a.tif", tiff("F", 0.5))])


SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" {}>{}<rect id="r"/></svg>'


def test_a_drawing_that_shows_what_is_not_in_the_file_is_refused():
    for inside in ("<image href='https://x.example/a.png'/>", "<use href='//x.example/a.svg#b'/>"):
        with pytest.raises(InvalidInput, match="embed it"):
            read_files([("a.svg", SVG.format("", inside).encode())])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"<!DOCTYPE svg [<!ENTITY a 'b'>]>" + SVG.encode(), "has <!entity"),
        (SVG.replace("</svg>", "<style><g/>@IMPORT 'x';</style></svg>").encode(), "has @import"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "how large it is"),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'/>", "is no SVG"),
        ("<!DOCTYPE svg [<!ENTITY a 'b'>]>".encode("utf-16"), "has <!entity"),
        (b"<svg", "cannot be read as a drawing"),
        (b"<?xml version='1.0' encoding='nope'?><svg/>", "cannot be read as a drawing"),
    ],
)
def test_drawings_that_are_none_are_refused(content, match):
    with pytest.raises(InvalidInput, match=match):
        read_files([("a.svg", content)])


def test_a_drawing_is_stored_as_it_is():
    inside = '<style>rect { fill: url(#g) }</style><use href="#r"/><a href="https://x.org/"/>'
    content = SVG.format("", inside + '<image href="data:image/png;base64,iVBORw0KGgo="/>').encode()
    (item,) = read_files([("a.svg", content)])
    assert (item.mime, item.content) == ("image/svg+xml", content)


def test_what_is_left_out_is_named(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    pictures = {f"{k}.png": picture((k, 0, 0)) for k in range(3)}
    files = {**pictures, "b.heic": b"x", "notes.txt": b"x", ".hidden": b"x"}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (tmp_path / "a.zip").write_bytes(zipped(files))
    for source in (folder, tmp_path / "a.zip"):
        (note,) = read_items(source)[2]
        assert note.startswith("left out 2 files, no pictures")
        assert note.endswith(": b.heic, notes.txt")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"votes": 4}, "votes='4': must be one of"),
        ({"questions": 0}, "questions=0: must be at least 1"),
        ({"questions": "ten"}, "questions='ten': must be a whole number"),
        ({"catch_share": 0.9}, "catch_share=0.9: must be at most 0.5"),
        ({"catch_share": 0.5, "repeat_share": 0.5}, "shares must leave 0.2"),
        ({"method": "magic"}, "must be one of 'informative' or 'random'"),
        ({"scope": "person", "votes": "3"}, "must be 1 if scope is person"),
        ({"completion_redirect": "javascript:alert(1)"}, "must be an http"),
        ({"n_components": 0}, "must be at least 1"),
        ({"practice": 101}, "practice=101: must be at most 100"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, match):
    with pytest.raises(InvalidInput, match=match):
        Config.of(settings)


def test_settings_survive_the_header():
    config = Config.of({"votes": 3, "holdout_share": 0, "n_components": 2})
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_salmons_targets_lie_beside_it(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "in").mkdir()
    for k in range(3):
        (tmp_path / "other" / f"{k}.png").write_bytes(picture((k, 0, 0)))
    for targets in ("../other", tmp_path / "other"):
        (tmp_path / "in" / "init.yaml").write_text(f"targets: {targets}")
        with pytest.raises(InvalidInput, match="is not a file beside it"):
            read_items(tmp_path / "in" / "init.yaml")


def test_every_file_is_read_by_the_reader_with_the_limit(tmp_path, monkeypatch):
    for k in range(3):
        (tmp_path / f"{k}.png").write_bytes(picture((k, 0, 0)) + bytes(3000))
    (tmp_path / "t.csv").write_text("file\n0.png\n1.png\n2.png\n")
    (tmp_path / "t.zip").write_bytes(zipped({"a.png": bytes(3000)}))
    monkeypatch.setenv("NEARER_MAX_BYTES", "2000")
    for source in (tmp_path, tmp_path / "t.csv", tmp_path / "t.zip"):
        with pytest.raises(InvalidInput, match="NEARER_MAX_BYTES"):
            read_items(source)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("k0: &k0 [x]\n" + "".join(f"k{i + 1}: &k{i + 1} [{f'*k{i}, ' * 9}]\n" for i in range(9))
         + "html: *k9", "html: must be `name: value` lines"),
        (f"targets: 0x{'f' * 5000}", "targets: must be a list"),
        (f"html: [0x{'f' * 5000}]", "html: must be `name: value` lines"),
        ("targets:\n- '<img " + "src=" * 20_000 + "'", "at most 20000 characters"),
        ("title: '" + "<a" * 20_000 + "'", "at most 20000 characters"),
    ],
)  # fmt: skip
def test_settings_that_unfold_are_refused_at_once(tmp_path, text, match):
    (tmp_path / "init.yaml").write_text(text)
    began = time.process_time()
    with pytest.raises(InvalidInput, match=match):
        read_items(tmp_path / "init.yaml")
    assert time.process_time() - began < 2
