"""The web app of one study: participant's page, dashboard, API; and the server that runs it.

Nothing is fetched from elsewhere: scripts, styles and fonts come from the package, media from the
study's file.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import h11
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

import nearer
from nearer.study import login, participants, researchers
from nearer.study.auth import Signer
from nearer.study.conductor import Conductor
from nearer.study.items import Media
from nearer.study.login import Guesses
from nearer.study.researchers import form_token, login_of
from nearer.study.rows import Ledger, StoreTrouble
from nearer.study.store import Store, read_header
from nearer.study.web import (
    HEAD_BYTES,
    Guard,
    Here,
    Study,
    add_error_handlers,
    bound_replies,
    hang_up_on_silent,
    page,
)
from nearer.study.words import read_words

_TABS = {"overview": "Overview", "map": "Map", "people": "People", "items": "Items", "data": "Data"}
_RESERVE = 128  # files that the server itself needs: study, workers, pages
_MANY = 8192  # connections at most


def open_study(
    path: Path, *, work: bool = True, new_login: bool = False, prefix: str = ""
) -> Study:
    """Open a study for serving.

    Parameters
    ----------
    path
        The study's file.
    work
        Whether to start the process that chooses questions and draws maps.
    new_login
        Make a set-up link although an account exists, for a forgotten password.
    prefix
        The path below which a proxy serves it.
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

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if study.conductor is not None:
            study.conductor.start()
            # Rather a moment now than chance for the first; people who were here do not wait.
            if study.facts.state == "running" and not await study.write(
                lambda ledger: ledger.board.answers
            ):
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
    app.add_middleware(researchers.Gate)
    app.add_middleware(Guard)  # the outermost: every reply gets its headers
    add_error_handlers(app)
    for part in (participants, researchers, login):
        app.include_router(part.router)
    static = files("nearer.study") / "pages" / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    _add_public(app)
    _add_dashboard(app)
    return app


def _add_public(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def participant_page(request: Request, study: Here) -> Response:
        config = study.facts.config
        return page(request, "participant.html", words=read_words(config.language, config.words))

    @app.get("/healthz", tags=["service"], responses={503: {"description": "cannot store answers"}})
    async def healthz(study: Here) -> JSONResponse:
        """Whether answers can be stored: something is stored to find out."""

        def check(ledger: Ledger) -> None:
            ledger.db.execute(
                "INSERT INTO header VALUES ('checked', ?) ON CONFLICT (key)"
                " DO UPDATE SET value = excluded.value",
                (str(study.clock()),),
            )

        try:
            await study.write(check)
        except StoreTrouble as error:
            return JSONResponse({"status": "trouble", "detail": str(error)}, 503)
        return JSONResponse({"status": "ok", "detail": None})

    @app.get("/media/{address}", tags=["service"], response_class=Response)
    def media(study: Here, address: str) -> Response:
        """A picture, sound or film of the study; parts of it where a player asks for them."""
        found = study.media.file(study.faces.sha(address))
        if found is None:
            raise HTTPException(404, "there is no such file")
        headers = {"cache-control": "private, max-age=31536000"}
        return FileResponse(found[0], headers=headers, media_type=found[1])


def _add_dashboard(app: FastAPI) -> None:
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
    """Serve a study until the process is told to stop.

    Parameters
    ----------
    ready
        Called when the server takes requests.
    """
    bound_replies(listener)
    config = uvicorn.Config(
        create_app(study),
        http=Protocol,
        h11_max_incomplete_event_size=HEAD_BYTES,
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
