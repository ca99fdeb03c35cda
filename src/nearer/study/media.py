"""Pictures, sound and film: what a file is, told from its bytes and never from its name.

A file is taken only when its name, its first bytes and, for pictures, a full decoding agree.
Drawings (SVG) are rewritten so that they only draw, and TIFF, which browsers do not show, becomes
PNG without loss of what a screen can show. HTML is refused: it can carry scripts.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from nearer.errors import InvalidInput
from nearer.study.svg import clean_svg

__all__ = ["MAX_BYTES", "SUFFIXES", "is_media_name", "kind_of", "shown", "take_media"]

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
        from nearer.study.pictures import as_png, check_picture  # noqa: PLC0415 - slow to load

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
