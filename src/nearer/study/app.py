"""The web app of one study: participant's page, dashboard, API.

``serve`` runs it with uvicorn. Nothing is fetched from elsewhere: scripts, styles and fonts come
from the package, media from the study's file.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import nearer
from nearer.study import login, participants, researchers
from nearer.study.auth import Signer
from nearer.study.conductor import Conductor
from nearer.study.login import Guesses
from nearer.study.researchers import form_token, login_of
from nearer.study.rows import Ledger, StoreTrouble
from nearer.study.spool import Spool
from nearer.study.store import Store, read_header
from nearer.study.web import Guard, Study, add_error_handlers, current, page
from nearer.study.words import read_words

__all__ = ["create_app", "open_study"]

_TABS = {"overview": "Overview", "map": "Map", "people": "People", "items": "Items", "data": "Data"}


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
    key = db.execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0]
    has_account = db.execute("SELECT 1 FROM accounts LIMIT 1").fetchone() is not None
    signer = Signer(key, time.time)
    return Study(
        store=store,
        conductor=Conductor(store) if work else None,
        signer=signer,
        clock=time.time,
        guesses=Guesses(signer),
        spool=Spool(path),
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
    app.include_router(login.router)
    static = files("nearer.study") / "pages" / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")
    _add_public(app)
    _add_dashboard(app)
    return app


def _add_public(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def participant_page(request: Request) -> Response:
        config = current(request).facts.config
        return page(request, "participant.html", words=read_words(config.language, config.words))

    @app.get("/healthz", tags=["service"], responses={503: {"description": "cannot store answers"}})
    async def healthz(request: Request) -> JSONResponse:
        """Whether answers can be stored: something is stored to find out."""
        study = current(request)

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

    @app.get("/media/{sha}", tags=["service"], response_class=Response)
    async def media(request: Request, sha: str) -> Response:
        """A picture, sound or film of the study; parts of it where a player asks for them."""
        study, wanted = current(request), request.headers.get("range", "")
        return await study.spool.reply(study.faces.sha(sha), wanted)


def _add_dashboard(app: FastAPI) -> None:
    @app.get("/dashboard", include_in_schema=False)
    @app.get("/dashboard/{tab}", include_in_schema=False)
    def dashboard(request: Request, tab: str = "overview") -> Response:
        study = current(request)
        login = login_of(request)
        if login is None:
            return RedirectResponse(f"{study.prefix}/login", 303)
        if tab not in _TABS:
            raise HTTPException(404, f"there is no page {tab!r}")
        return page(
            request,
            f"{tab}.html",
            tab=tab,
            tabs=_TABS,
            who=login.name,
            form_token=form_token(study, login),
            facts=study.facts,
            items=study.items,
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
