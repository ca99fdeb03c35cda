"""What a participant's page and the server say to each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

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
