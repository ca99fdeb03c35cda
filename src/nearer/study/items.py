"""What is compared: texts, and files that are checked to be what their names say.

A file is taken only when its name, its first bytes and, for pictures, a full decoding agree. TIFF,
which browsers do not show, becomes PNG. A drawing (SVG) is kept as it is, since the headers of its
reply let it run and fetch nothing (see `nearer.study.app`).
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from xml.etree import ElementTree

from PIL import Image, ImageOps, UnidentifiedImageError

from nearer.errors import InvalidInput

_MAX_ITEMS = 10_000
_MAX_TEXT = 2_000
_MAX_BYTES = 64 * 1024 * 1024
_MAX_TOTAL = 2 * 1024 * 1024 * 1024
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
    return [name for name in names if not is_media(name) and not is_hidden(name)]


def is_media(name: str) -> bool:
    """Whether a file is of a kind that is taken, by its name."""
    return PurePath(name).suffix.lower() in SUFFIXES


def is_hidden(path: str) -> bool:
    """Whether a file or its folder is hidden."""
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
            names = sorted(i.filename for i in infos if is_media(i.filename))
            return read_files((n, _unpack(archive, n)) for n in names if not is_hidden(n))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidInput(f"{name}: is no ZIP that can be unpacked: {error}") from error


def _unpack(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member, read no further than a file may be long."""
    with archive.open(name) as member:
        return member.read(_MAX_BYTES + 1)


def check_items(items: list[Item], source: Path) -> list[Item]:
    """Refuse too few or too many items, and names that cannot be shown or told apart."""
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
