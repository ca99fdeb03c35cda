"""What a researcher decides about a study, read from YAML and kept in the study's header.

Every field has a default that suits a first study with people; an unknown key is refused with the
nearest known one, so that a misspelt setting is never silently ignored.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nearer.errors import InvalidInput
from nearer.study.questionnaire import read_pages
from nearer.study.votes import RULES
from nearer.study.words import TEXTS, read_words

__all__ = ["METHODS", "Config", "read_yaml"]

METHODS = ("informative", "adaptive", "basis", "random")
_SCOPES = ("pooled", "person")

_COLOUR = re.compile("#[0-9a-f]{6}")


@dataclass(frozen=True)
class Config:
    """The settings of a study.

    Examples
    --------
    >>> Config.of({"questions": 30, "votes": "2+1"}).votes
    '2+1'
    >>> Config.of({"qestions": 30})
    Traceback (most recent call last):
    nearer.errors.InvalidInput: setting 'qestions' is not known; did you mean 'questions'?
    """

    #: the texts are Markdown where they are long; empty: what the language says
    title: str = ""
    question: str = ""
    instructions: str = ""
    consent: str = ""
    consent_version: str = "1"
    contact: str = ""
    debrief: str = ""
    #: one that is shipped, or the name of one whose words are all given
    language: str = "en"
    #: words of the page that differ from the language's, see ``pages/words/en.yaml``
    words: dict[str, str] = field(default_factory=dict)
    #: the colour that every stimulus stands on, in light and in dark surroundings
    surround: str = "#ffffff"
    #: whether people may hear or read what the items are called; else only a given description
    show_names: bool = False
    #: questions a person answers, catch trials and repeats included
    questions: int = 50
    practice: int = 2
    #: answers the whole study wants; 0 for no limit
    quota: int = 0
    method: str = "informative"
    scope: str = "pooled"
    #: "1", "2+1", "3", "5"; empty: what suits the method
    votes: str = ""
    n_components: int | None = None
    #: questions chosen at a time, at least
    batch: int = 20
    lease_seconds: int = 120
    catch_share: float = 0.04
    repeat_share: float = 0.06
    holdout_share: float = 0.1
    can_skip: bool = True
    can_be_undecided: bool = True
    #: audio and video must be played to the end before a choice can be made
    must_play: bool = True
    #: the code a panel asks for; empty: one of its own for every person
    completion_code: str = ""
    #: where a person is sent at the end; {code} and {id} are filled in
    completion_redirect: str = ""
    #: pages of a questionnaire, see `nearer.study.questionnaire`
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    #: what those see and get who are screened out; the text is Markdown
    screen_out: str = ""
    screen_out_code: str = ""
    screen_out_redirect: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, text in read_words(self.language, self.words).items():
            if name in TEXTS and not getattr(self, name):
                object.__setattr__(self, name, text)  # written out, as every default is
        good = bool(_COLOUR.fullmatch(self.surround))
        _check(good, "surround", self.surround, "must be a colour like #808080, in small letters")
        for name in ("questions", "lease_seconds", "batch"):
            _check(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")
        for name in ("practice", "quota", "seed"):
            _check(getattr(self, name) >= 0, name, getattr(self, name), "must be at least 0")
        shares = (self.catch_share, self.repeat_share, self.holdout_share)
        for name, share in zip(("catch", "repeat", "holdout"), shares, strict=True):
            _check(0 <= share <= 0.5, f"{name}_share", share, "must be from 0 to 0.5")
        _check(sum(shares) <= 0.8, "shares", shares, "must leave at least 0.2 for real questions")
        _check(
            self.method in METHODS, "method", self.method, "must be one of " + ", ".join(METHODS)
        )
        _check(self.scope in _SCOPES, "scope", self.scope, "must be pooled or person")
        known = self.votes in ("", *RULES)
        _check(known, "votes", self.votes, "must be one of " + ", ".join(RULES))
        alone = self.scope == "person"
        _check(
            not alone or self.rule == "1", "votes", self.votes, "must be 1 where scope is person"
        )
        dims = self.n_components
        _check(dims is None or dims >= 1, "n_components", dims, "must be at least 1")
        for name in ("completion_redirect", "screen_out_redirect"):
            parts = urlsplit(getattr(self, name))
            good = parts.scheme in ("https", "http") and bool(parts.netloc)
            good = good or not getattr(self, name)
            _check(good, name, getattr(self, name), "must be an http(s) address")
        read_pages(self.before, "before")
        read_pages(self.after, "after")

    @property
    def rule(self) -> str:
        """How many people a question is put to."""
        if self.votes:
            return self.votes
        sorts = self.method in ("adaptive", "basis") and self.scope == "pooled"
        return "2+1" if sorts else "1"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Config:
        """Check settings, of whatever types a YAML file gives, and make a configuration of them."""
        fields = {f.name: f for f in dataclasses.fields(cls)}
        values = {}
        for name, value in settings.items():
            if name not in fields:
                near = difflib.get_close_matches(str(name), fields, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "known are: " + ", ".join(fields)
                raise InvalidInput(f"setting {name!r} is not known; {hint}")
            values[name] = _coerce(name, value, fields[name])
        return cls(**values)

    def to_json(self) -> str:
        """All settings, defaults written out, so that a later version changes nothing."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Config:
        """What `to_json` wrote."""
        return cls.of(json.loads(text))


def _coerce(name: str, value: Any, known: dataclasses.Field[Any]) -> Any:
    """A value in the type of its default; what cannot be one is refused."""
    if name == "n_components" and value is None:
        return None
    made = known.default_factory
    default = known.default if made is dataclasses.MISSING else made()
    kind = int if name == "n_components" else type(default)
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)  # YAML reads `votes: 3` and `consent_version: 2` as numbers
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise InvalidInput(f"setting {name}={value!r}: must be of type {kind.__name__}")
    return value


def _check(good: bool, name: str, value: object, rule: str) -> None:
    if not good:
        raise InvalidInput(f"setting {name}={value!r}: {rule}")


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; anything else is refused."""
    import yaml  # noqa: PLC0415 - only needed where a file is read

    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput(f"{path}: cannot be read as YAML: {error}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InvalidInput(f"{path}: holds a {type(loaded).__name__}; must be `name: value` lines")
    return loaded
