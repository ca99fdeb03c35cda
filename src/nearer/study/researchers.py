"""What researchers call: set-up and login, and the dashboard's own requests.

There is no account until the one-time set-up link was used. Every path of `router` asks for a
login, every change for a form token, too.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Path, Query, Request, UploadFile
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.security import APIKeyCookie, APIKeyHeader
from pydantic import Field
from starlette.exceptions import HTTPException

from nearer.study import actions, auth
from nearer.study.auth import Login
from nearer.study.board import Refusal, StoreTrouble
from nearer.study.config import CHANGEABLE
from nearer.study.items import read_files, read_zip
from nearer.study.participants import completion_code, resume_link
from nearer.study.store import latest_map
from nearer.study.web import Here, Study, current, page, same_site
from nearer.study.words import Checked, Text

router = APIRouter(prefix="/api/researcher", tags=["researcher"])
doors = APIRouter(tags=["service"])
_cookie = APIKeyCookie(name="nearer_…", auto_error=False, description="what logging in sets")
_header = APIKeyHeader(name="X-Form-Token", auto_error=False, description="from the page's head")

PersonId = Annotated[int, Path(ge=0, le=1 << 53)]
Name = Annotated[str, Form(max_length=100)]
Password = Annotated[str, Form(max_length=1000)]


def login_of(request: Request) -> Login | None:
    """The login of a request's cookie."""
    study = current(request)
    return auth.session_of(
        study.store.reader(), request.cookies.get(study.cookie, ""), study.clock()
    )


def form_token(study: Study, login: Login) -> str:
    """What a form of this login must carry."""
    return study.signer.tag("form", login.key)


def logged_in(request: Request, _: Annotated[str | None, Depends(_cookie)]) -> Login:
    """Insist on a login."""
    login = login_of(request)
    if login is None:  # it may have ended since the guard let it in
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
        from nearer.study.exports import overview  # noqa: PLC0415 - loads pandas

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
    from nearer.study.exports import people_report  # noqa: PLC0415 - loads pandas

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


@router.post("/people/{person}/link")
async def link(request: Request, study: Here, login: Changer, person: PersonId) -> dict[str, str]:
    """A personal link, with which a person goes on from another browser; it is like a key."""
    await study.write(lambda ledger: actions.present(ledger, person).id)
    return {"link": f"{str(request.base_url).rstrip('/')}/{resume_link(study, person)}"}


@router.post("/people/{person}/{decision}")
async def decide(
    study: Here,
    login: Changer,
    person: PersonId,
    decision: Literal["exclude", "include", "withdraw"],
    body: Why = Why(),  # noqa: B008 - it is frozen
) -> dict[str, int]:
    """Leave a person's answers out, count them again, or erase identity and answers for good."""
    if decision == "withdraw":
        return {"erased": await study.write(lambda ledger: actions.withdraw(ledger, person))}
    out = decision == "exclude"
    await study.write(lambda ledger: actions.exclude(ledger, person, out, body.why))
    return {f"{decision}d": person}


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
        from nearer.study import exports  # noqa: PLC0415 - loads pandas

        db = study.store.reader()
        if name == "completions":
            return exports.completions_csv(db, lambda person: completion_code(study, person))
        if name == "replies":
            return exports.replies_csv(db, identities=identities)
        if name == "positions":
            found = latest_map(db)
            if found is None:
                raise Refusal(409, "there is no map yet; it is drawn from the first answers on")
            names = [item["name"] for item in study.facts.items]
            return exports.positions_csv(names, found["positions"])
        return exports.export_csv(db, name, identities=identities)

    return Response(
        await asyncio.to_thread(make),
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}.csv"'},
    )


# Set-up and login ------------------------------------------------------------------------------


@doors.get("/setup/{token}", include_in_schema=False)
def setup_page(request: Request, study: Here, token: str) -> Response:
    """Where the account is made."""
    _check_setup(study, token)
    return page(request, "setup.html", error=None, least=auth.MIN_PASSWORD)


@doors.post("/setup/{token}", response_class=Response)
async def set_up(
    request: Request, study: Here, token: str, name: Name, password: Password
) -> Response:
    """Make the account, once; the link is used up by it."""
    same_site(request)
    _check_setup(study, token)
    if not auth.plain_name(name) or len(password) < auth.MIN_PASSWORD:
        error = f"Choose a name, and a password of at least {auth.MIN_PASSWORD} characters."
        return page(request, "setup.html", status=422, error=error, least=auth.MIN_PASSWORD)
    study.setup = None  # before anything is waited for: a second use finds it gone
    try:
        password_hash = await study.guesses.hash(password)
        await study.write(lambda ledger: auth.set_password(ledger, name, password_hash))
    except Exception:
        study.setup = token  # no account was made, as on a full disk
        raise
    return RedirectResponse(f"{study.prefix}/login?new=1", 303)


@doors.get("/login", include_in_schema=False)
def login_page(request: Request, new: str = "") -> Response:
    """Where one logs in."""
    return page(request, "login.html", error=None, new=bool(new))


@doors.post("/login", response_class=Response)
async def log_in(request: Request, study: Here, name: Name, password: Password) -> Response:
    """Log in; after some wrong passwords, each further try has to wait."""
    same_site(request)
    address = auth.network_of(request.client.host if request.client else "")
    known = request.cookies.get(f"{study.cookie}_known", "")
    wait = math.ceil(study.guesses.wait(name, address, known))
    if wait:
        error = f"Too many wrong passwords. Try again in {wait} seconds."
        refused = page(request, "login.html", status=429, error=error, new=False)
        refused.headers["retry-after"] = str(wait)
        return refused
    db = study.store.reader()
    row = db.execute(
        "SELECT id, password FROM accounts WHERE name = ?", (auth.plain_name(name),)
    ).fetchone()
    if not await study.guesses.check(name, password, row[1] if row else None, address):
        error = "Name or password is wrong."
        return page(request, "login.html", status=401, error=error, new=False)
    word = await study.write(lambda ledger: auth.begin_session(ledger, row[0]))
    reply = RedirectResponse(f"{study.prefix}/dashboard", 303)
    for key, value, seconds in (
        (study.cookie, word, auth.SESSION_SECONDS),
        (f"{study.cookie}_known", study.guesses.known_as(name), auth.BROWSER_SECONDS),
    ):
        reply.set_cookie(
            key,
            value,
            max_age=seconds,
            path=f"{study.prefix}/",
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
    return reply


@doors.post("/logout", response_class=Response)
async def log_out(request: Request, study: Here) -> Response:
    """End the session, on the server and in this browser."""
    same_site(request)
    key = auth.hashed(request.cookies.get(study.cookie, ""))
    await study.write(
        lambda ledger: ledger.db.execute("DELETE FROM sessions WHERE key = ?", (key,)).rowcount
    )
    reply = RedirectResponse(f"{study.prefix}/login", 303)
    reply.delete_cookie(study.cookie, path=f"{study.prefix}/")
    return reply


def _check_setup(study: Study, token: str) -> None:
    if study.setup is None or not secrets.compare_digest(study.setup.encode(), token.encode()):
        raise HTTPException(404, "this set-up link is used up or wrong")
