"""What a participant's page calls.

A person is known by a token that the page keeps and sends with every call; cookies are not used,
so no other site can act in a person's name. Answers can be sent one at a time or several at once
after a pause without network, and sending one again changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from nearer.study import actions, posing
from nearer.study.actions import PANELS, Admission, GivenAnswer, Identity
from nearer.study.auth import network_of
from nearer.study.config import Config
from nearer.study.items import Faces
from nearer.study.posing import Trial
from nearer.study.questionnaire import (
    QuestionnairePage,
    find_page,
    keep_replies,
    next_page,
    pages_done,
)
from nearer.study.rows import Ledger, Refusal
from nearer.study.web import Study, current
from nearer.study.words import to_html

__all__ = [
    "About",
    "Answer",
    "Answers",
    "Completion",
    "Filled",
    "Join",
    "Shown",
    "ShownTrial",
    "Standing",
    "Strict",
    "completion_code",
    "practice",
    "resume_link",
    "router",
    "stage_of",
    "standing_of",
]

Number = Annotated[int, Field(ge=0, le=1 << 53)]


class Strict(BaseModel):
    """A body in which nothing unknown is taken."""

    model_config = ConfigDict(extra="forbid")


class Shown(Strict):
    """One thing to compare; its number differs between the query and the choices."""

    id: int
    kind: Literal["text", "image", "audio", "video"]
    name: str
    text: str
    alt: str
    src: str | None


class ShownTrial(Strict):
    """A question as it is shown: `head`, `left` and `right`, or more things in `shown`."""

    lease: int
    number: int
    task: Literal["two", "choose", "rank", "odd"]
    head: Shown | None
    left: Shown | None
    right: Shown | None
    shown: list[Shown] | None = None
    choose: int = 1
    #: in practice alone: the thing to choose
    expected: int | None = None


class Completion(Strict):
    """What a panel wants to see at the end."""

    code: str
    redirect: str | None


class Standing(Strict):
    """Where a person stands, and what comes next."""

    stage: Literal["consent", "page", "instructions", "trials", "paused", "finished", "screened"]
    answered: int
    questions: int
    trials: list[ShownTrial]
    #: the page of a questionnaire that is to be filled in
    page: dict[str, Any] | None = None
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


class About(Strict):
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
    lab: bool
    task: Literal["two", "choose", "rank", "odd"]
    html: dict[str, str] = Field(description="the long texts, formatted")
    open: bool
    panels: dict[str, str]
    practice: list[ShownTrial]


class Join(Strict):
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


class Answer(Strict):
    """An answer to a question that was handed out."""

    lease: Number
    choice: Literal["left", "right", "chosen", "undecided", "skip"]
    response_ms: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    chosen: list[Number] | None = Field(
        default=None, max_length=100, description="with choice=chosen: ids of things, best first"
    )
    instead: bool = Field(default=False, description="in place of my last answer, to `last`")


class Filled(Strict):
    """A page of a questionnaire, filled in."""

    page: str = Field(max_length=100)
    replies: dict[
        Annotated[str, Field(max_length=100)],
        Annotated[str, Field(max_length=20_000)] | int | float | None,
    ] = Field(max_length=200, description="by name of field")


class Answers(Strict):
    """One or several answers, oldest first."""

    answers: list[Answer] = Field(min_length=1, max_length=200)


def standing_of(study: Study, ledger: Ledger, admission: Admission) -> dict[str, Any]:
    """Where a person stands. Runs in the writer's thread, after what was just stored."""
    board, faces = ledger.board, study.faces
    trials: list[Trial] = []
    stage, due = stage_of(ledger, admission.person)
    if stage == "trials":
        trials = posing.hand_out(ledger, admission.person)
        stage, due = stage_of(ledger, admission.person)  # nothing may have been left to ask
    person = board.people[admission.person]
    ended = stage in ("finished", "screened")
    last = None
    if admission.proved and not ended and actions.may_take_back(ledger, person) and person.last:
        lease = board.leases[person.last.lease]
        last = _shown(faces, posing.trial_of(ledger, lease, person.answered))
    return {
        "stage": stage,
        "page": due.shown() if due else None,
        "answered": person.answered,
        "questions": board.config.questions,
        "trials": [_shown(faces, t) for t in trials],
        "completion": _completion(study, ledger, admission.person, stage) if ended else None,
        "last": last,
        "enough": stage == "finished" and person.answered < board.config.questions,
    }


def stage_of(ledger: Ledger, person: int) -> tuple[str, QuestionnairePage | None]:
    """What a person should see now, pages of a questionnaire among it."""
    config = ledger.board.config
    stage = actions.stage(ledger, person)
    return next_page(ledger.db, person, stage, config.before, config.after)


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


def practice(faces: Faces, config: Config) -> list[dict[str, Any]]:
    """Questions of the study's task with a plain answer.

    One of the choices is the head itself; where there is no head, all but one are the same thing.
    """
    n, m, odd = len(faces.items), config.things, config.task == "odd"
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
        trial = _shown(faces, Trial(0, k + 1, config.task, query, shown, config.choose))
        # here everybody may see that it is the same
        same = None if odd else faces.choices[head]
        made.append({**trial, "head": same, "expected": faces.choices[plain]["id"]})
    return made


def completion_code(study: Study, person: int) -> str:
    """The code a person shows to the panel."""
    own = study.signer.tag("completion", str(person), 10).upper()
    return study.facts.config.completion_code or own.replace("-", "7").replace("_", "3")


def _completion(study: Study, ledger: Ledger, person: int, stage: str) -> dict[str, Any]:
    config = ledger.board.config
    code, template = completion_code(study, person), config.completion_redirect
    if stage == "screened":
        code, template = config.screen_out_code, config.screen_out_redirect
    if not template:
        return {"code": code, "redirect": None}
    row = ledger.db.execute(
        "SELECT external FROM identities WHERE person = ?", (person,)
    ).fetchone()
    filled = template.replace("{code}", quote(code, safe=""))
    return {
        "code": code,
        "redirect": filled.replace("{id}", quote(row[0] if row else "", safe="")),
    }


def resume_link(study: Study, person: int) -> str:
    """What a personal link ends with; whoever has it is that person."""
    return f"?resume={study.signer.sign('resume', {'id': person})}"


router = APIRouter(prefix="/api", tags=["participant"])

_bearer = HTTPBearer(auto_error=False, description="the token that joining gave")


async def person_of(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Admission:
    """The person whose token came with the request."""
    token = credentials.credentials if credentials else ""
    payload = current(request).signer.read("person", token)
    if payload is None:
        raise HTTPException(401, "no valid token came with it; open the study's link again")
    return Admission(int(payload["id"]), proved=not payload.get("visit"))


Me = Annotated[Admission, Depends(person_of)]


@router.get("/study", response_model=About)
def about(request: Request) -> JSONResponse:
    """The study's texts, and questions to practise on."""
    study = current(request)
    facts = study.facts
    keys = ["title", "question", "instructions", "consent", "consent_version", "contact", "debrief"]
    keys += ["questions", "can_skip", "can_be_undecided", "must_play", "surround", "lab", "task"]
    long = ("consent", "instructions", "debrief", "screen_out")
    return JSONResponse(
        {
            **{key: getattr(facts.config, key) for key in keys},
            "html": {key: to_html(getattr(facts.config, key)) for key in long},
            "open": facts.state == "running" and not facts.full,
            "panels": {name: parameter for name, (parameter, _) in PANELS.items()},
            "practice": practice(study.faces, facts.config),
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

    def change(ledger: Ledger) -> dict[str, Any]:
        admission = actions.join(
            ledger,
            consent=body.consent_version,
            identity=identity,
            browser=body.browser,
            proved=proved,
            language=body.language,
        )
        standing = standing_of(study, ledger, admission)
        payload = (
            {"id": admission.person} if admission.proved else {"id": admission.person, "visit": 1}
        )
        standing["token"] = study.signer.sign("person", payload)
        if admission.proved and ledger.board.config.returning == "link":
            standing["resume"] = resume_link(study, admission.person)
        return standing

    return JSONResponse(await study.write(change))


@router.get("/me", response_model=Standing)
async def me(request: Request, admission: Me) -> JSONResponse:
    """Where I stand; hands out the questions that are due."""
    study = current(request)
    return JSONResponse(await study.write(lambda ledger: standing_of(study, ledger, admission)))


@router.post("/consent", response_model=Standing)
async def consent(request: Request, admission: Me, body: Join) -> JSONResponse:
    """Agree again, after the consent text changed."""
    study = current(request)

    def change(ledger: Ledger) -> dict[str, Any]:
        actions.agree(ledger, admission.person, body.consent_version)
        return standing_of(study, ledger, admission)

    return JSONResponse(await study.write(change))


@router.post("/ready", response_model=Standing)
async def ready(request: Request, admission: Me) -> JSONResponse:
    """The instructions are read and the practice is done."""
    study = current(request)

    def change(ledger: Ledger) -> dict[str, Any]:
        if stage_of(ledger, admission.person)[0] in ("page", "screened"):
            raise Refusal(409, "there is a page to fill in first; load the page again")
        actions.get_ready(ledger, admission.person)
        return standing_of(study, ledger, admission)

    return JSONResponse(await study.write(change))


@router.post("/page", response_model=Standing)
async def page(request: Request, admission: Me, body: Filled) -> JSONResponse:
    """Fill in the page that is due."""
    study = current(request)
    config = study.facts.config
    filled = find_page(config.before, config.after, body.page)
    replies, out = filled.check(body.replies)

    def change(ledger: Ledger) -> dict[str, Any]:
        due = stage_of(ledger, admission.person)[1]
        done = pages_done(ledger.db, admission.person)
        if (due is None or due.id != filled.id) and filled.id not in done:
            raise Refusal(409, f"page {filled.id} is not the one to fill in now; load it again")
        keep_replies(ledger.db, admission.person, filled.id, replies, out, ledger.now)
        return standing_of(study, ledger, admission)

    return JSONResponse(await study.write(change))


@router.post("/answers", response_model=Standing)
async def answers(request: Request, admission: Me, body: Answers) -> JSONResponse:
    """Store answers. The reply comes after they are on the disk, and brings the next questions."""
    study = current(request)
    given = [_given(study.faces, answer) for answer in body.answers]

    def change(ledger: Ledger) -> dict[str, Any]:
        stored, refused = [], {}
        each = actions.elapsed(ledger, admission.person, [g.lease for g in given])
        for one in given:
            try:
                if one.instead and not admission.proved:
                    raise Refusal(403, "only the browser in which you began can take back")
                actions.answer(ledger, admission.person, one, each)
                stored.append(one.lease)
            except Refusal as refusal:
                if len(given) == 1 or refusal.status == 429:  # too fast, all of them alike
                    raise
                refused[one.lease] = str(refusal)
        return {**standing_of(study, ledger, admission), "stored": stored, "refused": refused}

    return JSONResponse(await study.write(change))


@router.post("/withdraw")
async def withdraw(request: Request, admission: Me) -> dict[str, int]:
    """Stop, and have all own answers and the identity erased."""
    study = current(request)
    if not admission.proved:
        raise HTTPException(
            403, "only the browser in which you began can erase; or ask the researcher"
        )
    return {"erased": await study.write(lambda ledger: actions.withdraw(ledger, admission.person))}


def _given(faces: Faces, answer: Answer) -> GivenAnswer:
    chosen = None
    if answer.chosen is not None:
        found = [faces.item(number) for number in answer.chosen]
        if None in found:
            raise Refusal(422, f"chosen={answer.chosen}: must be ids of things that were shown")
        chosen = tuple(k for k in found if k is not None)
    return GivenAnswer(answer.lease, answer.choice, answer.response_ms, chosen, answer.instead)
