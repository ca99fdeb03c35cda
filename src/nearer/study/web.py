"""What every page and every reply has in common: headers, limits, errors, templates."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import jinja2
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearer.errors import InvalidInput
from nearer.study.auth import Signer, Throttle
from nearer.study.conductor import Conductor
from nearer.study.desk import Desk
from nearer.study.errors import Refusal, StoreTrouble
from nearer.study.spool import Spool
from nearer.study.store import Store

__all__ = ["Guard", "Study", "add_error_handlers", "current", "page", "problem", "same_site"]

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "media-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_BODY = 256 * 1024
_UPLOAD = 512 * 1024 * 1024


@dataclass
class Study:
    """A study that is being served."""

    store: Store
    desk: Desk
    conductor: Conductor | None
    signer: Signer
    clock: Callable[[], float]
    throttle: Throttle
    spool: Spool
    #: the one-time set-up token; None once it was used
    setup: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why something does not work just now."""
        return self.store.trouble or (self.conductor.trouble if self.conductor else None)


def current(request: Request) -> Study:
    """The study that a request is about."""
    study: Study = request.app.state.study
    return study


class Guard:
    """Adds the security headers to every reply and refuses bodies that are too long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = _UPLOAD if scope["path"] == "/api/researcher/items" else _BODY
        left = limit

        async def guarded_receive() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(413, f"the request is longer than {limit} bytes")
            return message

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers]
            await send(message)

        await self._app(scope, guarded_receive, guarded_send)


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as every endpoint gives it."""
    return JSONResponse({"detail": detail}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Turn what is raised into replies that show the value, the rule and the remedy."""

    async def refused(request: Request, error: Exception) -> JSONResponse:
        status = error.status if isinstance(error, Refusal) else 422
        return problem(status, str(error))

    async def troubled(request: Request, error: Exception) -> JSONResponse:
        return problem(
            503,
            f"{error}. Nothing is lost: answers wait and are sent again",
            {"retry-after": "5"},
        )

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        found = error.errors() if isinstance(error, RequestValidationError) else []
        lines = [f"{'.'.join(str(x) for x in e['loc'])}: {e['msg']}" for e in found]
        return problem(422, "; ".join(lines).encode(errors="replace").decode())

    async def http(request: Request, error: Exception) -> Any:
        assert isinstance(error, HTTPException)
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and not request.url.path.startswith("/api/"):
            return page(request, "error.html", status=error.status_code, detail=str(error.detail))
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(InvalidInput, refused)
    app.add_exception_handler(StoreTrouble, troubled)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


_TEMPLATES = jinja2.Environment(
    loader=jinja2.FunctionLoader(
        lambda name: (files("nearer.study") / "pages" / name).read_text(encoding="utf-8")
    ),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)


def page(request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from a template; everything put into it is shown as text."""
    study = current(request)
    text = _TEMPLATES.get_template(name).render(
        title=study.desk.config.title, status=status, trouble=study.trouble, **values
    )
    return HTMLResponse(text, status, {"cache-control": "no-store"})


def same_site(request: Request) -> None:
    """Refuse a form that another site sent."""
    origin = request.headers.get("origin")
    fetched_from = request.headers.get("sec-fetch-site", "same-origin")
    foreign = origin not in (None, "null") and urlsplit(origin).netloc != request.headers.get(
        "host"
    )
    if foreign or fetched_from not in ("same-origin", "none"):
        raise HTTPException(403, "this form came from another site; open the page and try again")
