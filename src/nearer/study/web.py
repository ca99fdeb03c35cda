"""The served study, the common parts of its pages, and the calls of participants' pages.

A participant is known by a token that the page keeps and sends with every call. Cookies are not
used, so that no other site can act in a person's name. Sending an answer again changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field
from starlette.exceptions import HTTPException

from nearer.errors import InvalidInput
from nearer.files import templates
from nearer.study import actions
from nearer.study.actions import PANELS, Identity, Trial
from nearer.study.auth import Guesses, Rate, Signer, network_of
from nearer.study.board import Ledger, Refusal, StoreTrouble
from nearer.study.conductor import Conductor
from nearer.study.config import Checked, Config, Short, Text, read_words, to_html
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
        #: names of its cookies, so that several studies on one host do not share them
        self.cookie = f"nearer_{read_header(db)['study'][:8]}"
        has_account = db.execute("SELECT 1 FROM accounts LIMIT 1").fetchone() is not None
        #: the one-time set-up token; None after its use
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
        """The present failures, as text."""
        return self.store.trouble or (self.conductor.trouble if self.conductor else None)


async def current(request: Request) -> Study:
    """The study that a request is about; a coroutine, since a function would need a thread."""
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
        """The path of a file, and its MIME type; None if there is none."""
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

    In a catch trial one of the choices is the query itself, so that a program could recognise it
    without looking. So every item has two tokens, each with a number and a media address of its
    own, and only this study knows which belong together.
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
        """An item as people see it: without its name, which is often that of a file."""
        word = self._signer.tag(role, str(item["id"]))
        number = int.from_bytes(word[:6].encode(), "big")  # exact in JavaScript
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
    """An error in the form of every endpoint."""
    return JSONResponse({"detail": detail}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Turn exceptions into replies that show the value, the rule and the remedy."""

    async def refused(request: Request, error: Any) -> JSONResponse:
        status, said = getattr(error, "status", 422), str(error)
        if isinstance(error, RequestValidationError):
            said = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        if isinstance(error, StoreTrouble):
            said += ". Nothing is lost: answers wait and are sent again"
        wait = {429: "1", 503: "5"}.get(status)
        said = said.encode(errors="replace").decode()  # a name may hold a lone surrogate
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


# --- what a participant calls --------------------------------------------------------------------

router = APIRouter(prefix="/api", tags=["participant"])

_bearer = HTTPBearer(auto_error=False, description="the token that joining gave")
Number = Annotated[int, Field(ge=0, le=1 << 53)]
Reply = (
    Text
    | Annotated[int, Field(strict=True, ge=-(10**15), le=10**15)]
    | Annotated[float, Field(strict=True, ge=-1e15, le=1e15)]
    | None
)


class Join(Checked):
    """Agreeing to take part."""

    consent_version: Short
    parameters: dict[Short, Text] = Field({}, max_length=100, description="the link's query string")
    browser: Short = Field("", description="a secret of this browser, which proves the person")


class Answer(Checked):
    """An answer to a question that was handed out."""

    lease: Number
    choice: Literal["left", "right", "chosen", "undecided", "skip"]
    response_ms: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    chosen: list[Number] | None = Field(None, max_length=100, description="ids, best first")
    instead: bool = Field(default=False, description="in place of my last answer, to `last`")


async def person_of(
    study: Here, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> int:
    """The person whose token came with the request."""
    number = study.signer.read("person", credentials.credentials if credentials else "")
    if number is None:
        raise HTTPException(401, "no valid token came with it; open the study's link again")
    return int(number)


Me = Annotated[int, Depends(person_of)]


@router.get("/study")
def about(study: Here) -> JSONResponse:
    """The study's texts, and questions to practise on."""
    config = study.facts.config
    keys = ["title", "question", "instructions", "consent", "consent_version", "contact", "debrief"]
    keys += ["questions", "can_skip", "can_be_undecided", "must_play", "surround", "lab", "task"]
    long = ("consent", "instructions", "debrief", "screen_out")
    texts = {
        "html": {key: to_html(getattr(config, key)) for key in long},
        "open": study.facts.state == "running" and not study.facts.full,
        "panels": {name: parameter for name, (parameter, _) in PANELS.items()},
        "practice": _practice(study.tokens, config),
    }
    return JSONResponse({key: getattr(config, key) for key in keys} | texts)


@router.post("/join")
async def join(request: Request, study: Here, body: Join) -> JSONResponse:
    """Agree to the consent text and take part, or continue if the browser proves the person."""
    limit = study.facts.config.joins_per_minute
    if limit and study.joins.wait(address_of(request), limit):
        raise Refusal(429, "many people have just joined from there; try again in a minute")
    identity = Identity.of(body.parameters)
    proved = None
    if link := body.parameters.get("resume"):
        proved = study.signer.read("resume", link)
        if proved is None:
            raise Refusal(403, "this personal link is not valid; ask for another one")

    def change(ledger: Ledger) -> dict[str, Any]:
        same = None if proved is None else int(proved)
        agreed = {"consent": body.consent_version, "browser": body.browser}
        person = actions.join(ledger, identity=identity, proved=same, **agreed)
        standing = _standing(study, ledger, person)
        standing["token"] = study.signer.sign("person", str(person))
        if ledger.board.config.returning == "link":
            standing["resume"] = f"?resume={study.signer.sign('resume', str(person))}"
        return standing

    return JSONResponse(await study.write(change))


async def _change(
    study: Study, me: int, change: Callable[[Ledger], dict[str, Any] | None]
) -> JSONResponse:
    """Make a change, and return the person's stage and questions after it."""

    def then(ledger: Ledger) -> dict[str, Any]:
        more = change(ledger) or {}
        return {**_standing(study, ledger, me), **more}

    return JSONResponse(await study.write(then))


@router.get("/me")
async def me(study: Here, me: Me) -> JSONResponse:
    """My stage, with the questions that are leased to me."""
    return await _change(study, me, lambda _: None)


@router.post("/consent")
async def consent(
    study: Here, me: Me, consent_version: Annotated[Short, Body(embed=True)]
) -> JSONResponse:
    """Agree again, after the consent text changed."""
    return await _change(study, me, lambda ledger: actions.agree(ledger, me, consent_version))


@router.post("/ready")
async def ready(study: Here, me: Me) -> JSONResponse:
    """The instructions are read and the practice is done."""
    return await _change(study, me, lambda ledger: actions.get_ready(ledger, me))


@router.post("/page")
async def fill_in_page(
    study: Here,
    me: Me,
    page: Annotated[Short, Body()],
    replies: Annotated[dict[Short, Reply], Body(max_length=200, description="by name of field")],
) -> JSONResponse:
    """Fill in the page that is due."""
    due = study.facts.config.pages.get(page)
    if due is None:
        raise Refusal(404, f"page {page[:60]!r}: this study has none of that name")
    filled = due.check(replies)
    return await _change(study, me, lambda ledger: actions.fill_in(ledger, me, page, *filled))


@router.post("/answers")
async def answer(
    study: Here,
    me: Me,
    answers: Annotated[list[Answer], Body(embed=True, min_length=1, max_length=200)],
) -> JSONResponse:
    """Store answers, oldest first; the reply comes when they are on disk, with next questions."""
    item = study.tokens.item

    def change(ledger: Ledger) -> dict[str, Any]:
        stored, refused = [], {}
        each = actions.elapsed(ledger, me, [one.lease for one in answers])
        for one in answers:
            try:
                said: dict[str, Any] = {"response_ms": one.response_ms, "instead": one.instead}
                said["chosen"] = tuple(item.get(number, -1) for number in one.chosen or ())
                actions.answer(ledger, me, one.lease, one.choice, elapsed_ms=each, **said)
                stored.append(one.lease)
            except Refusal as refusal:
                if len(answers) == 1 or refusal.status == 429:  # too fast, as all of them are
                    raise
                refused[one.lease] = str(refusal)
        return {"stored": stored, "refused": refused}

    return await _change(study, me, change)


@router.post("/withdraw")
async def withdraw(study: Here, me: Me) -> dict[str, int]:
    """Stop, and have all own answers and the identity erased."""
    return {"erased": await study.write(lambda ledger: actions.withdraw(ledger, me))}


def _standing(study: Study, ledger: Ledger, number: int) -> dict[str, Any]:
    """A person's stage and questions, computed in the writer's thread after a change."""
    board, tokens = ledger.board, study.tokens
    asked = actions.stage(ledger, number)[0] == "trials"
    trials = actions.hand_out(ledger, number) if asked else []
    stage, due = actions.stage(ledger, number)  # there may have been no question left
    person = board.people[number]
    ended = stage in ("finished", "screened")
    last = None
    if not ended and actions.may_take_back(person) and person.last:
        lease = board.leases[person.last.lease]
        last = _shown(tokens, actions.trial_of(ledger, lease, person.answered))
    return {
        "stage": stage,
        "page": board.config.pages[due].shown(due) if due else None,
        "answered": person.answered,
        "questions": board.config.questions,
        "trials": [_shown(tokens, t) for t in trials],
        "completion": _completion(study, ledger, number, stage) if ended else None,
        "last": last,
        "enough": stage == "finished" and person.answered < board.config.questions,
        "stored": [],
        "refused": {},
    }


def _shown(tokens: ItemTokens, trial: Trial) -> dict[str, Any]:
    head = None if trial.query is None else tokens.queries[trial.query]
    seen = {"head": head, "shown": [tokens.choices[i] for i in trial.shown]}
    return seen | {key: getattr(trial, key) for key in ("lease", "number", "task", "choose")}


def _practice(tokens: ItemTokens, config: Config) -> list[dict[str, Any]]:
    """Questions with an obvious answer: a choice is the head, or all but one are the same."""
    n, m, odd = len(tokens.items), config.things, config.task == "odd"
    if n < m + (not odd):  # too few to ask anything
        return []
    made = []
    for k in range(config.practice):
        head = 3 * k % n
        others = [(head + 1 + (k + j) % (n - 1)) % n for j in range(m - 1)]
        plain, rest = (others[0], [head] * (m - 1)) if odd else (head, others)
        place = (k + 1) % m
        shown = (*rest[:place], plain, *rest[place:])
        query = None if odd else head
        trial = _shown(tokens, Trial(0, k + 1, config.task, query, shown, config.choose))
        # in practice the item may be recognised by its number
        same = None if odd else tokens.choices[head]
        made.append({**trial, "head": same, "expected": tokens.choices[plain]["id"]})
    return made


def completion_code(study: Study, person: int) -> str:
    """The code a person shows to the panel."""
    own = study.signer.tag("completion", str(person))[:10].upper()
    return study.facts.config.completion_code or own.replace("-", "7").replace("_", "3")


def _completion(study: Study, ledger: Ledger, person: int, stage: str) -> dict[str, Any]:
    config = ledger.board.config
    code, template = completion_code(study, person), config.completion_redirect
    if stage == "screened":
        code, template = config.screen_out_code, config.screen_out_redirect
    if not template:
        return {"code": code, "redirect": None}
    sql = "SELECT external FROM identities WHERE person = ?"
    (external,) = ledger.db.execute(sql, (person,)).fetchone() or ("",)
    back = template.replace("{code}", quote(code, safe=""))
    return {"code": code, "redirect": back.replace("{id}", quote(external, safe=""))}
