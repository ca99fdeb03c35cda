"""What a participant's page calls.

A person is known by a token that the page keeps and sends with every call; cookies are not used,
so no other site can act in a person's name. Answers can be sent one at a time or several at once
after a pause without network, and sending one again changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from nearer.study import answering, joining
from nearer.study.answering import GivenAnswer
from nearer.study.auth import network_of
from nearer.study.faces import Faces
from nearer.study.identities import PANELS, Identity
from nearer.study.joining import Admission
from nearer.study.markup import to_html
from nearer.study.messages import About, Answer, Answers, Filled, Join, Standing
from nearer.study.questionnaire import find_page, keep_replies, pages_done
from nearer.study.refusals import Refusal
from nearer.study.rows import Ledger
from nearer.study.standing import practice, resume_link, stage_of, standing_of
from nearer.study.web import current

__all__ = ["router"]

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
        admission = joining.join(
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
        joining.agree(ledger, admission.person, body.consent_version)
        return standing_of(study, ledger, admission)

    return JSONResponse(await study.write(change))


@router.post("/ready", response_model=Standing)
async def ready(request: Request, admission: Me) -> JSONResponse:
    """The instructions are read and the practice is done."""
    study = current(request)

    def change(ledger: Ledger) -> dict[str, Any]:
        if stage_of(ledger, admission.person)[0] in ("page", "screened"):
            raise Refusal(409, "there is a page to fill in first; load the page again")
        joining.get_ready(ledger, admission.person)
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
        each = answering.elapsed(ledger, admission.person, [g.lease for g in given])
        for one in given:
            try:
                if one.instead and not admission.proved:
                    raise Refusal(403, "only the browser in which you began can take back")
                answering.answer(ledger, admission.person, one, each)
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
    return {"erased": await study.write(lambda ledger: joining.withdraw(ledger, admission.person))}


def _given(faces: Faces, answer: Answer) -> GivenAnswer:
    chosen = None
    if answer.chosen is not None:
        found = [faces.item(number) for number in answer.chosen]
        if None in found:
            raise Refusal(422, f"chosen={answer.chosen}: must be ids of things that were shown")
        chosen = tuple(k for k in found if k is not None)
    return GivenAnswer(answer.lease, answer.choice, answer.response_ms, chosen, answer.instead)
