"""The web app of one study: participant's page, dashboard, API.

``serve`` runs it with uvicorn. Nothing is fetched from elsewhere: scripts, styles and fonts come
from the package, media from the study's file.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import nearer
from nearer.study import participants, researchers
from nearer.study.auth import MIN_PASSWORD, Signer, Throttle, check_password, hash_password
from nearer.study.conductor import Conductor
from nearer.study.desk import Desk
from nearer.study.errors import StoreTrouble
from nearer.study.researchers import COOKIE, form_token, session_of
from nearer.study.spool import Spool
from nearer.study.store import Store
from nearer.study.web import Guard, Study, add_error_handlers, current, page, same_site
from nearer.study.words import read_words

__all__ = ["create_app", "open_study"]

_SESSION_SECONDS = 7 * 24 * 3600
_TABS = {"overview": "Overview", "map": "Map", "people": "People", "items": "Items", "data": "Data"}


def open_study(path: Path, *, work: bool = True, new_login: bool = False) -> Study:
    """Open a study for serving.

    Parameters
    ----------
    path
        The study's file.
    work
        Whether to start the process that chooses questions and draws maps.
    new_login
        Make a set-up link although an account exists, for a forgotten password.
    """
    desk = Desk(time.time, np.random.default_rng())
    store = Store(path, desk)
    key = store.reader().execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0]
    has_account = store.reader().execute("SELECT 1 FROM accounts LIMIT 1").fetchone() is not None
    return Study(
        store=store,
        desk=desk,
        conductor=Conductor(store, desk) if work else None,
        signer=Signer(key, time.time),
        clock=time.time,
        throttle=Throttle(time.time),
        spool=Spool(path),
        setup=secrets.token_urlsafe(24) if new_login or not has_account else None,
    )


def create_app(study: Study) -> FastAPI:
    """The app that serves an open study."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if study.conductor is not None:
            study.conductor.start()
            if study.desk.state == "running":  # rather a moment now than hold-outs for the first
                await asyncio.to_thread(study.conductor.stocked.wait, 10)
        yield
        if study.conductor is not None:
            await asyncio.to_thread(study.conductor.close)
        await asyncio.to_thread(study.store.close)
        study.spool.close()

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
    app.include_router(participants.router)
    app.include_router(researchers.router)
    static = files("nearer.study") / "pages" / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    _add_public(app)
    _add_doors(app)
    _add_dashboard(app)
    return app


def _add_public(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def participant_page(request: Request) -> Response:
        config = current(request).desk.config
        return page(request, "participant.html", words=read_words(config.language, config.words))

    @app.get("/healthz", tags=["service"], responses={503: {"description": "cannot store answers"}})
    async def healthz(request: Request) -> JSONResponse:
        """Whether answers can be stored: something is stored to find out."""
        study = current(request)

        def check(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO header VALUES ('checked', ?) ON CONFLICT (key)"
                " DO UPDATE SET value = excluded.value",
                (str(study.clock()),),
            )

        try:
            await asyncio.wrap_future(study.store.submit(check))
        except StoreTrouble as error:
            return JSONResponse({"status": "trouble", "detail": str(error)}, 503)
        return JSONResponse({"status": "ok", "detail": None})

    @app.head("/media/{sha}", include_in_schema=False)
    @app.get("/media/{sha}", tags=["service"], response_class=Response)
    async def media(request: Request, sha: str) -> Response:
        """A picture, sound or film of the study; parts of it where a player asks for them."""
        spool, wanted = current(request).spool, request.headers.get("range", "")
        return await spool.reply(sha, wanted, body=request.method != "HEAD")


def _add_doors(app: FastAPI) -> None:
    """Set-up, login, logout."""

    @app.get("/setup/{token}", include_in_schema=False)
    def setup_page(request: Request, token: str) -> Response:
        _check_setup(current(request), token)
        return page(request, "setup.html", error=None, least=MIN_PASSWORD)

    @app.post("/setup/{token}", tags=["service"], response_class=Response)
    def set_up(
        request: Request,
        token: str,
        name: Annotated[str, Form(max_length=100)],
        password: Annotated[str, Form(max_length=1000)],
    ) -> Response:
        """Make the account, once; the link is used up by it."""
        study = current(request)
        same_site(request)
        _check_setup(study, token)
        name = name.strip()
        if not name or len(password) < MIN_PASSWORD:
            error = f"Choose a name, and a password of at least {MIN_PASSWORD} characters."
            return page(request, "setup.html", status=422, error=error, least=MIN_PASSWORD)
        hashed = hash_password(password)
        study.setup = None
        study.store.write(
            lambda db: db.execute(
                "INSERT INTO accounts (name, password) VALUES (?, ?) ON CONFLICT (name) DO UPDATE"
                " SET password = excluded.password, generation = generation + 1",
                (name, hashed),
            )
        )
        return RedirectResponse("/login?new=1", 303)

    @app.get("/login", include_in_schema=False)
    def login_page(request: Request, new: str = "") -> Response:
        return page(request, "login.html", error=None, new=bool(new))

    @app.post("/login", tags=["service"], response_class=Response)
    def log_in(
        request: Request,
        name: Annotated[str, Form(max_length=100)],
        password: Annotated[str, Form(max_length=1000)],
    ) -> Response:
        """Log in; after some wrong passwords, each further try has to wait longer."""
        study = current(request)
        same_site(request)
        who = request.client.host if request.client else ""
        wait = max(study.throttle.remaining(who), study.throttle.remaining(f"name {name}"))
        if wait > 0:
            error = f"Too many wrong passwords. Try again in {int(wait) + 1} seconds."
            reply = page(request, "login.html", status=429, error=error, new=False)
            reply.headers["retry-after"] = str(int(wait) + 1)
            return reply
        row = (
            study.store.reader()
            .execute(
                "SELECT id, password, generation FROM accounts WHERE name = ?", (name.strip(),)
            )
            .fetchone()
        )
        if not check_password(password, row[1] if row else None):
            study.throttle.fail(who)
            study.throttle.fail(f"name {name}")
            error = "Name or password is wrong."
            return page(request, "login.html", status=401, error=error, new=False)
        study.throttle.succeed(who)
        study.throttle.succeed(f"name {name}")
        payload = {"account": row[0], "generation": row[2], "nonce": secrets.token_urlsafe(16)}
        answer = RedirectResponse("/dashboard", 303)
        answer.set_cookie(
            COOKIE,
            study.signer.sign("session", payload, _SESSION_SECONDS),
            max_age=_SESSION_SECONDS,
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

    @app.post("/logout", tags=["service"], response_class=Response)
    def log_out(request: Request) -> Response:
        """Forget the session in this browser."""
        same_site(request)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE)
        return answer


def _check_setup(study: Study, token: str) -> None:
    if study.setup is None or not secrets.compare_digest(study.setup.encode(), token.encode()):
        raise HTTPException(404, "this set-up link is used up or wrong")


def _add_dashboard(app: FastAPI) -> None:
    @app.get("/dashboard", include_in_schema=False)
    @app.get("/dashboard/{tab}", include_in_schema=False)
    def dashboard(request: Request, tab: str = "overview") -> Response:
        session = session_of(request, request.cookies.get(COOKIE))
        if session is None:
            return RedirectResponse("/login", 303)
        if tab not in _TABS:
            raise HTTPException(404, f"there is no page {tab!r}")
        study = current(request)
        return page(
            request,
            f"{tab}.html",
            tab=tab,
            tabs=_TABS,
            who=session.name,
            form_token=form_token(study, session),
            desk=study.desk,
            link=str(request.base_url),
        )

    @app.get("/docs", include_in_schema=False)
    def api_page(request: Request) -> Response:
        return page(request, "api.html", api=_readable(app.openapi()))


def _readable(api: dict[str, Any]) -> list[dict[str, Any]]:
    """The OpenAPI description as rows for a page."""
    rows = []
    for path, methods in api["paths"].items():
        for method, spec in methods.items():
            schemas = [
                part.get("schema", {}).get("$ref", "").rpartition("/")[2]
                for part in spec.get("requestBody", {}).get("content", {}).values()
            ]
            fields = {
                field: detail.get("description") or detail.get("type") or ""
                for schema in schemas
                for field, detail in api.get("components", {})
                .get("schemas", {})
                .get(schema, {})
                .get("properties", {})
                .items()
            }
            rows.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "text": spec.get("description") or spec.get("summary", ""),
                    "tag": (spec.get("tags") or ["service"])[0],
                    "fields": fields,
                }
            )
    return rows
