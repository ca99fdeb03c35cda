"""What every page and every reply has in common: headers, limits, errors, templates.

Sizes and times of everything that precedes a login are bounded. uvicorn with h11 bounds the head of
a request and the trailers of a body by ``h11_max_incomplete_event_size``, and the system gives up a
reply that nobody reads (``TCP_USER_TIMEOUT``). Bodies are bounded by `Guard`. No server bounds the
time that a head or a body takes, nor makes room when too many connections say nothing: that is
`hang_up_on_silent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sqlite3
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import jinja2
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearer.errors import InvalidInput
from nearer.study.auth import Rate, Signer
from nearer.study.conductor import Conductor
from nearer.study.items import Faces, Media
from nearer.study.rows import Refusal, StoreTrouble
from nearer.study.store import Change, Facts, Store
from nearer.study.words import read_words

if TYPE_CHECKING:
    from nearer.study.login import Guesses


T = TypeVar("T")
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_PAGES_MAY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'self'"
)
#: a drawing draws: it runs no script and fetches nothing, also when it is opened by itself
_MEDIA_MAY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
_UPLOADS = "/api/researcher/items"  # where long bodies are expected, after a login
_BODY, _UPLOAD = 256 * 1024, 512 * 1024 * 1024  # bytes
_BODY_SECONDS, _UPLOAD_SECONDS = 30.0, 3600.0
HEAD_BYTES = 32 * 1024
_HEAD_SECONDS = 10.0
_UNREAD_SECONDS = 60
_REPORT_SECONDS = 30.0  # counting over 100,000 answers takes a second
_FEW = 50  # people of whom a report costs nothing


@dataclass
class Study:
    """A study that is being served."""

    store: Store
    conductor: Conductor | None
    signer: Signer
    clock: Callable[[], float]
    guesses: Guesses
    media: Media
    #: names of its cookies, so that several studies on one host leave each other alone
    cookie: str
    joins: Rate = field(default_factory=lambda: Rate(300))
    #: the one-time set-up token; None once it was used
    setup: str | None = None
    #: the path below which it is served, as /flowers; empty at the top
    prefix: str = ""
    _faces: Faces | None = None
    _people: tuple[float, list[SimpleNamespace]] = (-_REPORT_SECONDS, [])

    def people(self, db: sqlite3.Connection) -> list[SimpleNamespace]:
        """How people do, counted at most every half minute, as an overview needs it."""
        now = time.monotonic()
        if now - self._people[0] >= _REPORT_SECONDS or len(self._people[1]) < _FEW:
            from nearer.study.statistics import people_report  # noqa: PLC0415 - loads pandas

            self._people = (now, people_report(db))
        return self._people[1]

    async def write(self, change: Change[T]) -> T:
        """Have a change made and wait for it, without holding others up."""
        return await asyncio.wrap_future(self.store.submit(change))

    @property
    def facts(self) -> Facts:
        """Settings, items and whether it is open, as of the last commit."""
        return self.store.facts

    @property
    def faces(self) -> Faces:
        """How the items look from outside."""
        items, names = self.facts.items, self.facts.config.show_names
        found = self._faces
        if found is None or found.items is not items or found.names != names:
            found = self._faces = Faces(items, self.signer, prefix=self.prefix, names=names)
        return found

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items as researchers see them, with the files' own addresses."""
        return [{**i, "src": i["src"] and self.prefix + i["src"]} for i in self.facts.items]

    @property
    def trouble(self) -> str | None:
        """Why something does not work just now."""
        return self.store.trouble or (self.conductor.trouble if self.conductor else None)


def current(request: Request) -> Study:
    """The study that a request is about."""
    study: Study = request.app.state.study
    return study


async def _current(request: Request) -> Study:
    """The same as a dependency; one that is no coroutine would be run in another thread."""
    return current(request)


Here = Annotated[Study, Depends(_current)]


class Guard:
    """Adds the security headers to every reply and refuses bodies that are too long or too slow.

    A HEAD request is answered as GET would be, without the body; and what is served below a path
    answers there, whether or not a proxy took the path away.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        uploads = scope["path"].endswith(_UPLOADS)
        left = limit = _UPLOAD if uploads else _BODY
        ends = time.monotonic() + (_UPLOAD_SECONDS if uploads else _BODY_SECONDS)
        asked_for_head = scope["method"] == "HEAD"
        more = any(k in (b"content-length", b"transfer-encoding") for k, _ in scope["headers"])
        study: Study = scope["app"].state.study
        media = "/media/" in scope["path"]
        headers = _headers(study.facts.config.frame_ancestors, media)

        async def guarded_receive() -> Message:
            nonlocal left, more
            if not more:  # the body is here; what may still come is that the person goes away
                return await receive()
            try:
                async with asyncio.timeout(ends - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "the request took too long; send it again") from None
            left -= len(message.get("body", b""))
            more = message.get("more_body", False)
            if left < 0:
                raise HTTPException(413, f"the request is longer than {limit} bytes")
            return message

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *headers]
                if more and message["status"] >= 400:  # a body that is refused is not waited for
                    message["headers"].append((b"connection", b"close"))
            elif asked_for_head:
                message = {**message, "body": b""}
            await send(message)

        if study.prefix:  # the path may come with it or without
            path = study.prefix + scope["path"].removeprefix(study.prefix)
            scope = {**scope, "root_path": study.prefix, "path": path}
        if asked_for_head:
            scope = {**scope, "method": "GET"}
        await self._app(scope, guarded_receive, guarded_send)


@lru_cache(maxsize=8)
def _headers(ancestors: str, media: bool) -> list[tuple[bytes, bytes]]:
    """The headers of every reply; `ancestors` are sites that may show it in a frame."""
    allowed = ancestors or "'none'"
    policy = f"{_MEDIA_MAY if media else _PAGES_MAY}; frame-ancestors {allowed}"
    found = {**_HEADERS, "content-security-policy": policy}
    if not ancestors:
        found["x-frame-options"] = "DENY"
    return [(k.encode(), v.encode()) for k, v in found.items()]


def bound_replies(listener: socket.socket) -> None:
    """Have the system give up connections on which nobody reads what was sent."""
    with contextlib.suppress(AttributeError, OSError):  # Linux alone has it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _UNREAD_SECONDS)


async def hang_up_on_silent(connections: Collection[Any], most: int) -> None:
    """Close connections without a whole request: after some seconds, or at once to make room.

    Parameters
    ----------
    connections
        uvicorn's open connections, which it adds to and takes from.
    most
        Connections to hold; above it, those are closed that have been silent longest.
    """
    since: dict[tuple[Any, bool], float] = {}
    while True:
        await asyncio.sleep(0.2 if len(connections) < most // 2 else 0.02)
        now = time.monotonic()
        idle = [c for c in connections if c.cycle is None or c.cycle.response_complete]
        # uvicorn itself ends the pause after a reply; where it does not, a head has begun
        keys = [(c, c.timeout_keep_alive_task is None) for c in idle]
        since = {key: since.get(key, now) for key in keys}
        late = [c for c, in_head in keys if in_head and now - since[c, True] > _HEAD_SECONDS]
        longest = sorted(keys, key=since.__getitem__)[: max(len(connections) - most, 0)]
        for connection in {*late, *(c for c, _ in longest)}:
            connection.transport.abort()


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as every endpoint gives it."""
    return JSONResponse({"detail": detail}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Turn what is raised into replies that show the value, the rule and the remedy."""

    async def refused(request: Request, error: Exception) -> JSONResponse:
        status = error.status if isinstance(error, Refusal) else 422
        return problem(status, str(error), {"retry-after": "1"} if status == 429 else None)

    async def troubled(request: Request, error: Exception) -> JSONResponse:
        said = f"{error}. Nothing is lost: answers wait and are sent again"
        return problem(503, said, {"retry-after": "5"})

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        found = error.errors() if isinstance(error, RequestValidationError) else []
        lines = [f"{'.'.join(str(x) for x in e['loc'])}: {e['msg']}" for e in found]
        return problem(422, "; ".join(lines).encode(errors="replace").decode())

    async def http(request: Request, error: Exception) -> Any:
        assert isinstance(error, HTTPException)
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and not request.url.path.startswith("/api/"):
            config = current(request).facts.config
            words = read_words(config.language, config.words)
            status, detail = error.status_code, str(error.detail)
            return page(request, "error.html", status=status, detail=detail, words=words)
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(InvalidInput, refused)
    app.add_exception_handler(StoreTrouble, troubled)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("nearer.study", "pages"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)


def page(request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from a template; everything put into it is shown as text."""
    study = current(request)
    text = _TEMPLATES.get_template(name).render(
        title=study.facts.config.title,
        base=study.prefix,
        status=status,
        trouble=study.trouble,
        **values,
    )
    return HTMLResponse(text, status, {"cache-control": "no-store"})


def same_site(request: Request) -> None:
    """Refuse a form that another site sent."""
    origin = request.headers.get("origin")
    host = request.headers.get("host")
    foreign = origin not in (None, "null") and urlsplit(origin).netloc != host
    if foreign or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise HTTPException(403, "this form came from another site; open the page and try again")
