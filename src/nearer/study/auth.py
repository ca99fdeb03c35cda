"""Who sends a request: signed tokens, passwords, and how often one may try.

Tokens are signed under a key that each study file makes for itself; nothing else is needed to check
one, and nothing that a stranger sends is kept. Passwords are kept as scrypt hashes (RFC 7914).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import itsdangerous

_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1}
MIN_PASSWORD = 10
_REMEMBERED = 10_000  # addresses and names whose tries are remembered


class Signer:
    """Makes and checks tokens.

    Examples
    --------
    >>> signer = Signer(b"k" * 32)
    >>> token = signer.sign("person", {"id": 7})
    >>> signer.read("person", token)
    {'id': 7}
    >>> signer.read("session", token) is None          # made for something else
    True
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, purpose: str, payload: dict[str, Any]) -> str:
        """A token for a purpose."""
        return str(self._serializer(purpose).dumps(payload))

    def read(self, purpose: str, token: str) -> dict[str, Any] | None:
        """What a token holds; None when it is false or made for another purpose."""
        try:
            found: dict[str, Any] = self._serializer(purpose).loads(token)
        except itsdangerous.BadData:
            return None
        return found

    def tag(self, purpose: str, text: str) -> str:
        """A word that only this study can derive from a text: form tokens, completion codes."""
        signer = itsdangerous.Signer(self._key, purpose, digest_method=hashlib.sha256)
        return signer.get_signature(text).decode()

    def _serializer(self, purpose: str) -> Any:
        how = {"digest_method": hashlib.sha256}
        return itsdangerous.URLSafeSerializer(self._key, purpose, signer_kwargs=how)


def hashed(word: str) -> str:
    """A secret as a file may hold it."""
    return hashlib.sha256(word.encode(errors="replace")).hexdigest()


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


class Rate:
    """Allows so many at once, and then so many a minute, for each address or name.

    Time is a clock that is never set back.

    Examples
    --------
    >>> now = [0.0]
    >>> rate = Rate(2, lambda: now[0])
    >>> [rate.wait("x", per_minute=60) for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] = 1.0; rate.wait("x", per_minute=60)
    0.0
    """

    def __init__(self, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, who: str, per_minute: float) -> float:
        """0.0 and it counts, or the seconds until one more is allowed."""
        with self._lock:
            now = self._clock()
            left, at = self._left.pop(who, (self._burst, now))
            left = min(self._burst, left + (now - at) * per_minute / 60)
            allowed = left >= 1
            self._left[who] = (left - allowed, now)
            while len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1 - left) * 60 / per_minute

    def forget(self, who: str) -> None:
        """Begin anew with somebody who got in."""
        with self._lock:
            self._left.pop(who, None)


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
