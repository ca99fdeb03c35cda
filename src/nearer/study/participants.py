"""What a participant's page calls.

A person is known by a token that the page keeps and sends with every call; cookies are not used,
so no other site can act in a person's name. Answers can be sent one at a time or several at once
after a pause without network, and sending one again changes nothing.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from nearer.study import answering, asking, joining
from nearer.study.answering import Given
from nearer.study.asking import Trial
from nearer.study.auth import network_of
from nearer.study.errors import Refusal
from nearer.study.faces import Faces
from nearer.study.identities import PANELS, Identity
from nearer.study.joining import Entry
from nearer.study.rows import Journal
from nearer.study.web import Study, current

__all__ = ["completion_code", "resume_link", "router"]

router = APIRouter(prefix="/api", tags=["participant"])

Number = Annotated[int, Field(ge=0, le=1 << 53)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Shown(_Strict):
    """One thing to compare; its number differs between the query and the choices."""

    id: int
    kind: Literal["text", "image", "audio", "video"]
    name: str
    text: str
    alt: str
    src: str | None


class ShownTrial(_Strict):
    """A question as it is shown: `head`, `left` and `right`, or more things in `shown`."""

    lease: int
    number: int
    task: Literal["two", "choose", "rank", "odd"]
    head: Shown | None
    left: Shown | None
    right: Shown | None
    shown: list[Shown] | None = None
    choose: int = 1


class Completion(_Strict):
    """What a panel wants to see at the end."""

    code: str
    redirect: str | None


class Standing(_Strict):
    """Where a person stands, and what comes next."""

    stage: Literal["consent", "instructions", "trials", "paused", "finished"]
    answered: int
    questions: int
    trials: list[ShownTrial]
    completion: Completion | None
    #: the last question, while its answer can be given again with `instead`
    last: ShownTrial | None = None
    #: finished before the last question, since the study has all it needs
    enough: bool = False
    token: str | None = None
    #: where to go on from another browser, if this study has personal links
    resume: str | None = None
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
    open: bool
    panels: dict[str, str]
    practice: list[ShownTrial]


class Join(_Strict):
    """Agreeing to take part."""

    consent_version: str = Field(max_length=200)
    parameters: dict[str, str] = Field(
        default_factory=dict, description="the query string of the link"
    )
    browser: str = Field(
        default="",
        max_length=200,
        description="a random word that this browser keeps; who has it is the same person",
    )
    language: str = Field(default="", max_length=35)


class Answer(_Strict):
    """An answer to a question that was handed out."""

    lease: Number
    choice: Literal["left", "right", "chosen", "undecided", "skip"]
    response_ms: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    chosen: list[Number] | None = Field(
        default=None, max_length=100, description="with choice=chosen: ids of things, best first"
    )
    instead: bool = Field(default=False, description="in place of my last answer, to `last`")


class Answers(_Strict):
    """One or several answers, oldest first."""

    answers: list[Answer] = Field(min_length=1, max_length=200)


_bearer = HTTPBearer(auto_error=False, description="the token that joining gave")


async def person_of(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Entry:
    """The person whose token came with the request."""
    token = credentials.credentials if credentials else ""
    payload = current(request).signer.read("person", token)
    if payload is None:
        raise HTTPException(401, "no valid token came with it; open the study's link again")
    return Entry(int(payload["id"]), proved=not payload.get("visit"))


Me = Annotated[Entry, Depends(person_of)]


@router.get("/study", response_model=About)
def about(request: Request) -> JSONResponse:
    """The study's texts, and questions to practise on."""
    study = current(request)
    facts = study.facts
    keys = ["title", "question", "instructions", "consent", "consent_version", "contact", "debrief"]
    keys += ["questions", "can_skip", "can_be_undecided", "must_play"]
    return JSONResponse(
        {
            **{key: getattr(facts.config, key) for key in keys},
            "open": facts.state == "running" and not facts.full,
            "panels": {name: parameter for name, (parameter, _) in PANELS.items()},
            "practice": [_practice(study.faces, k) for k in range(facts.config.practice)],
        }
    )


@router.post("/join", response_model=Standing)
async def join(request: Request, body: Join) -> JSONResponse:
    """Agree to the consent text and take part; whoever can show that they began here goes on."""
    study = current(request)
    limit = study.facts.config.joins_per_minute
    address = network_of(request.client.host if request.client else "")
    if limit and not study.joins.admit(address, limit):
        raise Refusal(429, "many people have just joined from there; try again in a minute")
    identity = Identity.of(body.parameters)
    proved = None
    if body.parameters.get("resume"):
        payload = study.signer.read("resume", body.parameters["resume"])
        if payload is None:
            raise Refusal(403, "this personal link is not valid; ask for another one")
        proved = int(payload["id"])

    def change(journal: Journal) -> dict[str, Any]:
        entry = joining.join(
            journal,
            consent=body.consent_version,
            identity=identity,
            browser=body.browser,
            proved=proved,
            language=body.language,
        )
        standing = _standing(study, journal, entry)
        payload = {"id": entry.person} if entry.proved else {"id": entry.person, "visit": 1}
        standing["token"] = study.signer.sign("person", payload)
        if entry.proved and journal.board.config.returning == "link":
            standing["resume"] = resume_link(study, entry.person)
        return standing

    return await _write(study, change)


def resume_link(study: Study, person: int) -> str:
    """What a personal link ends with; whoever has it is that person."""
    return f"?resume={study.signer.sign('resume', {'id': person})}"


@router.get("/me", response_model=Standing)
async def me(request: Request, entry: Me) -> JSONResponse:
    """Where I stand; hands out the questions that are due."""
    study = current(request)
    return await _write(study, lambda journal: _standing(study, journal, entry))


@router.post("/consent", response_model=Standing)
async def consent(request: Request, entry: Me, body: Join) -> JSONResponse:
    """Agree again, after the consent text changed."""
    study = current(request)

    def change(journal: Journal) -> dict[str, Any]:
        joining.agree(journal, entry.person, body.consent_version)
        return _standing(study, journal, entry)

    return await _write(study, change)


@router.post("/ready", response_model=Standing)
async def ready(request: Request, entry: Me) -> JSONResponse:
    """The instructions are read and the practice is done."""
    study = current(request)

    def change(journal: Journal) -> dict[str, Any]:
        joining.get_ready(journal, entry.person)
        return _standing(study, journal, entry)

    return await _write(study, change)


@router.post("/answers", response_model=Standing)
async def answers(request: Request, entry: Me, body: Answers) -> JSONResponse:
    """Store answers. The reply comes after they are on the disk, and brings the next questions."""
    study = current(request)
    given = [_given(study.faces, answer) for answer in body.answers]

    def change(journal: Journal) -> dict[str, Any]:
        stored, refused = [], {}
        each = answering.elapsed(journal, entry.person, [g.lease for g in given])
        for one in given:
            try:
                if one.instead and not entry.proved:
                    raise Refusal(403, "only the browser in which you began can take back")
                answering.answer(journal, entry.person, one, each)
                stored.append(one.lease)
            except Refusal as refusal:
                if len(given) == 1 or refusal.status == 429:  # too fast, all of them alike
                    raise
                refused[one.lease] = str(refusal)
        return {**_standing(study, journal, entry), "stored": stored, "refused": refused}

    return await _write(study, change)


@router.post("/withdraw")
async def withdraw(request: Request, entry: Me) -> dict[str, int]:
    """Stop, and have all own answers and the identity erased."""
    study = current(request)
    if not entry.proved:
        raise HTTPException(
            403, "only the browser in which you began can erase; or ask the researcher"
        )
    future = study.store.submit(lambda journal: joining.withdraw(journal, entry.person))
    return {"erased": await asyncio.wrap_future(future)}


async def _write(study: Study, change: Any) -> JSONResponse:
    return JSONResponse(await asyncio.wrap_future(study.store.submit(change)))


def _given(faces: Faces, answer: Answer) -> Given:
    chosen = None
    if answer.chosen is not None:
        found = [faces.item(number) for number in answer.chosen]
        if None in found:
            raise Refusal(422, f"chosen={answer.chosen}: must be ids of things that were shown")
        chosen = tuple(k for k in found if k is not None)
    return Given(answer.lease, answer.choice, answer.response_ms, chosen, answer.instead)


def _standing(study: Study, journal: Journal, entry: Entry) -> dict[str, Any]:
    """Where a person stands. Runs in the writer's thread, after what was just stored."""
    board, faces = journal.board, study.faces
    trials: list[Trial] = []
    stage = joining.stage(journal, entry.person)
    if stage == "trials":
        trials = asking.hand_out(journal, entry.person)
        stage = joining.stage(journal, entry.person)  # nothing may have been left to ask
    person = board.people[entry.person]
    finished = stage == "finished"
    last = None
    if entry.proved and not finished and answering.may_take_back(journal, person) and person.last:
        lease = board.leases[person.last.lease]
        last = _shown(faces, asking.trial_of(journal, lease, person.answered))
    return {
        "stage": stage,
        "answered": person.answered,
        "questions": board.config.questions,
        "trials": [_shown(faces, t) for t in trials],
        "completion": _completion(study, journal, entry.person) if finished else None,
        "last": last,
        "enough": finished and person.answered < board.config.questions,
    }


def _shown(faces: Faces, trial: Trial) -> dict[str, Any]:
    shown = [faces.choices[i] for i in trial.shown]
    found = {
        "lease": trial.lease,
        "number": trial.number,
        "task": trial.task,
        "head": None if trial.query is None else faces.queries[trial.query],
        "left": None,
        "right": None,
    }
    if trial.task == "two":
        return {**found, "left": shown[0], "right": shown[1]}
    return {**found, "shown": shown, "choose": trial.choose}


def _practice(faces: Faces, k: int) -> dict[str, Any]:
    """A question with a plain answer, the head itself, on the left and the right by turns.

    It is one of two things whatever the task: what it teaches is where to press.
    """
    n = len(faces.items)
    head, other = (3 * k) % n, (3 * k + 1 + k % max(n - 1, 1)) % n
    if head == other:
        other = (other + 1) % n
    pair = (head, other) if k % 2 else (other, head)
    trial = _shown(faces, Trial(0, k + 1, "two", head, pair))
    return {**trial, "head": faces.choices[head]}  # here everybody may see that it is the same


def completion_code(study: Study, person: int) -> str:
    """The code a person shows to the panel."""
    own = study.signer.tag("completion", str(person), 10).upper()
    return study.facts.config.completion_code or own.replace("-", "7").replace("_", "3")


def _completion(study: Study, journal: Journal, person: int) -> dict[str, Any]:
    code = completion_code(study, person)
    template = journal.board.config.completion_redirect
    if not template:
        return {"code": code, "redirect": None}
    row = journal.db.execute(
        "SELECT external FROM identities WHERE person = ?", (person,)
    ).fetchone()
    filled = template.replace("{code}", quote(code, safe=""))
    return {
        "code": code,
        "redirect": filled.replace("{id}", quote(row[0] if row else "", safe="")),
    }
