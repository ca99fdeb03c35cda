"""Who is asking: signed tokens, passwords, and how often one may try.

Tokens are ``payload.signature`` with HMAC-SHA256 under a key that each study file makes for
itself; nothing else is needed to check one, and nothing that a stranger sends is kept. Passwords
are kept as scrypt hashes (RFC 7914), see `nearer.study.login`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["Rate", "Signer", "Throttle", "check_password", "hash_password", "hashed", "network_of"]

_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1}
MIN_PASSWORD = 10
_LONGEST = 512  # characters of a token; ours have about 80
_REMEMBERED = 10_000  # addresses and names whose tries are remembered


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

    def sign(self, purpose: str, payload: dict[str, Any], seconds: float | None = None) -> str:
        """A token for a purpose, which ends after some seconds, or never."""
        ends = None if seconds is None else self._clock() + seconds
        body = _encode(json.dumps([payload, ends], separators=(",", ":")).encode())
        return f"{body}.{self._mac(purpose, body)}"

    def read(self, purpose: str, token: str) -> dict[str, Any] | None:
        """What a token holds; None when it is false, over, or made for another purpose."""
        if len(token) > _LONGEST or not token.isascii():
            return None
        body, _, signature = token.partition(".")
        if not hmac.compare_digest(self._mac(purpose, body), signature):
            return None
        payload, ends = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if ends is not None and ends < self._clock():
            return None
        found: dict[str, Any] = payload
        return found

    def tag(self, purpose: str, text: str, length: int = 43) -> str:
        """A word that only this study can derive from a text: form tokens, completion codes."""
        return self._mac(purpose, text)[:length]

    def _mac(self, purpose: str, body: str) -> str:
        return _encode(hmac.digest(self._key, f"{purpose}\n{body}".encode(), "sha256"))


def hashed(word: str) -> str:
    """A secret as a file may hold it."""
    return hashlib.sha256(word.encode(errors="replace")).hexdigest()


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
    """Allows some tries, then makes each further one wait twice as long; a success forgets.

    A try counts when it begins, so that many at the same time are not checked at once. Time is a
    clock that is never set back.

    Examples
    --------
    >>> now = [0.0]
    >>> throttle = Throttle(lambda: now[0], free=1, wait=10.0)
    >>> throttle.admit("x"), throttle.admit("x"), throttle.admit("y")
    (0.0, 10.0, 0.0)
    >>> now[0] = 10.0; throttle.admit("x")
    0.0
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        free: int = 5,
        wait: float = 2.0,
        longest: float = 900.0,
    ) -> None:
        self._clock = clock
        self._free = free
        self._wait = wait
        self._longest = longest
        self._lock = threading.Lock()
        self._tries: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def admit(self, who: str) -> float:
        """0.0 and the try is counted, or the seconds until another one is allowed."""
        with self._lock:
            now = self._clock()
            count, until = self._tries.get(who, (0, now))
            if until > now:
                return until - now
            extra = count + 1 - self._free
            wait = min(self._wait * 2.0 ** min(extra, 60), self._longest) if extra >= 0 else 0.0
            self._tries[who] = (count + 1, now + wait)
            self._tries.move_to_end(who)
            while len(self._tries) > _REMEMBERED:
                self._tries.popitem(last=False)
            return 0.0

    def succeed(self, who: str) -> None:
        """Forget the tries of somebody who got in."""
        with self._lock:
            self._tries.pop(who, None)


class Rate:
    """Allows so many at once, and then so many a minute, for each address.

    Examples
    --------
    >>> now = [0.0]
    >>> rate = Rate(lambda: now[0], burst=2)
    >>> [rate.admit("x", per_minute=60) for _ in range(3)]
    [True, True, False]
    >>> now[0] = 1.0; rate.admit("x", per_minute=60)
    True
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, burst: float = 300.0) -> None:
        self._clock = clock
        self._burst = burst
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, who: str, per_minute: float) -> bool:
        """Whether one more is allowed now."""
        with self._lock:
            now = self._clock()
            left, at = self._left.pop(who, (self._burst, now))
            left = min(self._burst, left + (now - at) * per_minute / 60)
            allowed = left >= 1
            self._left[who] = (left - allowed, now)
            while len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
            return allowed


def network_of(address: str) -> str:
    """What counts as one address: of IPv6 the half that one house or lab shares.

    Examples
    --------
    >>> network_of("2001:db8:1:2::99"), network_of("192.0.2.7"), network_of("?")
    ('2001:db8:1:2::/64', '192.0.2.7', '?')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if found.version == 6:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
