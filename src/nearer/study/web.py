"""The study that is being served, and what its pages have in common: items, errors, templates."""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from nearer.errors import InvalidInput
from nearer.files import templates
from nearer.study.auth import Guesses, Rate, Signer, network_of
from nearer.study.board import Refusal, StoreTrouble
from nearer.study.conductor import Conductor
from nearer.study.config import read_words
from nearer.study.store import Change, Facts, Store, read_header

T = TypeVar("T")


class Study:
    """A study that is being served, with the processes that choose and draw if there is `work`."""

    def __init__(
        self, path: Path, *, work: bool = True, new_login: bool = False, prefix: str = ""
    ) -> None:
        self.store = Store(path)
        self.conductor = Conductor(self.store) if work else None
        self.media = Media(self.store)
        self.joins = Rate(300)
        self.prefix = prefix
        db = self.store.reader()
        key = db.execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0]
        self.signer = Signer(key)
        self.guesses = Guesses(self.signer)
        #: names of its cookies, so that several studies on one host leave each other alone
        self.cookie = f"nearer_{read_header(db)['study'][:8]}"
        has_account = db.execute("SELECT 1 FROM accounts LIMIT 1").fetchone() is not None
        #: the one-time set-up token; None once it was used
        self.setup = secrets.token_urlsafe(24) if new_login or not has_account else None
        self._tokens: ItemTokens | None = None

    async def write(self, change: Change[T]) -> T:
        """Make a change and wait for it, while other requests are served."""
        return await asyncio.wrap_future(self.store.submit(change))

    @property
    def facts(self) -> Facts:
        """Settings, items and whether it is open, as of the last commit."""
        return self.store.facts

    @property
    def tokens(self) -> ItemTokens:
        """The items as participants see them."""
        items, names = self.facts.items, self.facts.config.show_names
        tokens = self._tokens
        if tokens is None or tokens.items is not items or tokens.names != names:
            tokens = self._tokens = ItemTokens(items, self.signer, self.prefix, names)
        return tokens

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items as researchers see them, with the files' own addresses."""
        return [{**i, "src": i["src"] and self.prefix + i["src"]} for i in self.facts.items]

    @property
    def trouble(self) -> str | None:
        """Why something does not work just now."""
        return self.store.trouble or (self.conductor.trouble if self.conductor else None)


async def current(request: Request) -> Study:
    """The study that a request is about; what is no coroutine would need a thread each time."""
    study: Study = request.app.state.study
    return study


Here = Annotated[Study, Depends(current)]


class Media:
    """The media files of a study, copied to a temporary folder from which they are sent.

    Long reads of the study's file would keep its log from being emptied.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="nearer-media-")
        self._mime: dict[str, str] = {}

    def file(self, sha: str) -> tuple[Path, str] | None:
        """Where a file is, and its MIME type; None where there is none."""
        path = Path(self._folder.name) / sha
        with self._lock:
            if sha not in self._mime:
                sql = "SELECT bytes, mime FROM media WHERE sha = ?"
                row = self._store.reader().execute(sql, (sha,)).fetchone()
                if row is None:
                    return None
                path.write_bytes(row[0])
                self._mime[sha] = row[1]
        return path, self._mime[sha]

    def close(self) -> None:
        """Delete the folder of copies."""
        self._folder.cleanup()


class ItemTokens:
    """Items as participants see them: one number as the query, another as a choice.

    In a catch trial one of the choices is the query itself, so that a program could tell it without
    looking. So every item has two tokens, each with a number and a media address of its own that
    only this study can connect.
    """

    def __init__(
        self, items: list[dict[str, Any]], signer: Signer, prefix: str, names: bool
    ) -> None:
        self.items = items
        self.names = names
        self._prefix = prefix
        self.sha: dict[str, str] = {}  # of the file behind a media address
        self._signer = signer
        self.queries = [self._token(item, "query") for item in items]
        self.choices = [self._token(item, "choice") for item in items]
        #: which item is shown under a number as a choice
        self.item = {token["id"]: k for k, token in enumerate(self.choices)}

    def _token(self, item: dict[str, Any], role: str) -> dict[str, Any]:
        """An item as people see it: without its name, often a file's, which tells too much."""
        word = self._signer.tag(role, str(item["id"]))
        number = int.from_bytes(word[:6].encode(), "big")  # fits what JavaScript counts exactly
        seen = {**item, "id": number}
        if not self.names and item["kind"] != "text":
            alt = "" if item["alt"] == item["name"] else item["alt"]
            seen.update(name="", text="", alt=alt)
        if item["src"] is not None:
            sha = item["src"].removeprefix("/media/")
            address = self._signer.tag(f"media {role}", sha)
            self.sha[address] = sha
            seen["src"] = f"{self._prefix}/media/{address}"
        return seen


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as every endpoint gives it."""
    return JSONResponse({"detail": detail}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Turn what is raised into replies that show the value, the rule and the remedy."""

    async def refused(request: Request, error: Any) -> JSONResponse:
        status, said = getattr(error, "status", 422), str(error)
        if isinstance(error, RequestValidationError):
            said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        if isinstance(error, StoreTrouble):
            said += ". Nothing is lost: answers wait and are sent again"
        wait = {429: "1", 503: "5"}.get(status)
        said = said.encode(errors="replace").decode()  # of a name only half a character may come
        return problem(status, said, {"retry-after": wait} if wait else None)

    async def http(request: Request, error: Any) -> Any:
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and "/api/" not in request.scope["path"]:
            config = request.app.state.study.facts.config
            words = read_words(config.language, config.words)
            status, detail = error.status_code, str(error.detail)
            return page(request, "error.html", status=status, detail=detail, words=words)
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    for kind in (Refusal, InvalidInput, StoreTrouble, RequestValidationError):
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(HTTPException, http)


_TEMPLATES = templates("nearer.study", "pages", autoescape=True)
_TEMPLATES.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)


def page(request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from a template; everything put into it is shown as text."""
    study: Study = request.app.state.study
    values |= {"title": study.facts.config.title, "base": study.prefix, "trouble": study.trouble}
    text = _TEMPLATES.get_template(name).render(status=status, **values)
    return HTMLResponse(text, status, {"cache-control": "no-store"})


def same_site(request: Request) -> None:
    """Refuse a form that another site sent."""
    origin = request.headers.get("origin", "null")
    foreign = origin != "null" and origin.partition("://")[2] != request.headers.get("host")
    if foreign or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise HTTPException(403, "this form came from another site; open the page and try again")


def address_of(request: Request) -> str:
    """The network that a request comes from, for which limits count."""
    return network_of(request.client.host if request.client else "")
