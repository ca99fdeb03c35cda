"""Researchers' accounts and their sessions.

There is no account until the one-time set-up link was used. A session is a random word in a cookie
and its hash in the file: logging out deletes it there, and a new password deletes them all.

Guessing is limited by address, by name and address, and by name alone. The first two make each
further try wait twice as long. The third only bounds what many addresses can guess together; from
a browser in which somebody has logged in before it does not count, so nobody can lock a researcher
out by guessing wrong. A name counts the same however it is written. Checking a password costs 16 MB
and a tenth of a second, so two are checked at a time and few may wait.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from nearer.study.auth import Rate, Signer, Throttle, check_password, hash_password, hashed
from nearer.study.rows import Ledger

__all__ = ["SESSION_SECONDS", "Guesses", "Login", "begin", "end", "find", "set_password"]

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


def begin(ledger: Ledger, account: int) -> str:
    """Begin a session; the word for the cookie."""
    word = secrets.token_urlsafe(32)
    ledger.db.execute("DELETE FROM sessions WHERE until < ?", (ledger.now,))
    ledger.db.execute(
        "INSERT INTO sessions VALUES (?, ?, ?)",
        (hashed(word), account, ledger.now + SESSION_SECONDS),
    )
    return word


def end(ledger: Ledger, word: str) -> None:
    """End a session; the cookie is worth nothing from now on."""
    ledger.db.execute("DELETE FROM sessions WHERE key = ?", (hashed(word),))


def find(db: sqlite3.Connection, word: str, now: float) -> Login | None:
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
