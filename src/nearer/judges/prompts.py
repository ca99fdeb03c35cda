"""How a question is written for a language model, and how its reply is read.

The two options are shown as A and B; which object is A is drawn for each question, so that a model
that favours one letter adds noise and not a tilt. A reply is the letter and nothing else. Several
questions in one prompt are numbered, and so are the lines of the reply.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nearer import checks
from nearer.errors import InvalidInput

__all__ = ["PICTURES", "Options", "Prompt"]

Order = Literal["random", "fixed"]
PICTURES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}
SHRUG = "?"

_ONE = "Answer with the letter A or B and nothing else."
_SEVERAL = (
    "Answer every question. Write one line for each: its number, a colon, and the letter A or B. "
    "Write nothing else."
)
_AGAIN = "That was not an answer in the form asked for. "
_LETTER = re.compile(r"[\s\"'(*`]*([AB?])[\s\"')*`.]*", re.IGNORECASE)
_LINE = re.compile(r"\s*(\d+)\s*[:.)]\s*([AB?])\.?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Options:
    """A question as it is shown: whether the options have changed places."""

    head: Any
    first: Any
    second: Any
    swapped: bool


@dataclass
class Prompt:
    """A way to put questions to a language model.

    Attributes
    ----------
    question
        With ``{head}`` where the head belongs.
    system
        What is said before everything else.
    order
        ``"random"``: which object is option A is drawn for each question. ``"fixed"``: a is A.
    salt
        Draws the order, together with the question and how often it was put.
    """

    question: str = "Which is more like {head}?"
    system: str = "You compare things."
    order: Order = "random"
    salt: int = 0
    _times: dict[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        checks.one_of("order", self.order, ("random", "fixed"))
        try:
            self.question.format(head="x")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"question={self.question!r}: must be words with {{head}} where the head belongs, "
                "and no other braces"
            ) from error
        if self.question.format(head="x") == self.question.format(head="y"):
            raise InvalidInput(
                f"question={self.question!r}: must hold {{head}}, such as 'Which is more like "
                "{head}?'"
            )

    def show(self, question: Sequence[Any]) -> Options:
        """Decide which object is shown first."""
        if len(question) != 3:
            raise InvalidInput(
                f"a question of {len(question)} objects: a language model is asked about a head "
                "and two others"
            )
        head, a, b = question
        if self.order == "fixed":
            return Options(head, a, b, False)
        key = repr((str(head), *sorted((str(a), str(b)))))
        times = self._times[key] = self._times.get(key, -1) + 1
        drawn = hashlib.blake2b(f"{self.salt} {times} {key}".encode(), digest_size=1).digest()[0]
        swapped = bool(drawn & 1) ^ (str(a) > str(b))
        return Options(head, b, a, True) if swapped else Options(head, a, b, False)

    def messages(self, shown: Sequence[Options], *, again: bool = False) -> list[dict[str, Any]]:
        """The messages of one call."""
        rule = _ONE if len(shown) == 1 else _SEVERAL
        parts: list[dict[str, Any]] = []
        for number, one in enumerate(shown, 1):
            parts += self._parts("" if len(shown) == 1 else f"{number}. ", one)
        return [
            {"role": "system", "content": f"{self.system} {_AGAIN if again else ''}{rule}"},
            {"role": "user", "content": _joined(parts)},
        ]

    def _parts(self, number: str, one: Options) -> list[dict[str, Any]]:
        pictured = is_picture(one.head)
        asked = self.question.format(head="this picture" if pictured else one.head)
        parts = [_text(f"{number}{asked}\n")]
        parts += [_picture(one.head)] if pictured else []
        for letter, thing in (("A", one.first), ("B", one.second)):
            if is_picture(thing):
                parts += [_text(f"{letter}:"), _picture(thing)]
            else:
                parts.append(_text(f"{letter}: {thing}\n"))
        return parts

    @staticmethod
    def read(reply: Any, count: int) -> list[str | None]:
        """The letter given to each question, ``"?"`` for don't know, None where none is read."""
        if not isinstance(reply, str):
            return [None] * count
        if count == 1:
            match = _LETTER.fullmatch(reply)
            return [match[1].upper() if match else None]
        found: dict[int, set[str]] = {}
        for line in reply.strip().splitlines():
            match = _LINE.fullmatch(line)
            if match:
                found.setdefault(int(match[1]), set()).add(match[2].upper())
        letters = [found.get(number, set()) for number in range(1, count + 1)]
        return [next(iter(said)) if len(said) == 1 else None for said in letters]


def is_picture(thing: Any) -> bool:
    """Whether an object is the path of a picture."""
    return isinstance(thing, Path) and thing.suffix.lower() in PICTURES


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _picture(path: Path) -> dict[str, Any]:
    try:
        data = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror}); check the path") from error
    mime = mimetypes.guess_type(path.name)[0]
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def _joined(parts: list[dict[str, Any]]) -> Any:
    """Plain words where there are only words, which every endpoint takes."""
    if all(part["type"] == "text" for part in parts):
        return "".join(part["text"] for part in parts).strip()
    return parts
