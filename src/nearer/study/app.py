"""The web app of one study: participant's page, dashboard, API; and the server that runs it.

Nothing is fetched from elsewhere: scripts, styles and fonts come from the package, media from the
study's file.

Sizes and times of everything that precedes a login are bounded. uvicorn with h11 bounds the head of
a request and the trailers of a body by ``h11_max_incomplete_event_size``, and the system gives up a
reply that nobody reads (``TCP_USER_TIMEOUT``). Bodies are bounded by `Guard`. No server bounds the
time that a head or a body takes, nor makes room when too many connections say nothing: that is
`hang_up_on_silent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import nearer
from nearer.study import participants, researchers
from nearer.study.auth import Guesses, Signer
from nearer.study.board import StoreTrouble
from nearer.study.conductor import Conductor
from nearer.study.researchers import form_token, login_of
from nearer.study.store import Store, read_header
from nearer.study.web import Here, Media, Study, add_error_handlers, page, problem
from nearer.study.words import read_words

_TABS = {"overview": "Overview", "map": "Map", "people": "People", "items": "Items", "data": "Data"}
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
_HEAD_BYTES, _HEAD_SECONDS = 32 * 1024, 10.0
_UNREAD_SECONDS = 60
_RESERVE = 128  # files that the server itself needs: study, workers, pages
_MANY = 8192  # connections at most


def open_study(
    path: Path, *, work: bool = True, new_login: bool = False, prefix: str = ""
) -> Study:
    """Open a study for serving.

    With `work` it has the processes that choose questions and draw maps. With `new_login` there is
    a set-up link although an account exists, for a forgotten password. `prefix` is the path below
    which a proxy serves it.
    """
    store = Store(path)
    db = store.reader()
    has_account = db.execute("SELECT 1 FROM accounts LIMIT 1").fetchone() is not None
    signer = Signer(db.execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0])
    return Study(
        store=store,
        conductor=Conductor(store) if work else None,
        signer=signer,
        clock=time.time,
        guesses=Guesses(signer),
        media=Media(path),
        cookie=f"nearer_{read_header(db)['study'][:8]}",
        setup=secrets.token_urlsafe(24) if new_login or not has_account else None,
        prefix=prefix,
    )


def create_app(study: Study) -> FastAPI:
    """The app that serves an open study."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if study.conductor is not None:
            study.conductor.start()
            # Rather a moment now than chance for the first; people who were here do not wait.
            answers = await study.write(lambda ledger: ledger.board.answers)
            if study.facts.state == "running" and not answers:
                await asyncio.to_thread(study.conductor.stocked.wait, 10)
        yield
        if study.conductor is not None:
            await asyncio.to_thread(study.conductor.close)
        study.guesses.close()
        await asyncio.to_thread(study.store.close)
        study.media.close()

    app = FastAPI(
        title="nearer study",
        version=nearer.__version__,
        summary="Ask people which of two things is more like a third.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.study = study
    app.add_middleware(Guard)
    add_error_handlers(app)
    for router in (participants.router, researchers.router, researchers.doors):
        app.include_router(router)
    static = files("nearer.study") / "pages" / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    _add_pages(app)
    return app


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def participant_page(request: Request, study: Here) -> Response:
        config = study.facts.config
        return page(request, "participant.html", words=read_words(config.language, config.words))

    @app.get("/healthz", tags=["service"], responses={503: {"description": "cannot store answers"}})
    async def healthz(study: Here) -> JSONResponse:
        """Whether answers can be stored: something is stored to find out."""
        sql = "INSERT OR REPLACE INTO header VALUES ('checked', ?)"
        try:
            await study.write(lambda ledger: ledger.db.execute(sql, (str(study.clock()),)).rowcount)
        except StoreTrouble as error:
            return JSONResponse({"status": "trouble", "detail": str(error)}, 503)
        return JSONResponse({"status": "ok", "detail": None})

    @app.get("/media/{address}", tags=["service"], response_class=Response)
    def media(study: Here, address: str) -> Response:
        """A picture, sound or film of the study; parts of it where a player asks for them."""
        found = study.media.file(study.tokens.sha(address))
        if found is None:
            raise HTTPException(404, "there is no such file")
        headers = {"cache-control": "private, max-age=31536000"}
        return FileResponse(found[0], headers=headers, media_type=found[1])

    @app.get("/dashboard", include_in_schema=False)
    @app.get("/dashboard/{tab}", include_in_schema=False)
    def dashboard(request: Request, study: Here, tab: str = "overview") -> Response:
        who = login_of(request)
        if who is None:
            return RedirectResponse(f"{study.prefix}/login", 303)
        if tab not in _TABS:
            raise HTTPException(404, f"there is no page {tab!r}")
        return page(
            request,
            f"{tab}.html",
            tab=tab,
            tabs=_TABS,
            who=who.name,
            form_token=form_token(study, who),
            facts=study.facts,
            items=study.items,
            link=str(request.base_url),
        )


class Guard:
    """Adds the security headers to every reply and refuses bodies that are too long or too slow.

    Strangers are turned away from the dashboard before a byte of what they send is read.

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
        headers = _headers(study.facts.config.frame_ancestors, "/media/" in scope["path"])

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
        app = self._app
        if researchers.router.prefix in scope["path"] and login_of(Request(scope)) is None:
            app = problem(401, "log in first, at /login")
        await app(scope, guarded_receive, guarded_send)


@lru_cache(maxsize=8)
def _headers(ancestors: str, media: bool) -> list[tuple[bytes, bytes]]:
    """The headers of every reply; `ancestors` are sites that may show it in a frame."""
    allowed = ancestors or "'none'"
    policy = f"{_MEDIA_MAY if media else _PAGES_MAY}; frame-ancestors {allowed}"
    found = {**_HEADERS, "content-security-policy": policy}
    if not ancestors:
        found["x-frame-options"] = "DENY"
    return [(k.encode(), v.encode()) for k, v in found.items()]


async def hang_up_on_silent(connections: Collection[Any], most: int) -> None:
    """Close connections without a whole request: after some seconds, or at once to make room.

    `connections` are uvicorn's open ones, which it adds to and takes from; of more than `most`
    those are closed that have been silent longest.
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


class Protocol(H11Protocol):
    """HTTP as h11 reads it; who breaks its rules amid a request is hung up on, without a trace.

    uvicorn alone answers 400 but does not tell the request in work, whose own reply then fails, as
    does a 400 after a reply has begun: either would fill the log at a stranger's will.
    """

    def send_400_response(self, msg: str) -> None:
        """Refuse what came, and end the request in work as if its sender had gone."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()


def run_server(study: Study, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve a study until the process is told to stop; `ready` is called when it takes requests."""
    with contextlib.suppress(AttributeError, OSError):  # Linux alone has it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _UNREAD_SECONDS)
    config = uvicorn.Config(
        create_app(study),
        http=Protocol,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        timeout_keep_alive=75,
        backlog=2048,
    )

    class Server(uvicorn.Server):
        """Says when it is there, and hangs up on connections that say nothing."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            connections = self.server_state.connections
            self.watch = asyncio.create_task(hang_up_on_silent(connections, _may_hold()))
            ready()

    try:
        Server(config).run(sockets=[listener])
    finally:
        study.media.close()  # also where the server did not come so far as to end in order


def _may_hold() -> int:
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
