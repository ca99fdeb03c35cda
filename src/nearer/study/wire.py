"""Connections that cannot be used against the server.

uvicorn's protocol takes headers of any length and waits for them for ever; whoever opens enough
connections and says nothing closes the door for everybody. Here the head of a request has a longest
size and a longest time, its body a longest time, and a reply that nobody reads is given up. When
there are more connections than the process may hold, those are closed that have waited longest
without a request in work: somebody who sends a whole request at once, as every browser does, is
hardly ever among them.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["UPLOADS", "Wire", "may_hold"]

_HEAD_BYTES = 32 * 1024
_HEAD_SECONDS = 10.0
_BODY_SECONDS = 30.0
_UPLOAD_SECONDS = 3600.0
UPLOADS = "/api/researcher/items"  # where long bodies are expected
_UNREAD_SECONDS = 60.0
_RESERVE = 128  # files that the server itself needs: study, workers, pages
_MANY = 8192
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


def may_hold() -> int:
    """Connections this process may hold; asks the system for more files if it has few."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else min(hard, _MANY)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return max(min(soft, _MANY) - _RESERVE, 32)


class Wire(HttpToolsProtocol):
    """One connection."""

    most: ClassVar[int] = 1024
    _open: ClassVar[set[Wire]] = set()
    _idle: ClassVar[dict[Wire, None]] = {}  # without a request in work, longest first

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head, self._in_body = True, False
        self._head = 0  # bytes of the head that is coming
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None  # until the head, or the body, must be here
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody connected."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_HEAD_SECONDS, self._hang_up)
        Wire._open.add(self)
        Wire._idle[self] = None
        while len(Wire._open) > Wire.most and Wire._idle:
            next(iter(Wire._idle))._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody went away."""
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._refused:
            return
        super().data_received(data)
        if self._refused or self.transport.is_closing():
            return
        if self._in_head:
            self._head += len(data)
            if self._head > _HEAD_BYTES:
                self._refuse()
            elif self._timer is None:
                self._timer = self.loop.call_later(_HEAD_SECONDS, self._hang_up)
        elif self._in_body and self._timer is None:
            uploads = self.scope["path"].endswith(UPLOADS)
            seconds = _UPLOAD_SECONDS if uploads else _BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self._hang_up)

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is whole."""
        self._in_head, self._in_body, self._head = False, True, 0
        self._stop_timer()
        if len(self.url) + sum(len(k) + len(v) for k, v in self.headers) > _HEAD_BYTES:
            self._refuse()
            return
        Wire._idle.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a request's body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._in_body = False
        self._stop_timer()
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """A reply was sent; the next request may come."""
        super().on_response_complete()
        if self in Wire._open and not self.pipeline:
            Wire._idle[self] = None

    def pause_writing(self) -> None:
        """The other side does not read as fast as we write."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(_UNREAD_SECONDS, self._abort)

    def resume_writing(self) -> None:
        """It has read some."""
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None
        super().resume_writing()

    def _refuse(self) -> None:
        self._refused = True
        self.transport.write(_TOO_LONG)
        self._hang_up()

    def _hang_up(self) -> None:
        self._forget()
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def _abort(self) -> None:
        self._forget()
        self.transport.abort()

    def _forget(self) -> None:
        Wire._open.discard(self)
        Wire._idle.pop(self, None)
        self._stop_timer()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
