"""Input of researchers: things to compare, questions to ask, earlier answers.

A file is accepted only if its name, its first bytes and, for pictures, a full decoding agree. TIFF,
which browsers do not show, becomes PNG. A drawing (SVG) is stored as it is, since the headers of
its reply let it run and fetch nothing. Salmon's ``init.yaml`` is that of Sievert et al. (2023).
"""

from __future__ import annotations

import html
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any
from xml.etree import ElementTree

import numpy as np
from PIL import Image, ImageOps
from pydantic import Field, TypeAdapter

from nearer.checks import amount
from nearer.errors import InvalidInput
from nearer.files import decoded, one_message, open_zip, read_bytes
from nearer.study.board import OwnQuestion, fact
from nearer.study.config import Text, parse, part, read_yaml, shown
from nearer.trials import Trials

_TEXT_COLUMNS = ("text", "label", "name", "item", "target", "word")
_FILE_COLUMNS = ("file", "filename", "path", "image", "audio", "video")
_ALT_COLUMNS = ("alt", "description")
_MAX_BYTES = 64 * 1024 * 1024
_NAME = TypeAdapter(Annotated[Text, Field(min_length=1, max_length=2_000)])
_MIME = {
    "image/png": (".png", rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": (".jpg .jpeg", rb"\xff\xd8\xff"),
    "image/gif": (".gif", rb"GIF8[79]a"),
    "image/webp": (".webp", rb"RIFF....WEBP"),
    "image/avif": (".avif", rb"....ftypavi[fs]"),
    "image/tiff": (".tif .tiff", rb"II[*+]\0|MM\0[*+]"),
    "audio/mpeg": (".mp3", rb"ID3|\xff[\xe2\xe3\xea\xeb\xf2\xf3\xfa\xfb]"),
    "audio/wav": (".wav", rb"RIFF....WAVE"),
    "audio/ogg": (".ogg .oga", rb"OggS"),
    "audio/flac": (".flac", rb"fLaC"),
    "audio/mp4": (".m4a", rb"....ftyp(?!avi)"),
    "video/mp4": (".mp4", rb"....ftyp(?!avi)"),
    "video/webm": (".webm", rb"\x1a\x45\xdf\xa3"),
    "image/svg+xml": (".svg", rb""),
}
#: suffix: MIME type
SUFFIXES = {suffix: mime for mime, (names, _) in _MIME.items() for suffix in names.split()}


@dataclass(frozen=True)
class Item:
    """One thing to compare."""

    name: str
    kind: str
    text: str = ""
    alt: str = ""
    mime: str = ""
    content: bytes = b""

    def __post_init__(self) -> None:
        parse(_NAME, self.name, f"the item {self.name[:40]!r}: ")


#: items, settings that came with them, and notes on what was left out
Brought = tuple[list[Item], dict[str, Any], list[str]]


def read_items(source: Path) -> Brought:
    """The items of a folder, ZIP, table, text file or Salmon's init.yaml."""
    suffix, notes = source.suffix.lower(), list[str]()
    if source.is_dir():
        paths = {p.relative_to(source).as_posix(): p for p in source.rglob("*") if p.is_file()}
        names, notes = _media_among(paths)
        items = read_files((name, read_bytes(paths[name])) for name in names)
    elif not source.is_file():
        raise InvalidInput(f"{source}: no such file or folder")
    elif suffix == ".zip":
        items, notes = read_zip(read_bytes(source), source.name)
    elif suffix in (".csv", ".tsv"):
        items = _read_table(source)
    elif suffix == ".txt":
        items = [Item(line, "text", line) for line in _lines(source)]
    elif suffix in (".yaml", ".yml"):
        return _read_salmon(source)
    else:
        media = "a folder or ZIP of pictures, sound or film, a CSV"
        text = "a text file with one item a line, or Salmon's init.yaml"
        raise InvalidInput(f"{source}: must be {media}, {text}")
    return _check_items(items, source), {}, notes


def _lines(path: Path) -> list[str]:
    """The lines of a text file that are not empty."""
    text = decoded(read_bytes(path), path, "cp1252")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _read_table(source: Path) -> list[Item]:
    lines = _lines(source)
    if lines and not set(lines[0]) & set(",;\t"):  # one column, whose texts may have spaces
        name, *texts = (line.strip('"') for line in lines)
        columns, rows = [name.lower()], [(0, {name.lower(): text}) for text in texts]
    else:
        columns, rows = _table(source)
    of_file, of_text, of_alt = (
        next((name for name in names if name in columns), "")
        for names in (_FILE_COLUMNS, _TEXT_COLUMNS, _ALT_COLUMNS)
    )
    if not of_file and not of_text:
        rule = "one must be called text or label (a text) or file (a file name)"
        raise InvalidInput(f"{source}: has columns {columns}; {rule}")
    items = []
    for _, row in rows:
        label, alt = row.get(of_text, "").strip(), row.get(of_alt, "")
        if of_file:
            path = _beside(source, row[of_file])
            (item,) = read_files([(path.name, read_bytes(path))])
            items.append(replace(item, name=label or item.name, text=label, alt=alt))
        else:
            items.append(Item(label, "text", label, alt))
    return items


def _beside(source: Path, name: str) -> Path:
    """A file or folder beside the file that names it, or below; others are refused."""
    folder = source.parent.resolve()
    path = (folder / PurePosixPath(name)).resolve()
    if not path.exists() or folder not in path.parents:
        raise InvalidInput(f"{source}: names {name!r}, which is not a file beside it; put it there")
    return path


def _table(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns of a table, in lower case, and its rows, each with the line that it begins on."""
    from nearer.triplets import read_table  # noqa: PLC0415 - loads pandas; serving needs none

    frame = read_table(path, encoding="cp1252")
    columns = [str(name).strip().lower() for name in frame.columns]
    records = frame.set_axis(columns, axis=1).to_dict("records")
    return columns, list(zip(frame.index.tolist(), records, strict=True))


def _read_salmon(path: Path) -> Brought:
    """Salmon's file: targets and texts; its ways to sample are not read."""
    stated = read_yaml(path)
    options = {**stated, **part(path, stated, "html")}  # older files keep these at the top
    settings: dict[str, Any] = {"can_skip": bool(options.get("skip_button", False))}
    for theirs, ours in (("title", "title"), ("instructions", "question"), ("debrief", "debrief")):
        if options.get(theirs):
            settings[ours] = _plain(parse(Text, options[theirs], f"{path}: {theirs} "))
    common = part(path, part(path, stated, "sampling"), "common")
    numbers = {"questions": options.get("max_queries", 50), "n_components": common.get("d")}
    numbers |= {"n_components": stated["d"]} if "d" in stated else {}
    settings |= {name: k for name, k in numbers.items() if isinstance(k, int) and k > 0}
    targets = stated.get("targets")
    if isinstance(targets, str):
        items = read_items(_beside(path, targets))[0]
    elif isinstance(targets, list):
        texts = [parse(Text, target, f"{path}: a target ") for target in targets]
        items = _check_items([_salmon_target(path, text) for text in texts], path)
    else:
        rule = "must be a list of texts, or the name of a ZIP or folder beside it"
        remedy = "a ZIP given apart from the file goes to --items, and this file to --config"
        raise InvalidInput(f"{path}: targets{shown(targets)}: {rule}; {remedy}")
    read = "targets html d title instructions debrief max_queries skip_button"
    notes = [f"{key}: is not read" for key in sorted(set(stated) - set(read.split()))]
    if {"samplers", "sampling"} & stated.keys():
        notes.append("questions of your own go to --questions, shares and method to --set")
    return items, settings, notes


def _salmon_target(source: Path, target: str) -> Item:
    """A target is a text, or HTML that shows one file."""
    media = r"\s*<(?:img|video|audio)\b[^>]*?\bsrc=[\"']?([^\"'\s>]++)[^>]*+>.*"
    if match := re.fullmatch(media, target, re.S):
        path = _beside(source, match[1].replace("/static/targets/", ""))
        return read_files([(path.name, read_bytes(path))])[0]
    text = _plain(target)
    return Item(text, "text", text)


def _plain(markup: str) -> str:
    """HTML as text: tags go, entities are resolved."""
    return html.unescape(re.sub(r"</?[a-zA-Z][^>]*+>", "", markup)).strip()


def _media_among(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The names of media in order, and a note on files that are neither media nor hidden."""
    media, others = list[str](), list[str]()
    for name in sorted(names):
        if not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts):
            (media if PurePath(name).suffix.lower() in SUFFIXES else others).append(name)
    if not others:
        return media, []
    named = ", ".join(others[:10]) + (" …" if len(others) > 10 else "")
    kinds = f"no pictures, sound or film of a kind that is taken ({' '.join(SUFFIXES)})"
    return media, [f"left out {amount(len(others), 'file')}, {kinds}: {named}"]


def read_files(files: Iterable[tuple[str, bytes]]) -> list[Item]:
    """Media files, each checked against its name; the name without suffix is the label."""
    items = []
    for name, given in files:
        mime, content = _take_media(name, given)
        label = PurePosixPath(name).with_suffix("").as_posix()
        items.append(Item(label, mime.partition("/")[0], "", "", mime, content))
    return items


def read_zip(content: bytes, name: str) -> tuple[list[Item], list[str]]:
    """The media files in a ZIP, and notes. Paths that leave it are refused."""
    with one_message(name, "a ZIP"), open_zip(name, content) as archive:
        infos = [info.filename for info in archive.infolist() if not info.is_dir()]
        for inside in infos:
            path = PurePosixPath(inside.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or ":" in "".join(path.parts[:1]):
                raise InvalidInput(f"{name}: the path {inside!r} leaves the archive")
        media, notes = _media_among(infos)
        return read_files((n, archive.open(n).read(_MAX_BYTES + 1)) for n in media), notes


def _check_items(items: list[Item], source: Path) -> list[Item]:
    """Refuse fewer than three items, and two with the same name."""
    if len(items) < 3:
        raise InvalidInput(f"{source}: holds {len(items)} items; comparing needs at least 3")
    names = Counter(item.name for item in items)
    if twice := [name for name, count in names.items() if count > 1]:
        raise InvalidInput(f"{source}: two items are called {twice[0]!r}; rename one")
    return items


def _take_media(name: str, content: bytes) -> tuple[str, bytes]:
    """The MIME type of a file, and its content for browsers."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        taken = ", ".join(SUFFIXES)
        raise InvalidInput(f"{name}: files of type {suffix or 'none'} are not taken; use {taken}")
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{name}: has more than {_MAX_BYTES} bytes; make it smaller")
    mime = SUFFIXES[suffix]
    if not re.match(_MIME[mime][1], content, re.S):
        remedy = "give the file the right name or convert it"
        raise InvalidInput(f"{name}: the content is not {mime}; {remedy}")
    if mime == "image/svg+xml":
        _check_drawing(name, content)
    elif mime == "image/tiff":
        return "image/png", _as_png(name, content)
    elif mime.startswith("image/"):
        with _opened(name, content) as image:
            image.load()
    return mime, content


def _check_drawing(name: str, content: bytes) -> None:
    """Refuse a drawing that browsers would not show as it was made."""
    # Entities can unfold to gigabytes; without zeros UTF-16 and UTF-32 read as ASCII.
    for has in (b"<!entity", b"@import"):
        if has in content.replace(b"\0", b"").lower():
            raise InvalidInput(f"{name}: has {has.decode()}, which is not shown; save plain SVG")
    with one_message(name, "a drawing"):
        root = ElementTree.fromstring(content)
    if not root.tag.endswith("}svg"):
        raise InvalidInput(f"{name}: is no SVG drawing; its first element is {root.tag[:60]!r}")
    if "viewBox" not in root.attrib and not {"width", "height"} <= root.attrib.keys():
        raise InvalidInput(f"{name}: must say how large it is, with a viewBox or width and height")
    for element in root.iter():
        for key, value in element.attrib.items() if not str(element.tag).endswith("}a") else ():
            if key.rpartition("}")[2] == "href" and not value.strip().startswith(("#", "data:")):
                raise InvalidInput(f"{name}: shows {value[:60]!r}, no part of it; embed it")


def _as_png(name: str, content: bytes) -> bytes:
    """A picture in a form that every browser shows: 8 bits a channel, upright, one page."""
    with _opened(name, content) as image:
        if getattr(image, "n_frames", 1) > 1:
            raise InvalidInput(f"{name}: has several pages; save each as a file of its own")
        turned, profile = ImageOps.exif_transpose(image), image.info.get("icc_profile")
        if turned.mode.startswith("I;16"):
            turned = turned.convert("I").point(lambda value: value / 256).convert("L")
        elif turned.mode in ("I", "F"):
            raise InvalidInput(f"{name}: mode {turned.mode} has no known range; save as PNG")
        elif turned.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            turned, profile = turned.convert("RGB"), None
        out = io.BytesIO()
        turned.save(out, "PNG", icc_profile=profile)
        return out.getvalue()


@contextmanager
def _opened(name: str, content: bytes) -> Iterator[Image.Image]:
    with one_message(name, "a picture"), Image.open(io.BytesIO(content)) as image:
        if image.width * image.height > (most := Image.MAX_IMAGE_PIXELS or math.inf):
            size = f"is {image.width} x {image.height} pixels"
            raise InvalidInput(f"{name}: {size}; at most {most} are taken, make it smaller")
        yield image


def _finder(path: Path, names: Sequence[str]) -> Callable[..., int]:
    """Finds items by name, or by number if no item has that name."""
    numbers = {str(k): k for k in range(len(names))} | {name: k for k, name in enumerate(names)}

    def find(text: str, where: str = "") -> int:
        if text not in numbers:
            rule = f"must be an item's name, or a number from 0 to {len(names) - 1}"
            raise InvalidInput(f"{path}:{where} names {text!r}; {rule}")
        return numbers[text]

    return find


def read_questions(path: Path, names: Sequence[str]) -> list[OwnQuestion]:
    """A table of questions to ask."""
    columns, rows = _table(path)
    if not {"head", "a", "b"} <= set(columns):
        raise InvalidInput(f"{path}: has columns {columns}; must have head, a and b")
    find, questions, seen = _finder(path, names), list[OwnQuestion](), set[Any]()
    for line, row in rows:
        place, right = row.get("position", ""), row.get("answer", "")
        where = f"{path}: line {line}"
        if place and (not place.isdecimal() or int(place) < 1):
            raise InvalidInput(f"{where}: position={place!r}: must be 1, 2, …")
        head, a, b = (find(row[name], f" line {line}") for name in ("head", "a", "b"))
        expected = find(right, f" line {line}") if right else None
        if len({head, a, b}) < 3:
            raise InvalidInput(f"{where}: {head, a, b} compares a thing with itself")
        if expected not in (None, a, b):
            raise InvalidInput(f"{where}: {head, a, b}: the answer must be one of the two")
        if fact(head, (a, b)) in seen:
            raise InvalidInput(f"{where}: {head, a, b} is listed twice")
        seen.add(fact(head, (a, b)))
        questions.append(OwnQuestion(head, a, b, int(place) if place else None, expected))
    return questions


def read_answers(path: Path, names: Sequence[str]) -> Trials:
    """Answers about the items, in any form that the library reads; their objects are the items."""
    from nearer.triplets import read_triplets  # noqa: PLC0415 - loads pandas; serving needs none

    answers, find = read_triplets(path, objects="names"), _finder(path, names)
    if not len(answers):
        raise InvalidInput(f"{path}: holds no answer; each needs three items that differ")
    items = np.array([find(label) for label in answers.labels])
    rows = items[answers.triplets]
    return Trials.from_triplets(rows, people=answers.people, seconds=answers.seconds)
