"""Set-up, login, logout: how a researcher comes in and goes out."""

from __future__ import annotations

import asyncio
import math
import secrets
import sqlite3
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException

from nearer.study.auth import (
    MIN_PASSWORD,
    Rate,
    Signer,
    Throttle,
    check_password,
    hash_password,
    hashed,
    network_of,
)
from nearer.study.rows import Ledger
from nearer.study.web import Study, current, page, same_site

__all__ = [
    "SESSION_SECONDS",
    "Guesses",
    "Login",
    "begin_session",
    "end_session",
    "router",
    "session_of",
    "set_password",
]

SESSION_SECONDS = 7 * 24 * 3600
_WAITING = 16  # logins that may wait for their turn
_BY_NAME = 30  # guesses a minute for one name from all addresses that are not known


class Login(NamedTuple):
    """Who is logged in."""

    account: int
    name: str
    key: str


def plain_name(name: str) -> str:
    """A name as it is compared: without surrounding space, in one way of writing."""
    return unicodedata.normalize("NFKC", name).strip()


def set_password(ledger: Ledger, name: str, password_hash: str) -> None:
    """Make an account, or give it another password, which ends its sessions."""
    ledger.db.execute(
        "INSERT INTO accounts (name, password) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET password = excluded.password",
        (plain_name(name), password_hash),
    )
    ledger.db.execute(
        "DELETE FROM sessions WHERE account = (SELECT id FROM accounts WHERE name = ?)",
        (plain_name(name),),
    )


def begin_session(ledger: Ledger, account: int) -> str:
    """Begin a session; the word for the cookie."""
    word = secrets.token_urlsafe(32)
    ledger.db.execute("DELETE FROM sessions WHERE until < ?", (ledger.now,))
    ledger.db.execute(
        "INSERT INTO sessions VALUES (?, ?, ?)",
        (hashed(word), account, ledger.now + SESSION_SECONDS),
    )
    return word


def end_session(ledger: Ledger, word: str) -> None:
    """End a session; the cookie is worth nothing from now on."""
    ledger.db.execute("DELETE FROM sessions WHERE key = ?", (hashed(word),))


def session_of(db: sqlite3.Connection, word: str, now: float) -> Login | None:
    """The session of a cookie."""
    if not 0 < len(word) <= 100:
        return None
    row = db.execute(
        "SELECT a.id, a.name, s.key FROM sessions s JOIN accounts a ON a.id = s.account"
        " WHERE s.key = ? AND s.until > ?",
        (hashed(word), now),
    ).fetchone()
    return None if row is None else Login(*row)


class Guesses:
    """Checks passwords, and not too many of them."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._slow = Throttle()
        self._names = Rate(burst=_BY_NAME)
        self._checkers = ThreadPoolExecutor(2, thread_name_prefix="passwords")
        self._waiting = 0

    def known_as(self, name: str) -> str:
        """What a browser keeps in which somebody has logged in."""
        return self._signer.tag("browser", plain_name(name))

    def wait(self, name: str, address: str, known: str) -> float:
        """Seconds to wait before this try may be made; 0.0 and it counts."""
        name = plain_name(name)
        mine = bool(known) and secrets.compare_digest(known.encode(), self.known_as(name).encode())
        if self._waiting >= _WAITING:
            return 1.0
        if mine:
            return self._slow.admit(f"known {name}")
        # The address first: a stranger who is held back there cannot fill the memory with names.
        waits = self._slow.admit(address) or self._slow.admit(f"{address} {name}")
        if not waits and not self._names.admit(name, _BY_NAME):
            waits = 2.0
        return waits

    async def check(self, name: str, password: str, stored: str | None, address: str) -> bool:
        """Whether a password is right."""
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            good = await loop.run_in_executor(self._checkers, check_password, password, stored)
        finally:
            self._waiting -= 1
        if good:
            for who in (f"{address} {plain_name(name)}", address, f"known {plain_name(name)}"):
                self._slow.succeed(who)
        return good

    async def hash(self, password: str) -> str:
        """A hash to keep."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._checkers, hash_password, password)

    def close(self) -> None:
        """End the threads."""
        self._checkers.shutdown(wait=False, cancel_futures=True)


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
    if not plain_name(name) or len(password) < MIN_PASSWORD:
        error = f"Choose a name, and a password of at least {MIN_PASSWORD} characters."
        return page(request, "setup.html", status=422, error=error, least=MIN_PASSWORD)
    study.setup = None  # before anything is waited for: a second use finds it gone
    hashed = await study.guesses.hash(password)
    await study.write(lambda ledger: set_password(ledger, name, hashed))
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
        .execute("SELECT id, password FROM accounts WHERE name = ?", (plain_name(name),))
        .fetchone()
    )
    if not await study.guesses.check(name, password, row[1] if row else None, address):
        error = "Name or password is wrong."
        return page(request, "login.html", status=401, error=error, new=False)
    word = await study.write(lambda ledger: begin_session(ledger, row[0]))
    reply = RedirectResponse(f"{study.prefix}/dashboard", 303)
    for key, value, seconds in (
        (study.cookie, word, SESSION_SECONDS),
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
    await study.write(lambda ledger: end_session(ledger, word))
    answer = RedirectResponse(f"{study.prefix}/login", 303)
    answer.delete_cookie(study.cookie, path=f"{study.prefix}/")
    return answer


def _check_setup(study: Study, token: str) -> None:
    if study.setup is None or not secrets.compare_digest(study.setup.encode(), token.encode()):
        raise HTTPException(404, "this set-up link is used up or wrong")
