"""Media on their way to people: from the disk, a piece at a time, however slowly they are taken.

A file inside SQLite can be read in pieces only while a read transaction is open, and one that a
slow reader keeps open would keep the log from being emptied. So each file that somebody asks for
is copied once, out of the study into one nameless file beside it, from which any number of people
are served: what is held in memory is a piece for each of them, never a file. The nameless file
takes as much disk as what was asked for, and is gone with the server, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from starlette.responses import Response, StreamingResponse

from nearer.study.store import connect

__all__ = ["Spool"]

#: bytes a person holds in memory at a time; as many again wait in the socket's buffer
_PIECE = 64 * 1024
_COPIED = 1024 * 1024
_CACHE_KIB = 2_048
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class _Spooled(NamedTuple):
    start: int
    size: int
    mime: str


class Spool:
    """The media of one study, ready to be sent.

    Parameters
    ----------
    path
        The study's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._known: dict[str, _Spooled] = {}
        self._end = 0
        self._file = tempfile.TemporaryFile(  # noqa: SIM115 - open as long as the study is
            dir=self._path.parent, buffering=0
        )

    def close(self) -> None:
        """Give the disk back."""
        self._file.close()

    async def reply(self, sha: str, wanted: str = "", *, body: bool = True) -> Response:
        """A file, or the part of it that a range header wants; 404 where there is none."""
        found = self._known.get(sha) or await asyncio.to_thread(self._fetch, sha)
        if found is None:
            return Response("no such file", 404)
        first, last, status = _span(wanted, found.size)
        headers = {"cache-control": "private, max-age=31536000", "accept-ranges": "bytes"}
        if status == 416:
            return Response(status_code=416, headers={"content-range": f"bytes */{found.size}"})
        if status == 206:
            headers["content-range"] = f"bytes {first}-{last}/{found.size}"
        headers["content-length"] = str(last - first + 1)
        if not body:
            return Response(None, status, headers, found.mime)
        pieces = self._pieces(found.start + first, last - first + 1)
        return StreamingResponse(pieces, status, headers, found.mime)

    async def _pieces(self, start: int, left: int) -> AsyncIterator[bytes]:
        while left > 0:
            piece = await asyncio.to_thread(self._read, start, min(left, _PIECE))
            if not piece:  # the reply ends short, which its length tells
                return
            yield piece
            start += len(piece)
            left -= len(piece)

    def _read(self, start: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, start)

    def _fetch(self, sha: str) -> _Spooled | None:
        """Copy a file out of the study, once, whoever else asks for it meanwhile."""
        with self._lock:
            if sha in self._known:
                return self._known[sha]
            db = connect(self._path, read_only=True)
            try:
                db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                row = db.execute("SELECT rowid, mime FROM media WHERE sha = ?", (sha,)).fetchone()
                if row is None:
                    return None
                with db.blobopen("media", "bytes", row[0], readonly=True) as blob:
                    size = len(blob)
                    for at in range(0, size, _COPIED):
                        self._write(blob.read(_COPIED), self._end + at)
            finally:
                db.close()
            self._known[sha] = _Spooled(self._end, size, row[1])
            self._end += size
            return self._known[sha]

    def _write(self, content: bytes, at: int) -> None:
        while content:
            done = os.pwrite(self._file.fileno(), content, at)
            content, at = content[done:], at + done


def _span(wanted: str, size: int) -> tuple[int, int, int]:
    """First byte, last byte and status that a range header means; one it does not know is none."""
    found = _RANGE.fullmatch(wanted)
    if found is None or found.groups() == ("", ""):
        return 0, size - 1, 200
    if not found[1]:
        first, last = max(size - int(found[2]), 0), size - 1
    else:
        first = int(found[1])
        last = min(int(found[2]), size - 1) if found[2] else size - 1
    return first, last, 206 if first <= last else 416
