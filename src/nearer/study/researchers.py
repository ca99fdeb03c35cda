"""What the dashboard calls. Every path here asks for a login; every change for a form token too."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Path, Query, Request, UploadFile
from fastapi.responses import JSONResponse, Response
from fastapi.security import APIKeyCookie, APIKeyHeader
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from nearer.study import actions
from nearer.study.config import CHANGEABLE
from nearer.study.exports import completions_csv, export_csv, positions_csv, replies_csv
from nearer.study.items import read_files, read_zip
from nearer.study.login import Login, session_of
from nearer.study.participants import completion_code, resume_link
from nearer.study.rows import Refusal, StoreTrouble
from nearer.study.statistics import latest_map, overview, people_report
from nearer.study.web import Here, Study, current, problem
from nearer.study.words import Checked, Text

router = APIRouter(prefix="/api/researcher", tags=["researcher"])
_cookie = APIKeyCookie(name="nearer_…", auto_error=False, description="what logging in sets")
_header = APIKeyHeader(name="X-Form-Token", auto_error=False, description="from the page's head")

PersonId = Annotated[int, Path(ge=0, le=1 << 53)]


def login_of(request: Request) -> Login | None:
    """The login of a request's cookie."""
    study = current(request)
    return session_of(study.store.reader(), request.cookies.get(study.cookie, ""), study.clock())


class Gate:
    """Turns strangers away before a byte of what they send is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and router.prefix in scope["path"]:
            request = Request(scope)
            if login_of(request) is None:
                await problem(401, "log in first, at /login")(scope, receive, send)
                return
        await self._app(scope, receive, send)


def form_token(study: Study, login: Login) -> str:
    """What a form of this login must carry."""
    return study.signer.tag("form", login.key)


def logged_in(request: Request, _: Annotated[str | None, Depends(_cookie)]) -> Login:
    """Insist on a login."""
    login = login_of(request)
    if login is None:
        raise HTTPException(401, "log in first, at /login")
    return login


def may_change(
    study: Here,
    login: Annotated[Login, Depends(logged_in)],
    token: Annotated[str | None, Depends(_header)],
) -> Login:
    """Insist on a login and on a form token that belongs to it."""
    right = form_token(study, login)
    if not secrets.compare_digest((token or "").encode(), right.encode()):
        raise HTTPException(403, "the form token is missing or old; load the page again")
    return login


Reader = Annotated[Login, Depends(logged_in)]
Changer = Annotated[Login, Depends(may_change)]


class State(Checked):
    """Whether people are asked."""

    state: Literal["running", "paused"]


class Settings(Checked):
    """Settings by name, with their new values."""

    settings: dict[str, Text | int | float | bool | None] = Field(min_length=1, max_length=100)


class Why(Checked):
    """A note on a decision."""

    why: Annotated[Text, Field(max_length=1000)] = ""


@router.get("/status")
async def status(study: Here, login: Reader) -> JSONResponse:
    """The study in numbers."""
    now = study.clock()

    def read(board: dict[str, Any]) -> dict[str, Any]:
        db = study.store.reader()
        return overview(db, board, now, study.people(db))

    try:
        board = await study.write(lambda ledger: ledger.board.summary(now))
    except StoreTrouble:
        facts = study.facts
        return JSONResponse(
            {"state": facts.state, "quota": facts.config.quota, "trouble": study.trouble}
        )
    found = await asyncio.to_thread(read, board)
    return JSONResponse({**found, "trouble": study.trouble})


@router.get("/people")
def people(study: Here, login: Reader) -> list[dict[str, Any]]:
    """Everybody who joined, with the numbers that show how carefully they answer."""
    return [vars(report) for report in people_report(study.store.reader())]


@router.get("/map")
def live_map(study: Here, login: Reader) -> dict[str, Any]:
    """The newest map and the objects on it."""
    return {"map": latest_map(study.store.reader()), "items": study.items}


@router.post("/state")
async def set_state(study: Here, login: Changer, body: State) -> dict[str, str]:
    """Start or pause."""
    await study.write(lambda ledger: actions.set_state(ledger, body.state))
    return {"state": body.state}


@router.get("/settings")
def settings(study: Here, login: Reader) -> dict[str, Any]:
    """The settings, which of them can be changed now, and every change so far."""
    changes = study.store.reader().execute(
        "SELECT at, detail FROM events WHERE kind = 'settings' ORDER BY id"
    )
    return {
        "settings": study.facts.config.model_dump(),
        "changeable": list(CHANGEABLE),
        "changes": [{"at": at, "settings": json.loads(detail)} for at, detail in changes],
    }


@router.post("/settings")
async def set_settings(study: Here, login: Changer, body: Settings) -> dict[str, Any]:
    """Change settings while people answer; each change is recorded with its time."""
    changes = await study.write(lambda ledger: actions.change_settings(ledger, body.settings))
    return {"changed": changes}


@router.post("/people/{person}/exclude")
async def exclude(study: Here, login: Changer, person: PersonId, body: Why) -> dict[str, int]:
    """Leave a person's answers out; votes are counted again without them."""
    await study.write(lambda ledger: actions.exclude(ledger, person, True, body.why))
    return {"excluded": person}


@router.post("/people/{person}/include")
async def include(study: Here, login: Changer, person: PersonId) -> dict[str, int]:
    """Count a person's answers again."""
    await study.write(lambda ledger: actions.exclude(ledger, person, False))
    return {"included": person}


@router.post("/people/{person}/withdraw")
async def withdraw(study: Here, login: Changer, person: PersonId) -> dict[str, int]:
    """Erase a person's identity and answers for good."""
    return {"erased": await study.write(lambda ledger: actions.withdraw(ledger, person))}


@router.post("/people/{person}/link")
async def link(request: Request, study: Here, login: Changer, person: PersonId) -> dict[str, str]:
    """A personal link, with which a person goes on from another browser; it is like a key."""
    await study.write(lambda ledger: actions.present(ledger, person).id)
    return {"link": f"{str(request.base_url).rstrip('/')}/{resume_link(study, person)}"}


@router.post("/items")
async def upload(
    study: Here, login: Changer, upload: Annotated[list[UploadFile], File(max_length=10_000)]
) -> dict[str, int]:
    """Add things to compare, files or a ZIP of them, while nobody has been asked yet."""
    items = []
    for file in upload:
        content, name = await file.read(), file.filename or "unnamed"
        if name.lower().endswith(".zip"):
            items += await asyncio.to_thread(read_zip, content, name)
        else:
            items += await asyncio.to_thread(read_files, [(name, content)])
    return {"added": await study.write(lambda ledger: actions.add_items(ledger, items))}


@router.get("/export/{name}.csv", response_class=Response)
async def export(
    study: Here,
    login: Reader,
    name: Literal[
        "triplets", "salmon", "triplettools", "answers", "positions", "completions", "replies"
    ],
    identities: Annotated[
        bool, Query(description="names from outside instead of pseudonyms")
    ] = False,
) -> Response:
    """A table, see the export page for what is in it."""

    def make() -> str:
        db = study.store.reader()
        if name == "completions":
            return completions_csv(db, lambda person: completion_code(study, person))
        if name == "replies":
            return replies_csv(db, identities=identities)
        if name == "positions":
            found = latest_map(db)
            if found is None:
                raise Refusal(409, "there is no map yet; it is drawn from the first answers on")
            return positions_csv([item["name"] for item in study.facts.items], found["positions"])
        return export_csv(db, name, identities=identities)

    return Response(
        await asyncio.to_thread(make),
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}.csv"'},
    )
