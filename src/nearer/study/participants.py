"""What a participant's page calls.

A person is known by a token that the page keeps and sends with every call; cookies are not used,
so no other site can act in a person's name. Answers can be sent one at a time or several at once
after a pause without network, and sending one again changes nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from nearer.study.desk import Desk, Trial
from nearer.study.errors import Refusal
from nearer.study.markup import to_html
from nearer.study.media import shown
from nearer.study.questionnaire import Page, find_page, keep_replies, next_page, pages_done
from nearer.study.web import Study, current

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["participant"])

#: panel: (its parameter for the person, further parameters that are kept)
PANELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prolific": ("PROLIFIC_PID", ("STUDY_ID", "SESSION_ID")),
    "mturk": ("workerId", ("assignmentId", "hitId")),
    "sona": ("survey_code", ()),
    "link": ("participant", ()),
}

Number = Annotated[int, Field(ge=0, le=1 << 53)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Shown(_Strict):
    """One thing to compare."""

    id: int
    kind: Literal["text", "image", "audio", "video"]
    name: str
    text: str
    alt: str
    src: str | None


class ShownTrial(_Strict):
    """A question as it is shown."""

    lease: int
    number: int
    head: Shown
    left: Shown
    right: Shown


class Completion(_Strict):
    """What a panel wants to see at the end."""

    code: str
    redirect: str | None


class Standing(_Strict):
    """Where a person stands, and what comes next."""

    stage: Literal["consent", "page", "instructions", "trials", "paused", "finished", "screened"]
    answered: int
    questions: int
    trials: list[ShownTrial]
    #: the page of a questionnaire that is to be filled in
    page: dict[str, Any] | None = None
    completion: Completion | None
    token: str | None = None
    stored: list[int] = []
    refused: dict[int, str] = {}


class About(_Strict):
    """What the page says before anybody takes part."""

    title: str
    question: str
    instructions: str
    consent: str
    consent_version: str
    contact: str
    debrief: str
    questions: int
    can_skip: bool
    can_be_undecided: bool
    must_play: bool
    surround: str
    html: dict[str, str] = Field(description="the long texts, formatted")
    open: bool
    panels: dict[str, str]
    practice: list[ShownTrial]


class Join(_Strict):
    """Agreeing to take part."""

    consent_version: str = Field(max_length=200)
    parameters: dict[
        Annotated[str, Field(max_length=100)], Annotated[str, Field(max_length=500)]
    ] = Field(default_factory=dict, max_length=20, description="the query string of the link")
    browser: str = Field(
        default="",
        max_length=200,
        description="a random word that this browser keeps; who has it is the same person",
    )
    language: str = Field(default="", max_length=35)


class Answer(_Strict):
    """An answer to a question that was handed out."""

    lease: Number
    choice: Literal["left", "right", "undecided", "skip"]
    response_ms: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)


class Filled(_Strict):
    """A page of a questionnaire, filled in."""

    page: str = Field(max_length=100)
    replies: dict[
        Annotated[str, Field(max_length=100)],
        Annotated[str, Field(max_length=20_000)] | int | float | None,
    ] = Field(max_length=200, description="by name of field")


class Answers(_Strict):
    """One or several answers, oldest first."""

    answers: list[Answer] = Field(min_length=1, max_length=200)


_bearer = HTTPBearer(auto_error=False, description="the token that joining gave")


async def person_of(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> int:
    """The person whose token came with the request."""
    token = credentials.credentials if credentials else ""
    payload = current(request).signer.read("person", token)
    if payload is None:
        raise HTTPException(401, "no valid token came with it; open the study's link again")
    return int(payload["id"])


Me = Annotated[int, Depends(person_of)]


@router.get("/study", response_model=About)
def about(request: Request) -> dict[str, Any]:
    """The study's texts, and questions to practise on."""
    study = current(request)
    desk = study.desk
    keys = ["title", "question", "instructions", "consent", "consent_version", "contact", "debrief"]
    keys += ["questions", "can_skip", "can_be_undecided", "must_play", "surround"]
    return {
        **{key: getattr(desk.config, key) for key in keys},
        "html": {
            key: to_html(getattr(desk.config, key))
            for key in ("consent", "instructions", "debrief", "screen_out")
        },
        "open": desk.state == "running" and not desk.full,
        "panels": {name: parameter for name, (parameter, _) in PANELS.items()},
        "practice": [_practice(desk, k) for k in range(desk.config.practice)],
    }


@router.post("/join", response_model=Standing)
async def join(request: Request, body: Join) -> JSONResponse:
    """Agree to the consent text and take part; a person whom a panel sent before goes on."""
    study = current(request)
    panel, external, details = _identity(body.parameters)

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        person = study.desk.join(
            db, consent=body.consent_version, panel=panel, external=external, details=details
        )
        standing = _standing(study, db, person)
        standing["token"] = study.signer.sign("person", {"id": person})
        return standing

    return await _write(study, change)


@router.get("/me", response_model=Standing)
async def me(request: Request, person: Me) -> JSONResponse:
    """Where I stand; hands out the questions that are due."""
    study = current(request)
    return await _write(study, lambda db: _standing(study, db, person))


@router.post("/consent", response_model=Standing)
async def consent(request: Request, person: Me, body: Join) -> JSONResponse:
    """Agree again, after the consent text changed."""
    study = current(request)

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        if body.consent_version != study.desk.config.consent_version:
            raise Refusal(409, "the consent text has changed; load the page again")
        study.desk.agree(db, person, body.consent_version)
        return _standing(study, db, person)

    return await _write(study, change)


@router.post("/ready", response_model=Standing)
async def ready(request: Request, person: Me) -> JSONResponse:
    """The instructions are read and the practice is done."""
    study = current(request)

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        if _stage(study, db, person)[0] in ("page", "screened"):
            raise Refusal(409, "there is a page to fill in first; load the page again")
        study.desk.get_ready(db, person)
        return _standing(study, db, person)

    return await _write(study, change)


@router.post("/page", response_model=Standing)
async def page(request: Request, person: Me, body: Filled) -> JSONResponse:
    """Fill in the page that is due."""
    study = current(request)
    config = study.desk.config
    filled = find_page(config.before, config.after, body.page)
    replies, out = filled.check(body.replies)

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        due = _stage(study, db, person)[1]
        if (due is None or due.id != filled.id) and filled.id not in pages_done(db, person):
            raise Refusal(409, f"page {filled.id} is not the one to fill in now; load it again")
        keep_replies(db, person, filled.id, replies, out, study.clock())
        return _standing(study, db, person)

    return await _write(study, change)


@router.post("/answers", response_model=Standing)
async def answers(request: Request, person: Me, body: Answers) -> JSONResponse:
    """Store answers. The reply comes after they are on the disk, and brings the next questions."""
    study = current(request)

    def change(db: sqlite3.Connection) -> dict[str, Any]:
        stored, refused = [], {}
        for answer in body.answers:
            try:
                study.desk.answer(db, person, answer.lease, answer.choice, answer.response_ms)
                stored.append(answer.lease)
            except Refusal as refusal:
                if len(body.answers) == 1:
                    raise
                refused[answer.lease] = str(refusal)
        return {**_standing(study, db, person), "stored": stored, "refused": refused}

    return await _write(study, change)


@router.post("/withdraw")
async def withdraw(request: Request, person: Me) -> dict[str, int]:
    """Stop, and have all own answers and the identity erased."""
    study = current(request)
    future = study.store.submit(lambda db: study.desk.withdraw(db, person))
    return {"erased": await asyncio.wrap_future(future)}


async def _write(study: Study, change: Any) -> JSONResponse:
    return JSONResponse(await asyncio.wrap_future(study.store.submit(change)))


def _standing(study: Study, db: sqlite3.Connection, person: int) -> dict[str, Any]:
    """Where a person stands. Runs in the writer's thread, after what was just stored."""
    desk = study.desk
    stage, due = _stage(study, db, person)
    ended = stage in ("finished", "screened")
    return {
        "stage": stage,
        "page": due.shown() if due else None,
        "answered": desk.board.people[person].answered,
        "questions": desk.config.questions,
        "trials": [_shown(desk, t) for t in desk.hand_out(db, person)] if stage == "trials" else [],
        "completion": _completion(study, db, person, stage) if ended else None,
    }


def _stage(study: Study, db: sqlite3.Connection, person: int) -> tuple[str, Page | None]:
    """What a person should see now, pages of a questionnaire among it."""
    config = study.desk.config
    return next_page(db, person, study.desk.stage(db, person), config.before, config.after)


def _shown(desk: Desk, trial: Trial) -> dict[str, Any]:
    return {
        "lease": trial.lease,
        "number": trial.number,
        "head": shown(desk.items[trial.head], names=desk.config.show_names),
        "left": shown(desk.items[trial.left], names=desk.config.show_names),
        "right": shown(desk.items[trial.right], names=desk.config.show_names),
    }


def _practice(desk: Desk, k: int) -> dict[str, Any]:
    """A question with a plain answer, the head itself, on the left and the right by turns."""
    n = desk.n_objects
    head, other = (3 * k) % n, (3 * k + 1 + k % max(n - 1, 1)) % n
    if head == other:
        other = (other + 1) % n
    left, right = (head, other) if k % 2 else (other, head)
    return _shown(desk, Trial(0, k + 1, head, left, right, 0.0))


def completion_code(study: Study, person: int) -> str:
    """The code a person shows to the panel."""
    own = study.signer.tag("completion", str(person), 10).upper()
    return study.desk.config.completion_code or own.replace("-", "7").replace("_", "3")


def _completion(study: Study, db: sqlite3.Connection, person: int, stage: str) -> dict[str, Any]:
    config = study.desk.config
    code, template = completion_code(study, person), config.completion_redirect
    if stage == "screened":
        code, template = config.screen_out_code, config.screen_out_redirect
    if not template:
        return {"code": code, "redirect": None}
    row = db.execute("SELECT external FROM identities WHERE person = ?", (person,)).fetchone()
    filled = template.replace("{code}", quote(code, safe=""))
    return {
        "code": code,
        "redirect": filled.replace("{id}", quote(row[0] if row else "", safe="")),
    }


def _identity(parameters: dict[str, str]) -> tuple[str, str, dict[str, str]]:
    """Which panel sent a person, as whom, and what else it said."""
    for panel, (parameter, more) in PANELS.items():
        if parameters.get(parameter):
            details = {key: parameters[key] for key in more if key in parameters}
            return panel, parameters[parameter], details
    return "", "", {}
