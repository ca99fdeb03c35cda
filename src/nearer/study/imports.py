"""What is compared, read from what researchers have.

A folder or a ZIP of pictures, sound or film; a CSV with a column of texts or of file names; a text
file with one item a line; or the ``init.yaml`` of Salmon (Sievert, Nowak and Rogers 2023), whose
targets, instructions, ``max_queries`` and skip button are taken over. Everything is checked before
anything is kept.
"""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from nearer.errors import InvalidInput
from nearer.study.config import part, read_yaml
from nearer.study.media import MAX_BYTES, is_media_name, kind_of, take_media
from nearer.study.spreadsheets import column, read_lines, read_table

__all__ = ["Item", "left_out", "read_files", "read_items", "read_zip"]

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
