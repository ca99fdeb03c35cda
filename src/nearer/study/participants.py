"""What a participant's page calls, and the replies: stage, leased questions, code.

A person is known by a token that the page keeps and sends with every call; cookies are not used,
so no other site can act in a person's name. Sending an answer again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request

from nearer.study import actions
from nearer.study.actions import PANELS, Identity, Trial
from nearer.study.board import Ledger, Refusal
from nearer.study.config import Checked, Config, Short, Text, to_html
from nearer.study.web import Here, ItemTokens, Study, address_of

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
    browser: Short = Field("", description="a word of this browser; who has it is the person")


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
    """Agree to the consent text and take part; whoever can show that they began here goes on."""
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
async def page(
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
                if len(answers) == 1 or refusal.status == 429:  # too fast, all of them alike
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
    stage, due = actions.stage(ledger, number)  # nothing may have been left to ask
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
    """Questions with a plain answer: one choice is the head, or all but one are the same thing."""
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
        # in practice people may recognise that it is the same
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
