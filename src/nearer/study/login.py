"""How a researcher comes in and goes out: set-up, accounts, sessions, the limit on guessing.

There is no account until the one-time set-up link was used. A session is a random word in a cookie
and its hash in the file: logging out deletes it there, and a new password deletes them all.

Guessing is limited by address and by name: some tries at once, then one a minute. From a browser in
which the researcher has logged in before, only its own tries count, so nobody can lock a researcher
out by guessing wrong. A name counts the same however it is written. Checking a password costs 16 MB
and a tenth of a second, so two are checked at a time and few may wait.
"""

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
    check_password,
    hash_password,
    hashed,
    network_of,
)
from nearer.study.rows import Ledger
from nearer.study.web import Here, Study, page, same_site

router = APIRouter(tags=["service"])

Name = Annotated[str, Form(max_length=100)]
Password = Annotated[str, Form(max_length=1000)]
_SESSION_SECONDS = 7 * 24 * 3600
_BROWSER_SECONDS = 365 * 24 * 3600
_AT_ONCE = 5  # wrong passwords of one address, or of a known browser, before it must wait
_BY_NAME = 30  # guesses at one name from all other addresses
_WAITING = 16  # logins that may wait for their turn


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


def _begin_session(ledger: Ledger, account: int) -> str:
    """Begin a session; the word for the cookie."""
    word = secrets.token_urlsafe(32)
    ledger.db.execute("DELETE FROM sessions WHERE until < ?", (ledger.now,))
    ledger.db.execute(
        "INSERT INTO sessions VALUES (?, ?, ?)",
        (hashed(word), account, ledger.now + _SESSION_SECONDS),
    )
    return word


def session_of(db: sqlite3.Connection, word: str, now: float) -> Login | None:
    """The session of a cookie."""
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
        self._near = Rate(_AT_ONCE)
        self._names = Rate(_BY_NAME)
        self._checkers = ThreadPoolExecutor(2, thread_name_prefix="passwords")
        self._waiting = 0

    def known_as(self, name: str) -> str:
        """What a browser keeps in which somebody has logged in."""
        return self._signer.tag("browser", plain_name(name))

    def wait(self, name: str, address: str, known: str) -> float:
        """Seconds to wait before this try may be made; 0.0 and it counts."""
        name = plain_name(name)
        if self._waiting >= _WAITING:
            return 1.0
        if secrets.compare_digest(known.encode(), self.known_as(name).encode()):
            return self._near.wait(f"known {name}", 1)
        # The address first: a stranger who is held back there cannot fill the memory with names.
        return self._near.wait(address, 1) or self._names.wait(name, _BY_NAME)

    async def check(self, name: str, password: str, stored: str | None, address: str) -> bool:
        """Whether a password is right."""
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            good = await loop.run_in_executor(self._checkers, check_password, password, stored)
        finally:
            self._waiting -= 1
        if good:
            self._near.forget(address)
            self._near.forget(f"known {plain_name(name)}")
        return good

    async def hash(self, password: str) -> str:
        """A hash to keep."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._checkers, hash_password, password)

    def close(self) -> None:
        """End the threads."""
        self._checkers.shutdown(wait=False, cancel_futures=True)


@router.get("/setup/{token}", include_in_schema=False)
def setup_page(request: Request, study: Here, token: str) -> Response:
    """Where the account is made."""
    _check_setup(study, token)
    return page(request, "setup.html", error=None, least=MIN_PASSWORD)


@router.post("/setup/{token}", response_class=Response)
async def set_up(
    request: Request, study: Here, token: str, name: Name, password: Password
) -> Response:
    """Make the account, once; the link is used up by it."""
    same_site(request)
    _check_setup(study, token)
    if not plain_name(name) or len(password) < MIN_PASSWORD:
        error = f"Choose a name, and a password of at least {MIN_PASSWORD} characters."
        return page(request, "setup.html", status=422, error=error, least=MIN_PASSWORD)
    study.setup = None  # before anything is waited for: a second use finds it gone
    try:
        password_hash = await study.guesses.hash(password)
        await study.write(lambda ledger: set_password(ledger, name, password_hash))
    except Exception:
        study.setup = token  # no account was made, as on a full disk
        raise
    return RedirectResponse(f"{study.prefix}/login?new=1", 303)


@router.get("/login", include_in_schema=False)
def login_page(request: Request, new: str = "") -> Response:
    """Where one logs in."""
    return page(request, "login.html", error=None, new=bool(new))


@router.post("/login", response_class=Response)
async def log_in(request: Request, study: Here, name: Name, password: Password) -> Response:
    """Log in; after some wrong passwords, each further try has to wait."""
    same_site(request)
    address = network_of(request.client.host if request.client else "")
    known = request.cookies.get(f"{study.cookie}_known", "")
    wait = math.ceil(study.guesses.wait(name, address, known))
    if wait:
        error = f"Too many wrong passwords. Try again in {wait} seconds."
        refused = page(request, "login.html", status=429, error=error, new=False)
        refused.headers["retry-after"] = str(wait)
        return refused
    db = study.store.reader()
    row = db.execute(
        "SELECT id, password FROM accounts WHERE name = ?", (plain_name(name),)
    ).fetchone()
    if not await study.guesses.check(name, password, row[1] if row else None, address):
        error = "Name or password is wrong."
        return page(request, "login.html", status=401, error=error, new=False)
    word = await study.write(lambda ledger: _begin_session(ledger, row[0]))
    reply = RedirectResponse(f"{study.prefix}/dashboard", 303)
    for key, value, seconds in (
        (study.cookie, word, _SESSION_SECONDS),
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
async def log_out(request: Request, study: Here) -> Response:
    """End the session, on the server and in this browser."""
    same_site(request)
    key = hashed(request.cookies.get(study.cookie, ""))
    await study.write(
        lambda ledger: ledger.db.execute("DELETE FROM sessions WHERE key = ?", (key,)).rowcount
    )
    reply = RedirectResponse(f"{study.prefix}/login", 303)
    reply.delete_cookie(study.cookie, path=f"{study.prefix}/")
    return reply


def _check_setup(study: Study, token: str) -> None:
    if study.setup is None or not secrets.compare_digest(study.setup.encode(), token.encode()):
        raise HTTPException(404, "this set-up link is used up or wrong")
