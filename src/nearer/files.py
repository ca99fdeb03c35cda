"""Files at the edge: unpacked by their suffix on the way in, whole or not at all on the way out.

A file is read into memory at once, since every format here is smaller than what is made of it. A
file is written beside its destination and moved there when it is complete, so that an interrupted
program leaves either the old file or the new one; files that belong together are moved when all of
them are there. Tables are UTF-8, comma and newline, numbers with all their digits.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import os
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput

__all__ = [
    "content_suffix",
    "positions_text",
    "read_bytes",
    "sha256",
    "table_text",
    "write_bytes",
    "write_files",
    "written_whole",
]

_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}
_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),  # the same content, the same file
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def content_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that says what a file holds, in lower case, without that of a compression.

    Examples
    --------
    >>> content_suffix("answers.CSV.gz")
    '.csv'
    """
    name = Path(path)
    if name.suffix.lower() in _UNPACK:
        name = name.with_suffix("")
    return name.suffix.lower()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file, unpacked when its name ends in ``.gz``, ``.xz`` or ``.bz2``."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"{file}: there is no such file; check the path") from None
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read ({error.strerror}); check the path") from error
    unpack = _UNPACK.get(file.suffix.lower())
    if unpack is None:
        return data
    try:
        return unpack(data)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise InvalidInput(
            f"{file}: is not a whole {file.suffix} file ({error}); get it again, or rename it if "
            "it is not compressed"
        ) from error


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all, packed when its name ends in ``.gz``, ``.xz``, ``.bz2``."""
    file = Path(path)
    data = _PACK.get(file.suffix.lower(), bytes)(data)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as sink:
            sink.write(data)
        draft.replace(file)
    except OSError as error:
        raise InvalidInput(
            f"{file}: cannot be written ({error.strerror}); the folder must exist and be writable"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def written_whole(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write files into; they are moved to `folder` when all of them are there."""
    part: Path | None = None
    try:
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
        yield part
        for file in part.iterdir():
            file.replace(Path(folder, file.name))
    except OSError as error:
        raise InvalidInput(
            f"{folder}: cannot be written ({error.strerror}); the folder must exist and be writable"
        ) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def write_files(folder: str | os.PathLike[str], contents: Mapping[str, str | bytes]) -> list[Path]:
    r"""Write files that belong together, name → content: all of them or none.

    Examples
    --------
    >>> import tempfile
    >>> [file] = write_files(tempfile.mkdtemp(), {"positions.csv": positions_text([[0.5, 2.0]])})
    >>> file.read_text()
    'object,label,x1,x2\n0,0,0.5,2.0\n'
    """
    with written_whole(folder) as part:
        for name, content in contents.items():
            data = content.encode() if isinstance(content, str) else content
            (part / name).write_bytes(data)
    return [Path(folder, name) for name in contents]


def table_text(header: Sequence[str], rows: Iterable[Iterable[Any]], separator: str = ",") -> str:
    r"""A table as text, quoted where needed.

    Examples
    --------
    >>> table_text(["object", "label"], [(0, "salt, coarse")])
    'object,label\n0,"salt, coarse"\n'
    """
    kept = list(rows)
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC):
        sink = io.StringIO(newline="")
        writer = csv.writer(sink, delimiter=separator, lineterminator="\n", quoting=quoting)
        writer.writerow(header)
        writer.writerows(kept)
        # the csv module sees no need for quotes around a lone carriage return; its reader does
        if "\r" not in sink.getvalue():
            break
    return sink.getvalue()


def positions_text(
    positions: Any,
    labels: Sequence[str] | None = None,
    covariances: NDArray[np.float64] | None = None,
) -> str:
    """Positions as every command and export writes them: ``object,label,x1…``, then ``sd1…``.

    Parameters
    ----------
    positions
        ``(n, d)``.
    labels
        What objects are called; their numbers where None.
    covariances
        ``(n, d, d)``; their standard deviations are written where they are known.
    """
    X = np.asarray(positions, dtype=np.float64)
    n, d = X.shape
    header = ["object", "label", *(f"x{j + 1}" for j in range(d))]
    columns = [range(n), range(n) if labels is None else labels, *X.T.tolist()]
    if covariances is not None:
        header += [f"sd{j + 1}" for j in range(d)]
        columns += [np.sqrt(covariances[:, j, j]).tolist() for j in range(d)]
    return table_text(header, zip(*columns, strict=True))


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 sum of a file as it lies on disk."""
    with Path(path).open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
