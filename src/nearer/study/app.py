"""The web app of one study: pages, calls of researchers, and the server that runs it.

Sizes and times of everything that precedes a login are bounded. uvicorn with h11 bounds the head of
a request and the trailers of a body by ``h11_max_incomplete_event_size``, and the system drops a
reply that is not read (``TCP_USER_TIMEOUT``). `Guard` bounds bodies. uvicorn bounds neither the
time of a head nor the number of silent connections: `hang_up_on_silent` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection
from importlib.resources import files
from typing import Annotated, Any, Literal

import fastapi
import h11
import uvicorn
from fastapi import APIRouter, Body, Depends, FastAPI, Form, Header, Request, UploadFile
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

import nearer
from nearer.study import actions, auth, web
from nearer.study.board import Refusal, StoreTrouble
from nearer.study.config import CHANGEABLE, Line, Short, Text, read_words
from nearer.study.items import read_files, read_zip
from nearer.study.store import latest_map
from nearer.study.web import Here, Study

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
#: a drawing runs no script and fetches nothing, also when it is opened by itself
_MEDIA_MAY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
_RESEARCHERS = "/api/researcher"
_BODY, _UPLOAD = 256 * 1024, 512 * 1024 * 1024  # bytes
_HEAD_BYTES = 32 * 1024
_SECONDS = 30.0  # for a head, for a body, and until a piece of a reply is read

doors = APIRouter(tags=["service"])
pages = APIRouter(include_in_schema=False)


def create_app(study: Study) -> FastAPI:
    """The app that serves an open study."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if study.conductor is not None:
            study.conductor.start()
        yield
        if study.conductor is not None:
            await asyncio.to_thread(study.conductor.close)
        await asyncio.to_thread(study.store.close)
        study.media.close()

    app = FastAPI(
        title="nearer study",
        version=nearer.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.study = study
    app.add_middleware(Guard)
    web.add_error_handlers(app)
    for each in (web.router, researchers, doors, pages):
        app.include_router(each)
    static = files("nearer.study") / "pages" / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    return app


@pages.get("/")
def participant_page(request: Request, study: Here) -> Response:
    """The page that asks."""
    config = study.facts.config
    return web.page(request, "participant.html", words=read_words(config.language, config.words))


@doors.get("/healthz", responses={503: {"description": "cannot store answers"}})
async def healthz(study: Here) -> JSONResponse:
    """Whether answers can be stored: it stores the time to find out."""
    sql = "INSERT OR REPLACE INTO header VALUES ('checked', ?)"
    try:
        await study.write(lambda ledger: ledger.db.execute(sql, (str(ledger.now),)).rowcount)
    except StoreTrouble as error:
        return JSONResponse({"status": "trouble", "detail": str(error)}, 503)
    return JSONResponse({"status": "ok", "detail": None})


@doors.get("/media/{address}", response_class=Response)
def media(study: Here, address: str) -> Response:
    """A picture, sound or film of the study; parts of it if a player asks for them."""
    stored = study.media.file(study.tokens.sha.get(address, address))  # the file's own, or a token
    if stored is None:
        raise HTTPException(404, "there is no such file")
    headers = {"cache-control": "private, max-age=31536000"}
    return FileResponse(stored[0], headers=headers, media_type=stored[1])


@pages.get("/dashboard")
@pages.get("/dashboard/{tab}")
def dashboard(request: Request, study: Here, tab: str = "overview") -> Response:
    """A page of the dashboard; without a login, a redirect to the login."""
    login = login_of(request)
    if login is None:
        return RedirectResponse(f"{study.prefix}/login", 303)
    if tab not in _TABS:
        raise HTTPException(404, f"there is no page {tab!r}")
    (name, session), link = login, str(request.base_url)
    values: dict[str, Any] = {"tab": tab, "tabs": _TABS, "who": name, "link": link}
    values |= {"form_token": form_token(study, session), "items": study.items}
    return web.page(request, f"{tab}.html", facts=study.facts, **values)


class Guard:
    """Adds the security headers to every reply and refuses bodies that are too long or too slow.

    Strangers are refused by the dashboard before any byte of their request is read, as are forms in
    parts, each of which could name a slow codec. HEAD is answered as GET would be.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        uploads = scope["path"].endswith(f"{_RESEARCHERS}/items")  # long, and after a login
        left = limit = _UPLOAD if uploads else _BODY
        ends = math.inf if uploads else time.monotonic() + _SECONDS
        more = any(k in (b"content-length", b"transfer-encoding") for k, _ in scope["headers"])
        study: Study = scope["app"].state.study
        headers = _headers(study.facts.config.frame_ancestors, "/media/" in scope["path"])

        async def guarded_receive() -> Message:
            nonlocal left, more
            if not more:  # the body is complete; only a disconnection may follow
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
                if more and message["status"] >= 400:  # the rest of a refused body is not awaited
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        if study.prefix:  # the path may come with it or without
            path = study.prefix + scope["path"].removeprefix(study.prefix)
            scope = {**scope, "root_path": study.prefix, "path": path}
        if scope["method"] == "HEAD":  # uvicorn sends no body of such a reply
            scope = {**scope, "method": "GET"}
        app = self._app
        if _RESEARCHERS in scope["path"]:
            scope = {**scope, "login": login_of(Request(scope))}
            app = app if scope["login"] else web.problem(401, "log in first, at /login")
        elif b"multipart" in dict(scope["headers"]).get(b"content-type", b"").lower():
            app = web.problem(415, "send a form as application/x-www-form-urlencoded")
        await app(scope, guarded_receive, guarded_send)


def _headers(ancestors: str, media: bool) -> list[tuple[bytes, bytes]]:
    """The headers of every reply; `ancestors` are sites that may show it in a frame."""
    allowed = " ".join(ancestors.split()) or "'none'"  # a header must not end in a space
    policy = f"{_MEDIA_MAY if media else _PAGES_MAY}; frame-ancestors {allowed}"
    frames = {"x-frame-options": "DENY"} if allowed == "'none'" else {}
    headers = {**_HEADERS, **frames, "content-security-policy": policy}
    return [(k.encode(), v.encode()) for k, v in headers.items()]


async def hang_up_on_silent(connections: Collection[Any], most: int) -> None:
    """Close connections without a whole request: after some seconds, or at once to make room.

    If there are more than `most`, those silent longest are closed.
    """
    since: dict[tuple[Any, bool], float] = {}
    while True:
        await asyncio.sleep(0.2 if len(connections) < most // 2 else 0.02)
        now = time.monotonic()
        idle = [c for c in connections if c.cycle is None or c.cycle.response_complete]
        # uvicorn itself ends the pause after a reply, unless a head has begun
        keys = [(c, c.timeout_keep_alive_task is None) for c in idle]
        since = {key: since.get(key, now) for key in keys}
        late = [c for c, in_head in keys if in_head and now - since[c, True] > _SECONDS]
        longest = sorted(keys, key=since.__getitem__)[: max(len(connections) - most, 0)]
        for connection in {*late, *(c for c, _ in longest)}:
            connection.transport.abort()


class Protocol(H11Protocol):
    """HTTP as h11 reads it; a connection that breaks its rules is closed without a log entry.

    uvicorn alone answers 400 but does not inform the request in progress, whose reply then fails,
    as does a 400 after a reply has begun: strangers could fill the log by either.
    """

    def send_400_response(self, msg: str) -> None:
        """Close the connection, and end its request as if the sender had disconnected."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()


def run_server(study: Study, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve a study until the process is told to stop; `ready` is called when it takes requests."""
    with contextlib.suppress(AttributeError, OSError):  # Linux alone has it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * _SECONDS))
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
        """Reports when it is ready, and closes silent connections."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            connections = self.server_state.connections
            self.watch = asyncio.create_task(hang_up_on_silent(connections, _may_hold()))
            ready()

    Server(config).run(sockets=[listener])


def _may_hold() -> int:
    """Connections this process may hold, each with a file of its own to send."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # if the system allows fewer
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * 8192), hard))
    return min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 8192)


Table = Literal[
    "triplets", "salmon", "triplettools", "answers", "positions", "completions", "replies"
]
PersonId = Annotated[int, fastapi.Path(ge=0, le=1 << 53)]
Name = Annotated[Line, Form(max_length=100)]
Password = Annotated[Text, Form(max_length=1000)]
Settings = Annotated[
    dict[Short, Text | int | float | bool | None], Body(embed=True, min_length=1, max_length=100)
]


def login_of(request: Request) -> tuple[str, str] | None:
    """The name and the session of a request's cookie."""
    study: Study = request.app.state.study
    sql = "SELECT name, key FROM sessions JOIN accounts ON id = account WHERE key = ? AND until > ?"
    values = (auth.hashed(request.cookies.get(study.cookie, "")), time.time())
    row: tuple[str, str] | None = study.store.reader().execute(sql, values).fetchone()
    return row


def form_token(study: Study, session: str) -> str:
    """The token that a form of this session must have."""
    return study.signer.tag("form", session)


async def may_change(
    request: Request,
    study: Here,
    token: Annotated[str, Header(alias="x-form-token", description="of the page's head")] = "",
) -> None:
    """Insist on a form token that belongs to the login that `Guard` found."""
    right = form_token(study, request.scope["login"][1])
    if request.method == "POST" and not secrets.compare_digest(token.encode(), right.encode()):
        raise HTTPException(403, "the form token is missing or old; load the page again")


researchers = APIRouter(
    prefix=_RESEARCHERS, tags=["researcher"], dependencies=[Depends(may_change)]
)


@researchers.get("/status")
def status(study: Here) -> dict[str, Any]:
    """The study in numbers."""
    from nearer.study.exports import overview, people_report  # noqa: PLC0415 - loads pandas

    now, facts = time.time(), study.facts
    try:
        board = study.store.write(lambda ledger: ledger.board.summary(now))
    except StoreTrouble:
        known = {"state": facts.state, "quota": facts.config.quota}
    else:
        db = study.store.reader()
        known = overview(db, board, now, people_report(db))
    return {**known, "trouble": study.trouble}


@researchers.get("/people")
def people(study: Here) -> list[dict[str, Any]]:
    """All people who joined, with figures on how carefully they answer."""
    from nearer.study.exports import people_report  # noqa: PLC0415 - loads pandas

    return [vars(report) for report in people_report(study.store.reader())]


@researchers.get("/map")
def live_map(study: Here) -> dict[str, Any]:
    """The newest map and the objects on it."""
    return {"map": latest_map(study.store.reader()), "items": study.items}


@researchers.post("/state")
def set_state(
    study: Here, state: Annotated[Literal["running", "paused"], Body(embed=True)]
) -> dict[str, str]:
    """Start or pause."""
    study.store.write(lambda ledger: actions.set_state(ledger, state))
    return {"state": state}


@researchers.get("/settings")
def settings(study: Here) -> dict[str, Any]:
    """The settings, which of them can be changed now, and every change so far."""
    sql = "SELECT at, detail FROM events WHERE kind = 'settings' ORDER BY id"
    changes = study.store.reader().execute(sql)
    return {
        "settings": study.facts.config.model_dump(),
        "changeable": list(CHANGEABLE),
        "changes": [{"at": at, "settings": json.loads(detail)} for at, detail in changes],
    }


@researchers.post("/settings")
def set_settings(study: Here, settings: Settings) -> dict[str, Any]:
    """Change settings while people answer; each change is recorded with its time."""
    return {"changed": study.store.write(lambda x: actions.change_settings(x, settings))}


@researchers.post("/people/{person}/{decision}")
def decide(
    study: Here, person: PersonId, decision: Literal["exclude", "include", "withdraw"]
) -> dict[str, int]:
    """Leave a person's answers out, count them again, or erase identity and answers for good."""
    if decision == "withdraw":
        return {"erased": study.store.write(lambda ledger: actions.withdraw(ledger, person))}
    out = decision == "exclude"
    study.store.write(lambda ledger: actions.exclude(ledger, person, out))
    return {f"{decision}d": person}


@researchers.post("/items")
def upload(study: Here, upload: list[UploadFile]) -> dict[str, int]:
    """Add things to compare, files or a ZIP of them, before the first question is asked."""
    items = []
    for file in upload:
        content, name = file.file.read(), file.filename or "unnamed"
        zipped = name.lower().endswith(".zip")
        items += read_zip(content, name)[0] if zipped else read_files([(name, content)])
    return {"added": study.store.write(lambda ledger: actions.add_items(ledger, items))}


@researchers.get("/export/{name}.csv", response_class=Response)
def export(study: Here, name: Table, identities: bool = False) -> Response:
    """A table, with `identities` under names from outside; the page *Data* says what is in it."""
    from nearer.study import exports  # noqa: PLC0415 - loads pandas

    db = study.store.reader()
    if name == "completions":
        table = exports.completions_csv(db, lambda person: web.completion_code(study, person))
    elif name == "replies":
        table = exports.replies_csv(db, identities=identities)
    elif name == "positions":
        newest = latest_map(db)
        if newest is None:
            raise Refusal(409, "there is no map yet; it is drawn from the first answers on")
        names = [item["name"] for item in study.facts.items]
        table = exports.positions_csv(names, newest["positions"])
    else:
        table = exports.export_csv(db, name, identities=identities)
    headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(table, headers=headers, media_type="text/csv; charset=utf-8")


def _check_setup(study: Study, token: str) -> None:
    if study.setup is None or not secrets.compare_digest(study.setup.encode(), token.encode()):
        raise HTTPException(404, "this set-up link is used up or wrong")


@pages.get("/setup/{token}")
def setup_page(request: Request, study: Here, token: str) -> Response:
    """The page on which the account is made."""
    _check_setup(study, token)
    return web.page(request, "setup.html", error=None, least=auth.MIN_PASSWORD)


@doors.post("/setup/{token}", response_class=Response, dependencies=[Depends(web.same_site)])
async def set_up(
    request: Request, study: Here, token: str, name: Name, password: Password
) -> Response:
    """Make the account, once; the link is used up by it."""
    _check_setup(study, token)
    if not auth.plain_name(name) or len(password) < auth.MIN_PASSWORD:
        error = f"Choose a name, and a password of at least {auth.MIN_PASSWORD} characters."
        return web.page(request, "setup.html", status=422, error=error, least=auth.MIN_PASSWORD)
    study.setup = None  # before the first await, so that a second use is refused
    try:
        password_hash = await study.guesses.hash(password)
        word = await study.write(lambda ledger: auth.set_password(ledger, name, password_hash))
    except Exception:
        study.setup = token  # no account was made, as on a full disk
        raise
    return _logged_in(request, study, name, word)


@pages.get("/login")
def login_page(request: Request) -> Response:
    """The page of the login."""
    return web.page(request, "login.html", error=None)


@doors.post("/login", response_class=Response, dependencies=[Depends(web.same_site)])
async def log_in(request: Request, study: Here, name: Name, password: Password) -> Response:
    """Log in; after some wrong passwords, each further try has to wait."""
    address = web.address_of(request)
    known = request.cookies.get(f"{study.cookie}_known", "")
    wait = math.ceil(study.guesses.wait(name, address, known))
    if wait:
        error = f"Too many wrong passwords. Try again in {wait} seconds."
        refused = web.page(request, "login.html", status=429, error=error)
        refused.headers["retry-after"] = str(wait)
        return refused
    sql = "SELECT id, password FROM accounts WHERE name = ?"
    row = study.store.reader().execute(sql, (auth.plain_name(name),)).fetchone()
    if not await study.guesses.check(name, password, row[1] if row else None, address):
        return web.page(request, "login.html", status=401, error="Name or password is wrong.")
    word = await study.write(lambda ledger: auth.begin_session(ledger, row[0]))
    return _logged_in(request, study, name, word)


def _logged_in(request: Request, study: Study, name: str, word: str) -> Response:
    """A redirect to the dashboard that sets the cookies of the session and of a known browser."""
    reply = RedirectResponse(f"{study.prefix}/dashboard", 303)
    known = study.guesses.known_as(name)
    common: dict[str, Any] = {"path": f"{study.prefix}/", "httponly": True, "samesite": "lax"}
    common["secure"] = request.scope["scheme"] == "https"
    reply.set_cookie(study.cookie, word, auth.SESSION_SECONDS, **common)
    reply.set_cookie(f"{study.cookie}_known", known, auth.BROWSER_SECONDS, **common)
    return reply


@doors.post("/logout", response_class=Response, dependencies=[Depends(web.same_site)])
def log_out(request: Request, study: Here) -> Response:
    """End the session, on the server and in this browser."""
    key = auth.hashed(request.cookies.get(study.cookie, ""))
    sql = "DELETE FROM sessions WHERE key = ?"
    study.store.write(lambda ledger: ledger.db.execute(sql, (key,)).rowcount)
    reply = RedirectResponse(f"{study.prefix}/login", 303)
    reply.delete_cookie(study.cookie, path=f"{study.prefix}/")
    return reply
