"""Reading and writing files.

A file is read into memory at once, since its bytes are fewer than those of the arrays made from it.
Sizes are bounded, as docs/files.md says: a file of two kilobytes can demand all memory. First bytes
say what a file is, since names are often wrong. A file is written beside its destination and moved
there when it is complete, so that an interrupted program leaves either the old file or the new one.
"""

from __future__ import annotations

import base64
import bz2
import codecs
import csv
import errno
import gzip
import hashlib
import io
import json
import lzma
import math
import os
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput, NearerError

_PACKERS: dict[str, Any] = {".gz": gzip, ".xz": lzma, ".bz2": bz2}
_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"BZh": ".bz2"}
# How a file that is neither text nor a table begins, what it is, and the remedy.
_NO_TEXT = {
    b"PK\3\4": ("a zip archive", "unpack it and read a file of it"),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "save it as CSV (UTF-8) and read that"),
    b"SQLite format 3": ("an SQLite file", "export its answers; `nearer study export` does"),
    b"%PDF": ("a PDF", "save its table as CSV"),
    b"<!DOCTYPE": ("a web page", "get the file that it shows or links to"),
    b"<html": ("a web page", "get the file that it shows or links to"),
}
_TEXT = "save the file as UTF-8 text"
# Packages that are installed only with an extra.
_EXTRAS = {"pyarrow": "parquet", "h5py": "hdf5", "httpx2": "llm", "tenacity": "llm"}
_EXTRAS |= {"distributed": "dask", "torch": "gpu"}


@contextmanager
def one_message(name: str | Path, what: str, remedy: str = "get it again") -> Iterator[None]:
    """Turn any exception of a library into one message."""
    try:
        yield
    except NearerError:
        raise
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        extra = f"'nearer[{_EXTRAS[package]}]'" if package in _EXTRAS else package
        raise InvalidInput(f"{name}: {what} needs {package}; pip install {extra}") from None
    except Exception as error:
        why = " ".join(str(error).split())
        raise InvalidInput(f"{name}: cannot be read as {what} ({why}); {remedy}") from error


def as_path(path: Any) -> Path:
    """A path; an empty one, which would be the current folder, is refused."""
    with suppress(TypeError, UnicodeEncodeError):  # a name of a file has no half of a character
        name = b"" if isinstance(path, bytes) else os.fsencode(path)
        if name and b"\0" not in name and max(map(len, name.split(b"/"))) < 256:
            return Path(path)
    raise InvalidInput(f"{repr(path)[:60]}: is no path of a file; give one, such as a text")


def content_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that says what a file holds, in lower case, without that of a compression."""
    name = as_path(path)
    if name.suffix.lower() in _PACKERS:
        name = name.with_suffix("")
    return name.suffix.lower()


def refuse_larger(path: str | os.PathLike[str], size: int) -> None:
    """Refuse a file that is, unpacks to, or claims to hold more bytes than may be in memory."""
    most = os.environ.get("NEARER_MAX_BYTES") or str(4 << 30)
    if not most.isdecimal():
        rule = "must be a whole number, such as 8000000000"
        raise InvalidInput(f"NEARER_MAX_BYTES={most[:60]}: {rule}")
    if size > (limit := int(most)):
        rule = f"holds {size:,} bytes or more, and {limit:,} are allowed"
        remedy = "if you trust it, set the environment variable NEARER_MAX_BYTES to a larger number"
        raise InvalidInput(f"{os.fspath(path)}: {rule}; {remedy}")


def _content(path: Path, stream: IO[bytes]) -> bytes:
    """All that a stream holds, read in parts so that too much is refused before it is in memory."""
    parts, size = [], 0
    while part := stream.read(1 << 20):
        size += len(part)
        refuse_larger(path, size)
        parts.append(part)
    return b"".join(parts)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file, unpacked if it is packed by gzip, xz or bzip2."""
    file = as_path(path)
    try:
        with file.open("rb") as source:
            refuse_larger(file, os.fstat(source.fileno()).st_size)  # before it is there in part
            data = _content(file, source)
    except FileNotFoundError:
        raise InvalidInput(f"{file}: there is no such file; check the path") from None
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read ({error.strerror}); check the path") from error
    suffix = next((s for begins, s in _PACKED.items() if data.startswith(begins)), None)
    if suffix == ".bz2" and data[4:10] != b"1AY&SY":
        suffix = None  # a text that begins with these letters
    suffix = suffix or file.suffix.lower()
    if suffix not in _PACKERS:
        return data
    remedy = "get it again, or rename it if it is not compressed"
    packed = io.BytesIO(data)
    with one_message(file, f"a {suffix} file", remedy), _PACKERS[suffix].open(packed) as source:
        return _content(file, source)


def open_zip(path: str | os.PathLike[str], data: bytes) -> zipfile.ZipFile:
    """A ZIP archive whose members together are not too large."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    refuse_larger(path, sum(member.file_size for member in archive.infolist()))
    return archive


def decoded(data: bytes, path: str | os.PathLike[str], encoding: str | None = None) -> str:
    """Bytes as text: UTF-8, or UTF-16 with a mark; `encoding` is tried if both fail."""
    for begins, (what, remedy) in _NO_TEXT.items():
        if data.startswith(begins):
            raise InvalidInput(f"{os.fspath(path)}: is {what}, no table or JSON; {remedy}")
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        if encoding is None:
            rule = f"byte {error.start} is not {'UTF-16' if wide else 'UTF-8'}; {_TEXT}"
            raise InvalidInput(f"{os.fspath(path)}: {rule}") from error
        text = data.decode(encoding, errors="replace")
    if "\0" in text:
        rule = f"character {text.index(chr(0))} is NUL; {_TEXT}"
        raise InvalidInput(f"{os.fspath(path)}: {rule}")
    return text


def read_numpy(
    path: str | os.PathLike[str], remedy: str = "save it with numpy.save or numpy.savez"
) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, or that of an ``.npy`` file as ``X``; none is unpickled."""
    data = read_bytes(path)
    try:
        if data.startswith(b"PK"):
            open_zip(path, data).close()  # refuses too large files
        held = np.load(io.BytesIO(data), allow_pickle=False)
        arrays = {"X": held} if isinstance(held, np.ndarray) else dict(held)
        if not all(isinstance(x, np.ndarray) and x.size <= x.nbytes for x in arrays.values()):
            raise ValueError("a member is no array, or one of values without bytes")
        return arrays
    except InvalidInput:
        raise
    except Exception as error:  # a damaged file makes NumPy, zipfile and zlib raise all kinds
        why = f"damaged: {error}"
        if not data.startswith((b"PK", b"\x93NUMPY")):
            why = "it does not begin like one"
        elif "pickle" in str(error):  # NumPy's message would say how to run it
            why = "it holds Python objects"
        rule = f"is not a NumPy file of plain numbers ({why})"
        raise InvalidInput(f"{path}: {rule}; {remedy}") from error


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all, packed when its name ends in ``.gz``, ``.xz``, ``.bz2``.

    The target of a link is written, and an existing file keeps its permissions.
    """
    file = as_path(path)
    if (packer := _PACKERS.get(file.suffix.lower())) is not None:
        same = {"mtime": 0} if packer is gzip else {}  # the same content, the same file
        data = packer.compress(data, **same)
    target = Path(os.path.realpath(file))
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        there = target.exists()
        if there and not target.is_file() and not target.is_dir():
            raise InvalidInput(f"{file}: is a device or a pipe; name a file")
        with part.open("xb") as sink:
            sink.write(data)
        if there:
            shutil.copymode(target, part)
        part.replace(target)
    except OSError as error:
        raise cannot_be_written(file, error) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def cannot_be_written(path: str | os.PathLike[str], error: Exception) -> InvalidInput:
    """The error of a file that cannot be written, with its cause and the remedy."""
    remedy = "the folder must exist and be writable"
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space, or write elsewhere"
    why = getattr(error, "strerror", None) or error
    return InvalidInput(f"{path}: cannot be written ({why}); {remedy}")


def write_files(folder: str | os.PathLike[str], contents: Mapping[str, str | bytes]) -> list[Path]:
    """Write files that belong together, name → content: all of them or none."""
    try:
        with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as part:
            for name, content in contents.items():
                data = content.encode() if isinstance(content, str) else content
                Path(part, name).write_bytes(data)
            return [Path(part, name).replace(Path(folder, name)) for name in contents]
    except OSError as error:
        raise cannot_be_written(folder, error) from error


def table_text(header: Sequence[str], rows: Iterable[Iterable[Any]], separator: str = ",") -> str:
    """A table as text, quoted where needed."""
    lines = list(rows)
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC):
        sink = io.StringIO(newline="")
        writer = csv.writer(sink, delimiter=separator, lineterminator="\n", quoting=quoting)
        writer.writerow(header)
        writer.writerows(lines)
        # the csv module sees no need for quotes around a lone carriage return; its reader does
        if "\r" not in sink.getvalue():
            break
    return sink.getvalue()


def positions_text(
    positions: Any,
    labels: Sequence[str] | None = None,
    covariances: NDArray[np.float64] | None = None,
) -> str:
    """Positions as every command and export writes them: ``object,label,x1…``, then ``sd1…``."""
    columns: dict[str, Any] = {"object": range(len(positions))}
    columns["label"] = columns["object"] if labels is None else labels
    for name, numbers in position_columns(positions, covariances).items():
        columns[name] = numbers.tolist()
    return table_text([*columns], zip(*columns.values(), strict=True))


def position_columns(positions: Any, covariances: Any = None) -> dict[str, NDArray[np.float64]]:
    """Coordinates ``x1`` …, and standard deviations ``sd1`` … where covariances are known."""
    columns = {f"x{j + 1}": x for j, x in enumerate(np.asarray(positions, dtype=np.float64).T)}
    deviations = () if covariances is None else np.sqrt(np.einsum("njj->jn", covariances))
    return columns | {f"sd{j + 1}": sd for j, sd in enumerate(deviations)}


def json_text(value: Any, **how: Any) -> str:
    """JSON as every command prints and writes it; nan and infinity become null."""
    return json.dumps(_without_nan(value), allow_nan=False, **how)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def templates(package: str, folder: str, *, autoescape: bool) -> Any:
    """The Jinja templates in a folder of a package."""
    import jinja2  # noqa: PLC0415 - slow to import

    how: dict[str, Any] = {"undefined": jinja2.StrictUndefined, "autoescape": autoescape}
    how |= {"trim_blocks": True, "lstrip_blocks": True}
    return jinja2.Environment(loader=jinja2.PackageLoader(package, folder), **how)


def data_url(content: bytes, kind: str) -> str:
    """A file as text that a page or a request can hold; `kind` is its media type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 sum of a file as it lies on disk."""
    with Path(path).open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def lock_file(path: Path, *, wait: bool = False) -> IO[bytes]:
    """Open a file, made if there is none, that no other process can lock until it is closed.

    It is locked itself, since a second file beside it could be deleted and made again between two
    processes. If another process holds the lock, `wait` waits for it; else `BlockingIOError`.
    """
    path.touch(mode=0o600)  # answers of people are private to the file's owner
    file = path.open("ab")
    try:
        import fcntl  # noqa: PLC0415 - not on Windows, where SQLite's own locks must do

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except ImportError:
        pass
    except OSError:
        file.close()
        raise
    return file


def parquet_texts(opened: Any) -> tuple[list[str], list[str]]:
    """The columns of texts of a Parquet file: those that can be read folded, and the others.

    Folded, a text that occurs many times is in memory once; delta encoding cannot be read so.
    """
    meta, schema = opened.metadata, opened.schema
    texts = [j for j in range(len(schema)) if schema.column(j).physical_type == "BYTE_ARRAY"]
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    delta = {j for j in texts for group in groups if "DELTA" in str(group.column(j).encodings)}
    folded = [schema.column(j).path for j in texts if j not in delta]
    return folded, [schema.column(j).path for j in delta]


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files that a path means: itself, or those in the folder and its folders."""
    if path.is_dir():
        inside = [*path.glob("*.parquet"), *path.glob("*/*.parquet")]
        parquet = sorted(file for file in inside if file.is_file())
        if not parquet:
            raise InvalidInput(f"{path}: is a folder without Parquet files (*.parquet)")
        return parquet
    return [path] if content_suffix(path) == ".parquet" else []
