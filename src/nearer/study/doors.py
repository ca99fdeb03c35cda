"""Set-up, login, logout: how a researcher comes in and goes out."""

from __future__ import annotations

import math
import secrets
from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from nearer.study import accounts
from nearer.study.auth import MIN_PASSWORD, network_of
from nearer.study.web import Study, current, page, same_site

__all__ = ["router"]

router = APIRouter(tags=["service"])

Name = Annotated[str, Form(max_length=100)]
Password = Annotated[str, Form(max_length=1000)]
_BROWSER_SECONDS = 365 * 24 * 3600


@router.get("/setup/{token}", include_in_schema=False)
def setup_page(request: Request, token: str) -> Response:
    """Where the account is made."""
    _check_setup(current(request), token)
    return page(request, "setup.html", error=None, least=MIN_PASSWORD)


@router.post("/setup/{token}", response_class=Response)
async def set_up(request: Request, token: str, name: Name, password: Password) -> Response:
    """Make the account, once; the link is used up by it."""
    study = current(request)
    same_site(request)
    _check_setup(study, token)
    if not accounts.plain_name(name) or len(password) < MIN_PASSWORD:
        error = f"Choose a name, and a password of at least {MIN_PASSWORD} characters."
        return page(request, "setup.html", status=422, error=error, least=MIN_PASSWORD)
    study.setup = None  # before anything is waited for: a second use finds it gone
    hashed = await study.guesses.hash(password)
    await study.write(lambda ledger: accounts.set_password(ledger, name, hashed))
    return RedirectResponse(f"{study.prefix}/login?new=1", 303)


@router.get("/login", include_in_schema=False)
def login_page(request: Request, new: str = "") -> Response:
    """Where one logs in."""
    return page(request, "login.html", error=None, new=bool(new))


@router.post("/login", response_class=Response)
async def log_in(request: Request, name: Name, password: Password) -> Response:
    """Log in; after some wrong passwords, each further try has to wait longer."""
    study = current(request)
    same_site(request)
    address = network_of(request.client.host if request.client else "")
    known = request.cookies.get(f"{study.cookie}_known", "")
    wait = study.guesses.wait(name, address, known)
    if wait > 0:
        seconds = math.ceil(wait)
        error = f"Too many wrong passwords. Try again in {seconds} seconds."
        reply: Response = page(request, "login.html", status=429, error=error, new=False)
        reply.headers["retry-after"] = str(seconds)
        return reply
    row = (
        study.store.reader()
        .execute("SELECT id, password FROM accounts WHERE name = ?", (accounts.plain_name(name),))
        .fetchone()
    )
    if not await study.guesses.check(name, password, row[1] if row else None, address):
        error = "Name or password is wrong."
        return page(request, "login.html", status=401, error=error, new=False)
    word = await study.write(lambda ledger: accounts.begin(ledger, row[0]))
    reply = RedirectResponse(f"{study.prefix}/dashboard", 303)
    for key, value, seconds in (
        (study.cookie, word, accounts.SESSION_SECONDS),
        (f"{study.cookie}_known", study.guesses.known_as(name), _BROWSER_SECONDS),
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


@router.post("/logout", response_class=Response)
async def log_out(request: Request) -> Response:
    """End the session, on the server and in this browser."""
    study = current(request)
    same_site(request)
    word = request.cookies.get(study.cookie, "")
    await study.write(lambda ledger: accounts.end(ledger, word))
    answer = RedirectResponse(f"{study.prefix}/login", 303)
    answer.delete_cookie(study.cookie, path=f"{study.prefix}/")
    return answer


def _check_setup(study: Study, token: str) -> None:
    if study.setup is None or not secrets.compare_digest(study.setup.encode(), token.encode()):
        raise HTTPException(404, "this set-up link is used up or wrong")
