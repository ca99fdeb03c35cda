"""Signed tokens, passwords, sessions, and limits of tries; see SECURITY.md.

A new password ends all sessions. From a browser in which the researcher has logged in before, only
its own tries count, so that wrong guesses cannot lock a researcher out. A check costs 16 MB and a
tenth of a second, so two are made at a time.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
import time
import unicodedata
from collections import OrderedDict

import itsdangerous
from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from nearer.study.board import Ledger

MIN_PASSWORD = 10
SESSION_SECONDS, BROWSER_SECONDS = 7 * 24 * 3600, 365 * 24 * 3600
_REMEMBERED = 10_000  # addresses and names whose tries are remembered
_AT_ONCE = 5  # wrong passwords of one address, or of a known browser, before it must wait
_BY_NAME = 30  # guesses at one name from all other addresses
_WAITING = 16  # logins that may wait for their turn


class Signer:
    """Makes and checks tokens."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, text: str) -> str:
        """A token for a purpose."""
        return self._signer(purpose).sign(text).decode()

    def read(self, purpose: str, token: str) -> str | None:
        """The text of a token; None if it is false or made for another purpose."""
        try:
            return self._signer(purpose).unsign(token).decode()
        except itsdangerous.BadData:
            return None

    def tag(self, purpose: str, text: str) -> str:
        """A word that only this study can derive from a text: form tokens, completion codes."""
        return self._signer(purpose).get_signature(text).decode()

    def _signer(self, purpose: str) -> itsdangerous.Signer:
        return itsdangerous.Signer(self._key, purpose, digest_method=hashlib.sha256)


def hashed(word: str) -> str:
    """The hash of a secret, which may be stored."""
    return hashlib.sha256(word.encode(errors="replace")).hexdigest()


def hash_password(password: str, salt: bytes | None = None) -> str:
    """A salted scrypt hash, with its parameters, as text."""
    salt = salt or secrets.token_bytes(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, n=1 << 14, r=8, p=1)
    return f"scrypt$16384$8$1${salt.hex()}${digest.hex()}"


def check_password(password: str, stored: str | None) -> bool:
    """Whether a password is the stored one; takes as long when there is none stored."""
    salt = bytes.fromhex(stored.split("$")[4]) if stored else None
    return secrets.compare_digest(hash_password(password, salt), stored or "")


class Rate:
    """Allows `burst` tries at once, then a number per minute, for each address or name."""

    def __init__(self, burst: float) -> None:
        self._burst = burst
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str, per_minute: float) -> float:
        """0.0, and the try counts; or the seconds until one is allowed."""
        with self._lock:
            now = time.monotonic()
            left, at = self._left.pop(who, (self._burst, now))
            left = min(self._burst, left + (now - at) * per_minute / 60)
            allowed = left >= 1
            self._left[who] = (left - allowed, now)
            while len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1 - left) * 60 / per_minute

    def forget(self, who: str) -> None:
        """Forget the wrong tries of someone who has logged in."""
        with self._lock:
            self._left.pop(who, None)


def network_of(address: str) -> str:
    """An address as limits count it: of IPv6 the half that a house or lab shares."""
    try:
        whole = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    whole = getattr(whole, "ipv4_mapped", None) or whole
    bits = 64 if whole.version == 6 else 32
    return str(ipaddress.ip_network((whole, bits), strict=False))


def plain_name(name: str) -> str:
    """A name as it is compared: without surrounding space, in one Unicode form."""
    return unicodedata.normalize("NFKC", name).strip()


def set_password(ledger: Ledger, name: str, password_hash: str) -> str:
    """Make an account, or give it another password, which ends its sessions; begin a new one."""
    new = "INSERT INTO accounts (name, password) VALUES (?, ?)"
    old = "ON CONFLICT (name) DO UPDATE SET password = excluded.password RETURNING id"
    row = (plain_name(name), password_hash)
    (account,) = ledger.db.execute(f"{new} {old}", row).fetchone()
    ledger.db.execute("DELETE FROM sessions WHERE account = ?", (account,))
    return begin_session(ledger, account)


def begin_session(ledger: Ledger, account: int) -> str:
    """Begin a session; returns the text of its cookie."""
    word = secrets.token_urlsafe(32)
    ledger.db.execute("DELETE FROM sessions WHERE until < ?", (ledger.now,))
    row = (hashed(word), account, ledger.now + SESSION_SECONDS)
    ledger.db.execute("INSERT INTO sessions VALUES (?, ?, ?)", row)
    return word


class Guesses:
    """Checks passwords, and not too many of them."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._near = Rate(_AT_ONCE)
        self._names = Rate(_BY_NAME)
        self._turns = CapacityLimiter(2)

    def known_as(self, name: str) -> str:
        """The word that a browser stores after a login."""
        return self._signer.tag("browser", plain_name(name))

    def wait(self, name: str, address: str, known: str) -> float:
        """Seconds to wait before this try may be made; 0.0 and it counts."""
        name = plain_name(name)
        if secrets.compare_digest(known.encode(), self.known_as(name).encode()):
            return self._near.wait(known, 1)  # no stranger can guess this key
        if self._turns.statistics().tasks_waiting >= _WAITING:
            return 1.0
        # The address first: a stranger who must wait there cannot fill the memory with names.
        return self._near.wait(address, 1) or self._names.wait(name, _BY_NAME)

    async def check(self, name: str, password: str, stored: str | None, address: str) -> bool:
        """Whether a password is right."""
        good = await run_sync(check_password, password, stored, limiter=self._turns)
        if good:
            self._near.forget(address)
            self._near.forget(self.known_as(name))
        return good

    async def hash(self, password: str) -> str:
        """A hash to keep."""
        return await run_sync(hash_password, password, limiter=self._turns)
