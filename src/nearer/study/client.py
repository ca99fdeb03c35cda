"""A small HTTP client that many simulated people can share a core with.

One connection a person, kept open; JSON in and out. It speaks just enough HTTP/1.1 for our own
server, at a tenth of what a general client costs.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

__all__ = ["Client", "Reply"]


class Reply:
    """Status and body."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.status = status
        self.body = body
        self.headers = headers

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class Client:
    """A connection to a server on this machine; opened again when it was lost."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._host = host
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def close(self) -> None:
        """End the connection; the next call opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request; `OSError` or `EOFError` when there is no reply."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            content = b"" if body is None else json.dumps(body).encode()
            lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}:{self._port}"]
            lines += [f"{key}: {value}" for key, value in (headers or {}).items()]
            if body is not None:
                lines += ["content-type: application/json", f"content-length: {len(content)}"]
            writer.write("\r\n".join([*lines, "", ""]).encode() + content)
            await writer.drain()
            return await _read(reader)
        except (OSError, EOFError, asyncio.CancelledError):
            self.close()
            raise


async def _read(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in head[1:]:
        key, _, value = line.partition(":")
        headers[key.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Reply(int(head[0].split()[1]), body, headers)
