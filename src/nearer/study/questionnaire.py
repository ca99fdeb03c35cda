"""Questions about the person: pages before and after the comparisons, written in YAML.

A page has a title, a text (Markdown) and fields. A field is a *choice* among options, a *number*,
a short *text*, a *long* one, or a *scale* of points. Each must be answered unless it says
``required: false``. A choice, number or scale can screen out: a person who gives such an answer is
thanked, gets the code for that, and compares nothing.

Restraint: pages follow each other and never branch. What needs more is done better by a survey
tool, to which a link is enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, model_validator

from nearer.errors import InvalidInput
from nearer.study.words import Checked, Line, Text, to_html

Number = Annotated[float, Strict(), Field(ge=-1e15, le=1e15)]
_MAX_POINTS = 11


class _Field(Checked):
    """One question about the person."""

    name: Annotated[Line, Field(max_length=60)]
    label: Annotated[Text, Field(min_length=1)]
    required: Annotated[bool, Strict()] = True

    @model_validator(mode="after")
    def _check(self) -> _Field:
        if not self.name.isidentifier():
            raise ValueError(f"name={self.name!r}: must be one word of letters, digits and _")
        return self

    @property
    def can_screen_out(self) -> bool:
        """Whether some reply screens out."""
        return getattr(self, "screen_out", None) not in (None, (), Outside())

    def check(self, value: Any) -> None:
        """Refuse a reply that does not fit."""

    def screens_out(self, value: Any) -> bool:
        """Whether a person who replies this is not asked further."""
        return False


class Choice(_Field):
    """One of several options."""

    kind: Literal["choice"]
    options: Annotated[tuple[Line, ...], Field(min_length=2, max_length=200)]
    screen_out: tuple[Line, ...] = ()

    @model_validator(mode="after")
    def _check_options(self) -> Choice:
        if len(set(self.options)) < len(self.options):
            raise ValueError(f"options={self.options}: must be different texts")
        if not set(self.screen_out) <= set(self.options):
            raise ValueError(f"screen_out={self.screen_out}: must be among the options")
        return self

    def check(self, value: Any) -> None:
        """Refuse what is no option."""
        if value not in self.options:
            raise InvalidInput(
                f"{self.name}={str(value)[:60]!r}: must be one of {', '.join(self.options)}"
            )

    def screens_out(self, value: Any) -> bool:
        """Whether the option screens out."""
        return value in self.screen_out


class Outside(Checked):
    """Numbers below or above which a person is screened out."""

    below: Number | None = None
    above: Number | None = None


class _Ranged(_Field):
    """A number between two limits."""

    least: Number | None = None
    most: Number | None = None
    screen_out: Outside = Outside()

    @model_validator(mode="after")
    def _check_range(self) -> _Ranged:
        if self.least is not None and self.most is not None and self.least >= self.most:
            raise ValueError(f"most={self.most}: must be above least={self.least}")
        return self

    def check(self, value: Any) -> None:
        """Refuse what is no number between the limits."""
        low = -math.inf if self.least is None else self.least
        high = math.inf if self.most is None else self.most
        if isinstance(value, bool | str) or not low <= value <= high:
            limits = ("any" if k is None else f"{k:g}" for k in (self.least, self.most))
            rule = "must be a number from {} to {}".format(*limits)
            raise InvalidInput(f"{self.name}={str(value)[:60]!r}: {rule}")

    def screens_out(self, value: Any) -> bool:
        """Whether the number lies outside what is wanted."""
        low, high = self.screen_out.below, self.screen_out.above
        return (low is not None and value < low) or (high is not None and value > high)


class Ranged(_Ranged):
    """A number that is typed."""

    kind: Literal["number"]


class Scale(_Ranged):
    """Points between two ends."""

    kind: Literal["scale"]
    least: Annotated[int, Strict()] = 1
    most: Annotated[int, Strict()] = 7
    ends: tuple[Line, ...] = ()

    @model_validator(mode="after")
    def _check_points(self) -> Scale:
        if self.most - self.least >= _MAX_POINTS:
            raise ValueError(f"most={self.most}: must make at most {_MAX_POINTS} points")
        if len(self.ends) not in (0, 2):
            raise ValueError(f"ends={self.ends}: must be two texts, for the two ends")
        return self

    def check(self, value: Any) -> None:
        """Refuse what is no point."""
        super().check(value)
        if value != int(value):
            raise InvalidInput(f"{self.name}={value!r}: must be a whole number")


class _Written(_Field):
    """A text of so many characters at most."""

    most: Annotated[int, Strict(), Field(ge=1, le=20_000)]

    def check(self, value: Any) -> None:
        """Refuse a text that is too long."""
        if not isinstance(value, str) or len(value) > self.most:
            rule = f"must be a text of at most {self.most} characters"
            raise InvalidInput(f"{self.name}={str(value)[:60]!r}: {rule}")


class Short(_Written):
    """One line."""

    kind: Literal["text"]
    most: Annotated[int, Strict(), Field(ge=1, le=20_000)] = 200


class Long(_Written):
    """Several lines."""

    kind: Literal["long"]
    most: Annotated[int, Strict(), Field(ge=1, le=20_000)] = 5_000


AnyField = Annotated[Choice | Ranged | Scale | Short | Long, Field(discriminator="kind")]


class QuestionnairePage(Checked):
    """Fields that are shown together."""

    title: Annotated[Line, Field(min_length=1)]
    text: Text = ""
    ask: tuple[AnyField, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> QuestionnairePage:
        if not self.text and not self.ask:
            raise ValueError("ask=(): must ask something, or `text` say something")
        return self

    def shown(self, number: str) -> dict[str, Any]:
        """What the participant's page gets: everything but the answers that screen out."""
        fields = [field.model_dump(exclude={"screen_out"}) for field in self.ask]
        return {"id": number, "title": self.title, "html": to_html(self.text), "fields": fields}

    def check(self, replies: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The replies to keep, and whether the person is screened out."""
        known = {field.name: field for field in self.ask}
        for name in replies:
            if name not in known:
                raise InvalidInput(f"reply {name[:60]!r}: this page asks {', '.join(known)}")
        kept: dict[str, Any] = {}
        for name, field in known.items():
            value = replies.get(name)
            if value is not None and str(value).strip():
                field.check(value)
                kept[name] = value
            elif field.required:
                raise InvalidInput(f"reply {name!r}: is missing; it must be given")
        return kept, any(known[name].screens_out(value) for name, value in kept.items())
