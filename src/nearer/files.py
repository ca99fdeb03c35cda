"""Files at the edge: unpacked by their suffix on the way in, whole or not at all on the way out.

A file is read into memory at once, since every format here is smaller than what is made of it. A
file is written beside its destination and moved there when it is complete, so that an interrupted
program leaves either the old file or the new one.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path

from nearer.errors import InvalidInput

__all__ = ["content_suffix", "read_bytes", "sha256", "write_bytes"]

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


def sha256(path: str | os.PathLike[str]) -> str:
    """The SHA-256 sum of a file as it lies on disk."""
    with Path(path).open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
