"""How a thing looks from outside: under one number as the query, under another as a choice.

In a catch trial one of the choices is the query itself. If it carried the same number or the same
address, a program could tell a catch trial without looking. So everything has two faces, each with
a number and a media address of its own that only this study can connect; they are the same in
every trial, so that a browser fetches each picture at most twice. A program that compares the
pictures or texts themselves still finds out: against that help checks of the researcher's own.
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from PIL import Image, ImageOps, UnidentifiedImageError

from nearer.errors import InvalidInput
from nearer.study.auth import Signer
from nearer.study.config import part, read_yaml
from nearer.study.imports import column, read_lines, read_table
from nearer.study.svg import clean_svg

__all__ = [
    "MAX_BYTES",
    "SUFFIXES",
    "Faces",
    "Item",
    "as_png",
    "check_picture",
    "is_media_name",
    "kind_of",
    "left_out",
    "read_files",
    "read_items",
    "read_zip",
    "shown",
    "take_media",
]

_MAX_PIXELS = 50_000_000


def check_picture(name: str, content: bytes) -> None:
    """Refuse a picture that is damaged or too large."""
    with _opened(name, content) as image:
        image.load()


def as_png(name: str, content: bytes) -> bytes:
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
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InvalidInput(f"{name}: the picture is damaged: {error}") from error
    except Image.DecompressionBombError as error:
        raise InvalidInput(f"{name}: {error}") from error


MAX_BYTES = 64 * 1024 * 1024

#: suffix: MIME type
SUFFIXES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}


def is_media_name(name: str) -> bool:
    """Whether a file of this name would be looked at."""
    return PurePath(name).suffix.lower() in SUFFIXES


def kind_of(mime: str) -> str:
    """Image, audio or video."""
    return mime.partition("/")[0]


def shown(item: dict[str, Any], *, names: bool) -> dict[str, Any]:
    """An item as people see it: without its name, which is often a file's and tells too much.

    A description that was given stays; one that only repeats the name (as old study files hold)
    goes with it. The page then says where the thing stands instead.

    Examples
    --------
    >>> shown({"kind": "image", "name": "liar_07", "alt": "liar 07"}, names=False)["alt"]
    ''
    >>> shown({"kind": "image", "name": "liar_07", "alt": "a man"}, names=False)["alt"]
    'a man'
    """
    if names or item["kind"] == "text":
        return item
    told = PurePath(item["name"]).name
    repeats = item["alt"] in (item["name"], told, told.replace("_", " ").replace("-", " "))
    return {**item, "name": "", "text": "", "alt": "" if repeats else item["alt"]}


def take_media(name: str, content: bytes) -> tuple[str, bytes]:
    """The MIME type of a file, and its content as browsers are to get it.

    One that is not what its name says is refused.

    Examples
    --------
    >>> take_media("a.png", b"<script>alert(1)</script>")
    Traceback (most recent call last):
    nearer.errors.InvalidInput: a.png: the content is not image/png; ...
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"{name}: files of type {suffix or 'none'} are not taken; use one of "
            + ", ".join(SUFFIXES)
        )
    if len(content) > MAX_BYTES:
        raise InvalidInput(
            f"{name}: has {len(content)} bytes; at most {MAX_BYTES} are taken, make it smaller"
        )
    mime = SUFFIXES[suffix]
    if mime == "image/svg+xml":
        return mime, clean_svg(name, content)
    found = _sniff(content)
    if found != mime and (found, mime) != ("video/mp4", "audio/mp4"):
        raise InvalidInput(
            f"{name}: the content is not {mime}; it looks like {found or 'something else'}. "
            "Give the file the right name or convert it"
        )
    if mime.startswith("image/"):
        if mime == "image/tiff":
            return "image/png", as_png(name, content)
        check_picture(name, content)
    return mime, content


def _sniff(content: bytes) -> str | None:
    head = content[:64]
    riff = head[8:12] if head[:4] == b"RIFF" else b""
    signs = {
        "image/png": head.startswith(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg": head.startswith(b"\xff\xd8\xff"),
        "image/gif": head[:6] in (b"GIF87a", b"GIF89a"),
        "image/webp": riff == b"WEBP",
        "audio/wav": riff == b"WAVE",
        "audio/ogg": head.startswith(b"OggS"),
        "audio/flac": head.startswith(b"fLaC"),
        "audio/mpeg": head.startswith(b"ID3")
        or (len(head) > 2 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2),
        "image/tiff": head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        "image/avif": head[4:12] in (b"ftypavif", b"ftypavis"),
        "video/mp4": head[4:8] == b"ftyp",
        "video/webm": head.startswith(b"\x1a\x45\xdf\xa3"),
    }
    return next((mime for mime, fits in signs.items() if fits), None)


_TEXT_COLUMNS = ("text", "label", "name", "item", "target", "word")
_FILE_COLUMNS = ("file", "filename", "path", "image", "audio", "video")
_ALT_COLUMNS = ("alt", "description")
_MAX_ITEMS = 10_000
_MAX_TEXT = 2_000
_MAX_TOTAL = 2 * 1024 * 1024 * 1024


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
    if source.is_dir():
        items = read_files(
            (p.relative_to(source).as_posix(), p.read_bytes())
            for p in sorted(source.rglob("*"))
            if p.is_file() and not p.name.startswith(".") and is_media_name(p.name)
        )
    elif not source.is_file():
        raise InvalidInput(f"{source}: no such file or folder")
    elif source.suffix.lower() == ".zip":
        items = read_zip(source.read_bytes(), source.name)
    elif source.suffix.lower() in (".csv", ".tsv"):
        items = _read_table(source)
    elif source.suffix.lower() == ".txt":
        items = [Item(line, "text", line) for line in read_lines(source)]
    elif source.suffix.lower() in (".yaml", ".yml"):
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
    return [name for name in names if not is_media_name(name) and not _hidden(name)]


def read_files(files: Iterable[tuple[str, bytes]]) -> list[Item]:
    """Media files, each checked to be what its name says; the name without suffix is the label."""
    items = []
    for name, given in files:
        mime, content = take_media(name, given)
        label = PurePosixPath(name).with_suffix("").as_posix()
        items.append(Item(label, kind_of(mime), "", "", mime, content))
    return items


def read_zip(content: bytes, name: str) -> list[Item]:
    """The media files in a ZIP. Nothing is unpacked to disk; paths that leave it are refused."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise InvalidInput(f"{name}: is not a ZIP file: {error}") from error
    with archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        for info in infos:
            path = PurePosixPath(info.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or re.match(r"^[A-Za-z]:", info.filename):
                raise InvalidInput(f"{name}: the path {info.filename!r} leaves the archive")
            if info.file_size > MAX_BYTES:
                raise InvalidInput(
                    f"{name}: {info.filename} has {info.file_size} bytes; at most {MAX_BYTES}"
                )
        if sum(info.file_size for info in infos) > _MAX_TOTAL:
            raise InvalidInput(f"{name}: unpacks to more than {_MAX_TOTAL} bytes")
        wanted = sorted(
            (info for info in infos if is_media_name(info.filename) and not _hidden(info.filename)),
            key=lambda info: info.filename,
        )
        try:
            return read_files((info.filename, _unpack(archive, info)) for info in wanted)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise InvalidInput(f"{name}: cannot be unpacked: {error}") from error


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member, read no further than it says it is long."""
    with archive.open(info) as member:
        content = member.read(info.file_size + 1)
    if len(content) != info.file_size:
        raise InvalidInput(f"{info.filename}: is longer than the archive says")
    return content


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(path).parts)


def _read_table(source: Path) -> list[Item]:
    columns, rows = read_table(source)
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
        alt = (row.get(alt_column) or "") if alt_column else ""
        label = (row.get(text_column) or "").strip() if text_column else ""
        if file_column is None:
            items.append(Item(label, "text", label, alt))
            continue
        path = source.parent / (row[file_column] or "")
        if not path.is_file():
            raise InvalidInput(f"{source}: names {row[file_column]!r}, which is not beside it")
        (item,) = read_files([(path.name, path.read_bytes())])
        items.append(Item(label or item.name, item.kind, label, alt, item.mime, item.content))
    return items


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
    name = shown[1]
    path = source.parent / PurePosixPath(name.replace("/static/targets/", ""))
    if "://" in name or ".." in path.parts or not path.is_file():
        raise InvalidInput(
            f"{source}: the target {target!r} shows {name!r}, which is not a file beside it; "
            "put the file there, so that the study works without the network"
        )
    return read_files([(path.name, path.read_bytes())])[0]


def _plain(markup: str) -> str:
    """HTML as text: tags go, entities are resolved."""
    return html.unescape(re.sub(r"</?[a-zA-Z][^>]*>", "", markup)).strip()


def _checked(items: list[Item], source: str) -> list[Item]:
    if len(items) < 3:
        raise InvalidInput(f"{source}: holds {len(items)} items; comparing needs at least 3")
    if len(items) > _MAX_ITEMS:
        raise InvalidInput(f"{source}: holds {len(items)} items; at most {_MAX_ITEMS} are taken")
    seen: set[str] = set()
    for item in items:
        if not item.name or len(item.name) > _MAX_TEXT or "\x00" in item.name:
            raise InvalidInput(
                f"{source}: the item {item.name[:40]!r} must have 1 to {_MAX_TEXT} characters"
            )
        if item.name in seen:
            raise InvalidInput(f"{source}: two items are called {item.name!r}; rename one")
        seen.add(item.name)
    return items


class Faces:
    """The two faces of every item of a study.

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
        self,
        items: list[dict[str, Any]],
        signer: Signer,
        *,
        prefix: str = "",
        names: bool = False,
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
        return {**shown(item, names=self.names), "id": number, "src": src}
