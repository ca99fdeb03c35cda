"""Where a person stands, as their page is told: the stage, the questions in hand, code and link."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nearer.study import answering, joining, posing
from nearer.study.config import Config
from nearer.study.faces import Faces
from nearer.study.joining import Admission
from nearer.study.posing import Trial
from nearer.study.questionnaire import QuestionnairePage, next_page
from nearer.study.rows import Ledger
from nearer.study.web import Study

__all__ = ["completion_code", "practice", "resume_link", "stage_of", "standing_of"]


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
    if admission.proved and not ended and answering.may_take_back(ledger, person) and person.last:
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
    stage = joining.stage(ledger, person)
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
