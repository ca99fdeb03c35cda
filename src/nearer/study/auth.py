"""Who is asking: signed tokens, passwords, forms, and how often one may guess.

Tokens are ``payload.signature`` with HMAC-SHA256 under a key that each study file makes for
itself; nothing else is needed to check one, so a restart logs nobody out. Passwords are kept as
scrypt hashes (RFC 7914). There is no account until the one-time set-up link was used.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any

__all__ = ["Signer", "Throttle", "check_password", "hash_password"]

_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1}
MIN_PASSWORD = 10


class Signer:
    """Makes and checks tokens.

    Examples
    --------
    >>> signer = Signer(b"k" * 32, clock=lambda: 0.0)
    >>> token = signer.sign("person", {"id": 7})
    >>> signer.read("person", token)
    {'id': 7}
    >>> signer.read("session", token) is None          # made for something else
    True
    """

    def __init__(self, key: bytes, clock: Callable[[], float]) -> None:
        self._key = key
        self._clock = clock
        self._mac = lru_cache(maxsize=4096)(self._compute_mac)  # a person sends theirs every time

    def sign(self, purpose: str, payload: dict[str, Any], seconds: float | None = None) -> str:
        """A token for a purpose, which ends after some seconds, or never."""
        ends = None if seconds is None else self._clock() + seconds
        body = _encode(json.dumps([payload, ends], separators=(",", ":")).encode())
        return f"{body}.{self._mac(purpose, body)}"

    def read(self, purpose: str, token: str) -> dict[str, Any] | None:
        """What a token holds; None when it is false, over, or made for another purpose."""
        body, _, signature = token.partition(".")
        if not token.isascii() or not hmac.compare_digest(self._mac(purpose, body), signature):
            return None
        payload, ends = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if ends is not None and ends < self._clock():
            return None
        found: dict[str, Any] = payload
        return found

    def tag(self, purpose: str, text: str, length: int = 43) -> str:
        """A word that only this study can derive from a text: form tokens, completion codes."""
        return self._mac(purpose, text)[:length]

    def _compute_mac(self, purpose: str, body: str) -> str:
        return _encode(hmac.digest(self._key, f"{purpose}\n{body}".encode(), "sha256"))


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def hash_password(password: str) -> str:
    """A salted scrypt hash, with its parameters, as text."""
    salt = secrets.token_bytes(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, **_SCRYPT)
    return f"scrypt${_SCRYPT['n']}${_SCRYPT['r']}${_SCRYPT['p']}${salt.hex()}${digest.hex()}"


def check_password(password: str, stored: str | None) -> bool:
    """Whether a password is the stored one; takes as long when there is none stored."""
    if stored is None:
        hash_password(password)
        return False
    _, n, r, p, salt, digest = stored.split("$")
    found = hashlib.scrypt(
        password.encode(), salt=bytes.fromhex(salt), n=int(n), r=int(r), p=int(p)
    )
    return hmac.compare_digest(found.hex(), digest)


class Throttle:
    """Allows some failures, then makes each further one wait twice as long.

    Examples
    --------
    >>> now = [0.0]
    >>> throttle = Throttle(lambda: now[0], free=1, wait=10.0)
    >>> throttle.fail("x"); throttle.fail("x"); throttle.remaining("x")
    10.0
    >>> now[0] = 10.0; throttle.remaining("x")
    0.0
    """

    def __init__(
        self,
        clock: Callable[[], float],
        free: int = 5,
        wait: float = 2.0,
        longest: float = 900.0,
    ) -> None:
        self._clock = clock
        self._free = free
        self._wait = wait
        self._longest = longest
        self._failures: dict[str, tuple[int, float]] = {}

    def remaining(self, who: str) -> float:
        """Seconds until another try is allowed."""
        return max(0.0, self._failures.get(who, (0, 0.0))[1] - self._clock())

    def fail(self, who: str) -> None:
        """Note a failure."""
        now = self._clock()
        if len(self._failures) > 10_000:  # forget those who have long been allowed again
            self._failures = {k: v for k, v in self._failures.items() if v[1] > now - self._longest}
        count = self._failures.get(who, (0, 0.0))[0] + 1
        extra = count - self._free
        wait = min(self._wait * 2.0 ** (extra - 1), self._longest) if extra > 0 else 0.0
        self._failures[who] = (count, now + wait)

    def succeed(self, who: str) -> None:
        """Forget the failures of somebody who got in."""
        self._failures.pop(who, None)
