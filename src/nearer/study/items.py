"""What is compared: read from what researchers have, and shown to people.

A folder or a ZIP of pictures, sound or film; a CSV with a column of texts or of file names; a text
file with one item a line; or the ``init.yaml`` of Salmon (Sievert, Nowak and Rogers 2023), whose
targets, instructions, ``max_queries`` and skip button are taken over. Everything is checked before
anything is kept: a file is taken only when its name, its first bytes and, for pictures, a full
decoding agree. TIFF, which browsers do not show, becomes PNG. A drawing (SVG) is kept as it is,
since the headers of its reply let it run and fetch nothing (see `nearer.study.web`).
"""

from __future__ import annotations

import html
import io
import re
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from PIL import Image, ImageOps, UnidentifiedImageError

from nearer.errors import InvalidInput
from nearer.files import decoded, read_bytes
from nearer.study.auth import Signer
from nearer.study.config import part, read_yaml
from nearer.study.imports import column, table_rows
from nearer.study.store import connect

_TEXT_COLUMNS = ("text", "label", "name", "item", "target", "word")
_FILE_COLUMNS = ("file", "filename", "path", "image", "audio", "video")
_ALT_COLUMNS = ("alt", "description")
_MAX_ITEMS = 10_000
_MAX_TEXT = 2_000
_MAX_BYTES = 64 * 1024 * 1024
_MAX_TOTAL = 2 * 1024 * 1024 * 1024
_PIECE = 1024 * 1024
_MAX_PIXELS = 50_000_000
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


def read_items(source: Path) -> tuple[list[Item], dict[str, Any]]:
    """The items at a path, and settings that came with them (only Salmon's file has any)."""
    settings: dict[str, Any] = {}
    suffix = source.suffix.lower()
    if source.is_dir():
        files = (p for p in sorted(source.rglob("*")) if p.is_file() and not _hidden(p.name))
        items = read_files(
            (p.relative_to(source).as_posix(), p.read_bytes()) for p in files if _is_media(p.name)
        )
    elif not source.is_file():
        raise InvalidInput(f"{source}: no such file or folder")
    elif suffix == ".zip":
        items = read_zip(source.read_bytes(), source.name)
    elif suffix in (".csv", ".tsv"):
        items = _read_table(source)
    elif suffix == ".txt":
        items = [Item(line, "text", line) for line in _lines(source)]
    elif suffix in (".yaml", ".yml"):
        items, settings = _read_salmon(source)
    else:
        raise InvalidInput(
            f"{source}: must be a folder or ZIP of pictures, sound or film, a CSV, "
            "a text file with one item a line, or Salmon's init.yaml"
        )
    return _checked(items, str(source)), settings


def left_out(source: Path) -> list[str]:
    """Files in a folder or ZIP that are not taken, since they are no media of a known kind."""
    if source.is_dir():
        files = [p for p in sorted(source.rglob("*")) if p.is_file()]
        names = [p.relative_to(source).as_posix() for p in files]
    elif source.suffix.lower() == ".zip":
        with zipfile.ZipFile(source) as archive:
            names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
    else:
        return []
    return [name for name in names if not _is_media(name) and not _hidden(name)]


def _is_media(name: str) -> bool:
    return PurePath(name).suffix.lower() in SUFFIXES


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(path).parts)


def read_files(files: Iterable[tuple[str, bytes]]) -> list[Item]:
    """Media files, each checked to be what its name says; the name without suffix is the label."""
    items = []
    for name, given in files:
        mime, content = _take_media(name, given)
        label = PurePosixPath(name).with_suffix("").as_posix()
        items.append(Item(label, mime.partition("/")[0], "", "", mime, content))
    return items


def read_zip(content: bytes, name: str) -> list[Item]:
    """The media files in a ZIP. Nothing is unpacked to disk; paths that leave it are refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            for info in infos:
                path = PurePosixPath(info.filename.replace("\\", "/"))
                outside = path.is_absolute() or ".." in path.parts or ":" in path.parts[0]
                if outside:
                    raise InvalidInput(f"{name}: the path {info.filename!r} leaves the archive")
            if sum(info.file_size for info in infos) > _MAX_TOTAL:
                raise InvalidInput(f"{name}: unpacks to more than {_MAX_TOTAL} bytes")
            names = sorted(i.filename for i in infos if _is_media(i.filename))
            return read_files((n, _unpack(archive, n)) for n in names if not _hidden(n))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidInput(f"{name}: is no ZIP that can be unpacked: {error}") from error


def _unpack(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member, read no further than a file may be long."""
    with archive.open(name) as member:
        return member.read(_MAX_BYTES + 1)


def _lines(path: Path) -> list[str]:
    """The lines of a text file that hold something."""
    text = decoded(read_bytes(path), path, "cp1252")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _read_table(source: Path) -> list[Item]:
    lines = _lines(source)
    if lines and not set(lines[0]) & set(",;\t"):  # one column, whose texts may have spaces
        name, *texts = (line.strip('"') for line in lines)
        columns, rows = [name.lower()], [(0, {name.lower(): text}) for text in texts]
    else:
        columns, rows = table_rows(source)
    file_column = column(columns, _FILE_COLUMNS)
    text_column = column(columns, _TEXT_COLUMNS)
    alt_column = column(columns, _ALT_COLUMNS)
    if file_column is None and text_column is None:
        raise InvalidInput(
            f"{source}: has columns {columns}; one must be called "
            f"{' or '.join(_TEXT_COLUMNS[:2])} (a text) or {_FILE_COLUMNS[0]} (a file name)"
        )
    items = []
    for _, row in rows:
        alt = row.get(alt_column or "") or ""
        label = (row.get(text_column or "") or "").strip()
        if file_column is None:
            items.append(Item(label, "text", label, alt))
            continue
        path = _beside(source, row.get(file_column) or "")
        (item,) = read_files([(path.name, path.read_bytes())])
        items.append(Item(label or item.name, item.kind, label, alt, item.mime, item.content))
    return items


def _beside(source: Path, name: str) -> Path:
    """A file in the folder of a table, or below it; another one is refused."""
    folder = source.parent.resolve()
    path = (folder / PurePosixPath(name)).resolve()
    if not path.is_file() or folder not in path.parents:
        raise InvalidInput(
            f"{source}: names {name!r}, which is not a file beside it; put the file there"
        )
    return path


def _read_salmon(source: Path) -> tuple[list[Item], dict[str, Any]]:
    given = read_yaml(source)
    options = {**given, **part(source, given, "html")}  # older files keep these at the top
    settings: dict[str, Any] = {}
    for theirs, ours in (("title", "title"), ("instructions", "question"), ("debrief", "debrief")):
        if options.get(theirs):
            settings[ours] = _plain(str(options[theirs]))
    queries = options.get("max_queries", 50)
    if isinstance(queries, int) and queries > 0:
        settings["questions"] = queries
    settings["can_skip"] = bool(options.get("skip_button", False))
    common = part(source, part(source, given, "sampling"), "common")
    dimension = given.get("d", common.get("d"))
    if isinstance(dimension, int) and dimension >= 1:
        settings["n_components"] = dimension
    targets = given.get("targets")
    if isinstance(targets, str):
        return read_items(source.parent / targets)[0], settings
    if not isinstance(targets, list):
        raise InvalidInput(
            f"{source}: targets={targets!r}: must be a list of texts, or the name of a ZIP or "
            "folder beside it; a ZIP given apart from the file goes to --items, "
            "and this file to --config"
        )
    return [_salmon_target(source, str(target)) for target in targets], settings


def _salmon_target(source: Path, target: str) -> Item:
    """A target is a text, or HTML that shows one file."""
    shown = re.fullmatch(
        r"\s*<(?:img|video|audio)\b[^>]*?\bsrc=[\"']?([^\"'\s>]+)[^>]*>.*", target, re.S
    )
    if shown is None:
        text = _plain(target)
        return Item(text, "text", text)
    path = _beside(source, shown[1].replace("/static/targets/", ""))
    return read_files([(path.name, path.read_bytes())])[0]


def _plain(markup: str) -> str:
    """HTML as text: tags go, entities are resolved."""
    return html.unescape(re.sub(r"</?[a-zA-Z][^>]*>", "", markup)).strip()


def _checked(items: list[Item], source: str) -> list[Item]:
    if not 3 <= len(items) <= _MAX_ITEMS:
        raise InvalidInput(
            f"{source}: holds {len(items)} items; comparing needs at least 3, and at most "
            f"{_MAX_ITEMS} are taken"
        )
    seen: set[str] = set()
    for item in items:
        if not 0 < len(item.name) <= _MAX_TEXT or not item.name.replace("\n", " ").isprintable():
            raise InvalidInput(
                f"{source}: the item {item.name[:40]!r} must have 1 to {_MAX_TEXT} characters, "
                "without control characters"
            )
        if item.name in seen:
            raise InvalidInput(f"{source}: two items are called {item.name!r}; rename one")
        seen.add(item.name)
    return items


# Files -----------------------------------------------------------------------------------------


def _take_media(name: str, content: bytes) -> tuple[str, bytes]:
    """The MIME type of a file, and its content as browsers are to get it.

    Examples
    --------
    >>> _take_media("a.png", b"<script>alert(1)</script>")
    Traceback (most recent call last):
    nearer.errors.InvalidInput: a.png: the content is not image/png; ...
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"{name}: files of type {suffix or 'none'} are not taken; use one of "
            + ", ".join(SUFFIXES)
        )
    if len(content) > _MAX_BYTES:
        raise InvalidInput(
            f"{name}: has more than {_MAX_BYTES} bytes, which is the most; make it smaller"
        )
    mime = SUFFIXES[suffix]
    if not re.match(_MIME[mime][1], content, re.S):
        raise InvalidInput(
            f"{name}: the content is not {mime}; give the file the right name or convert it"
        )
    if mime == "image/svg+xml":
        _check_drawing(name, content)
    elif mime == "image/tiff":
        return "image/png", _as_png(name, content)
    elif mime.startswith("image/"):
        with _opened(name, content) as image:
            image.load()
    return mime, content


def _check_drawing(name: str, content: bytes) -> None:
    """Refuse a drawing that would not be shown as it was made."""
    if b"<!ENTITY" in content:  # they can unfold to gigabytes
        raise InvalidInput(f"{name}: has entities; save it as plain SVG")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidInput(f"{name}: the drawing is damaged: {error}") from error
    if not root.tag.endswith("}svg"):
        raise InvalidInput(f"{name}: is no SVG drawing; its first element is {root.tag[:60]!r}")
    if "viewBox" not in root.attrib and not {"width", "height"} <= root.attrib.keys():
        raise InvalidInput(f"{name}: must say how large it is, with a viewBox or width and height")
    for element in root.iter():
        for key, value in element.attrib.items() if not str(element.tag).endswith("}a") else ():
            if key.rpartition("}")[2] == "href" and not value.strip().startswith(("#", "data:")):
                raise InvalidInput(
                    f"{name}: shows {value[:60]!r}, which is not part of the file; embed it"
                )


def _as_png(name: str, content: bytes) -> bytes:
    """A picture in a form that every browser shows: 8 bits a channel, upright, one page."""
    with _opened(name, content) as image:
        if getattr(image, "n_frames", 1) > 1:
            raise InvalidInput(f"{name}: has several pages; save each as a file of its own")
        turned, profile = ImageOps.exif_transpose(image), image.info.get("icc_profile")
        if turned.mode.startswith("I;16"):
            turned = turned.convert("I").point(lambda value: value / 256).convert("L")
        elif turned.mode in ("I", "F"):
            raise InvalidInput(
                f"{name}: has values of mode {turned.mode}, whose range is not known; save as PNG"
            )
        elif turned.mode not in ("1", "L", "LA", "P", "RGB", "RGBA"):
            turned, profile = turned.convert("RGB"), None
        out = io.BytesIO()
        turned.save(out, "PNG", icc_profile=profile)
        return out.getvalue()


@contextmanager
def _opened(name: str, content: bytes) -> Iterator[Image.Image]:
    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise InvalidInput(
                    f"{name}: is {image.width} x {image.height} pixels; at most {_MAX_PIXELS} "
                    "in all are taken, make it smaller"
                )
            yield image
    except InvalidInput:
        raise
    except (
        UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError,
    ) as error:  # fmt: skip
        raise InvalidInput(f"{name}: the picture is damaged: {error}") from error


class Media:
    """The files of a study on their way to people.

    A file inside SQLite can be read in pieces only while a read transaction is open, and a slow
    reader would keep the log from being emptied. So each file that somebody asks for is copied
    once, out of the study into a folder that is gone with the server, and served from there.
    """

    def __init__(self, study: Path) -> None:
        self._study = study
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="nearer-media-")
        self._mime: dict[str, str] = {}

    def file(self, sha: str) -> tuple[Path, str] | None:
        """Where a file is, and its MIME type; None where there is none."""
        with self._lock:
            path = Path(self._folder.name) / sha
            if sha not in self._mime:
                with closing(connect(self._study, read_only=True)) as db:
                    sql = "SELECT rowid, mime FROM media WHERE sha = ?"
                    row = db.execute(sql, (sha,)).fetchone()
                    if row is None:
                        return None
                    with (
                        db.blobopen("media", "bytes", row[0], readonly=True) as blob,
                        path.open("wb") as out,
                    ):
                        while piece := blob.read(_PIECE):
                            out.write(piece)
                self._mime[sha] = row[1]
            return path, self._mime[sha]

    def close(self) -> None:
        """Give the disk back."""
        self._folder.cleanup()


class Faces:
    """How an item looks from outside: under one number as the query, under another as a choice.

    In a catch trial one of the choices is the query itself. If it carried the same number or the
    same address, a program could tell a catch trial without looking. So everything has two faces,
    each with a number and a media address of its own that only this study can connect; they are
    the same in every trial, so that a browser fetches each picture at most twice. A program that
    compares the pictures or texts themselves still finds out: against that help checks of the
    researcher's own.

    Parameters
    ----------
    items
        What is compared, see `nearer.study.store.stored_items`.
    signer
        Its key makes the numbers.
    prefix
        The path below which the study is served.
    names
        Whether people may know what the items are called.
    """

    def __init__(
        self, items: list[dict[str, Any]], signer: Signer, *, prefix: str = "", names: bool = False
    ) -> None:
        self.items = items
        self.names = names
        self._prefix = prefix
        self._sha: dict[str, str] = {}
        self._signer = signer
        self.queries = [self._face(item, "query") for item in items]
        self.choices = [self._face(item, "choice") for item in items]
        self._item = {face["id"]: k for k, face in enumerate(self.choices)}

    def item(self, number: int) -> int | None:
        """Which item is shown under this number as a choice."""
        return self._item.get(number)

    def sha(self, address: str) -> str:
        """The file behind a media address; researchers' pages have the file's own."""
        return self._sha.get(address, address)

    def _face(self, item: dict[str, Any], role: str) -> dict[str, Any]:
        word = self._signer.tag(role, str(item["id"]))
        number = int.from_bytes(word[:6].encode(), "big")  # fits what JavaScript counts exactly
        src = item["src"]
        if src is not None:
            sha = src.removeprefix("/media/")
            address = self._signer.tag(f"media {role}", sha)
            self._sha[address] = sha
            src = f"{self._prefix}/media/{address}"
        return {**_as_seen(item, self.names), "id": number, "src": src}


def _as_seen(item: dict[str, Any], names: bool) -> dict[str, Any]:
    """An item as people see it: without its name, which is often a file's and tells too much.

    Examples
    --------
    >>> _as_seen({"kind": "image", "name": "liar_07", "alt": "liar_07"}, False)["alt"]
    ''
    >>> _as_seen({"kind": "image", "name": "liar_07", "alt": "a man"}, False)["alt"]
    'a man'
    """
    if names or item["kind"] == "text":
        return item
    alt = "" if item["alt"] == item["name"] else item["alt"]
    return {**item, "name": "", "text": "", "alt": alt}
