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

from nearer.algorithms import methods
from nearer.errors import InvalidInput
from nearer.study.questionnaire import read_pages
from nearer.study.words import default_texts, read_words
from nearer.trials import Task

__all__ = ["CHANGEABLE", "METHODS", "RULES", "TASKS", "Config", "parse_yaml", "part", "read_yaml"]

#: the library's methods that suit people who come and go; and none, questions drawn at random
METHODS = (*(name for name, way in methods.METHODS.items() if way.in_studies), "random")
#: settings of which a study that has begun depends on the first value
_FIXED = ("task", "things", "choose", "method", "scope", "votes", "n_components", "seed")
TASKS = ("two", "choose", "rank", "odd")
#: rule: (people asked at first, votes at most, votes that decide)
RULES: dict[str, tuple[int, int, int]] = {
    "1": (1, 1, 1),
    "2+1": (2, 3, 2),
    "3": (3, 3, 2),
    "5": (5, 5, 3),
}
_WORDS = {
    "task": TASKS,
    "scope": ("pooled", "person"),
    "when_all_asked": ("more", "finish"),
    "returning": ("browser", "link", "visit"),
}

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
    #: the study has enough when Kendall's τ between distances on the map and true ones is expected
    #: to be this; 1: never, the quota decides
    quality: float = 0.99
    #: "two": which of two is more like the one on top; "choose": which k of m; "rank": which k,
    #: best first; "odd": which one is least like the others. More than two things need `random`
    task: str = "two"
    #: things to choose from
    things: int = 2
    #: how many of them are chosen
    choose: int = 1
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
    #: own questions among a person's, where there is a list of them
    own_share: float = 0.2
    #: "more": when every question has its votes, ask for further ones; "finish": thank people
    when_all_asked: str = "more"
    #: who may go on under an id that is taken: "browser", the one it began in; "link", who has
    #: the personal link too; "visit", everybody with the id, who can add answers but erase none
    returning: str = "browser"
    #: people come one after the other to the same computer: nothing of one is left for the next
    lab: bool = False
    #: answers that come faster than this by the server's clock must wait; 0 takes all
    fastest_ms: int = 0
    #: refuse an answer whose response time is longer than the question was out
    refuse_false_times: bool = False
    #: people who may join from one address in a minute, after the first 300; 0 for no limit
    joins_per_minute: int = 60
    #: sites that may show the study in a frame of theirs, as MTurk does
    frame_ancestors: str = ""
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
        words = read_words(self.language, self.words)
        for name, text in default_texts(words, self.task, self.choose).items():
            if not getattr(self, name):
                object.__setattr__(self, name, text)  # written out, as every default is
        good = bool(_COLOUR.fullmatch(self.surround))
        _check(good, "surround", self.surround, "must be a colour like #808080, in small letters")
        for name in ("questions", "lease_seconds", "batch"):
            _check(getattr(self, name) >= 1, name, getattr(self, name), "must be at least 1")
        for name in ("practice", "quota", "seed", "fastest_ms", "joins_per_minute"):
            _check(getattr(self, name) >= 0, name, getattr(self, name), "must be at least 0")
        shares = (self.catch_share, self.repeat_share, self.holdout_share)
        for name, share in zip(("catch", "repeat", "holdout"), shares, strict=True):
            _check(0 <= share <= 0.5, f"{name}_share", share, "must be from 0 to 0.5")
        _check(sum(shares) <= 0.8, "shares", shares, "must leave at least 0.2 for real questions")
        _check(
            self.method in METHODS, "method", self.method, "must be one of " + ", ".join(METHODS)
        )
        _check(0 <= self.quality <= 1, "quality", self.quality, "must be from 0 to 1")
        for name, known in _WORDS.items():
            value = getattr(self, name)
            _check(value in known, name, value, "must be one of " + ", ".join(known))
        self._check_task()
        _check(0 <= self.own_share <= 1, "own_share", self.own_share, "must be from 0 to 1")
        odd = set(self.frame_ancestors) & set(";,'\"\r\n")
        _check(not odd, "frame_ancestors", self.frame_ancestors, "must be addresses, with spaces")
        _check(
            self.votes in ("", *RULES), "votes", self.votes, "must be one of " + ", ".join(RULES)
        )
        alone = self.scope == "person"
        _check(
            not alone or self.rule == "1", "votes", self.votes, "must be 1 where scope is person"
        )
        dims = self.n_components
        _check(dims is None or dims >= 1, "n_components", dims, "must be at least 1")
        for name in ("completion_redirect", "screen_out_redirect"):
            address = getattr(self, name)
            good = not address or _is_address(address)
            _check(good, name, address, "must be an http(s) address")
        read_pages(self.before, "before")
        read_pages(self.after, "after")

    def _check_task(self) -> None:
        least = 3 if self.task == "odd" else 2
        most = 2 if self.task == "two" else 20
        _check(least <= self.things <= most, "things", self.things, f"must be {least} to {most}")
        fewer = 1 <= self.choose < self.things
        _check(fewer, "choose", self.choose, "must be at least 1, and fewer than things")
        single = self.choose == 1 or self.task in ("choose", "rank")
        _check(single, "choose", self.choose, f"must be 1 where task is {self.task}")
        wide = self.task != "two"
        _check(not wide or self.method == "random", "method", self.method,
               f"must be random where task is {self.task}")  # fmt: skip
        _check(not wide or (self.scope, self.rule) == ("pooled", "1"), "task", self.task,
               "needs scope pooled and one vote a question")  # fmt: skip

    @property
    def as_task(self) -> Task:
        """What a screen asks for, in the library's words."""
        kind = "odd-one-out" if self.task == "odd" else "near"
        return Task(kind, self.choose, self.things, self.task == "rank")

    def check_items(self, n_items: int) -> None:
        """Refuse what cannot be asked about so few things."""
        shown = self.things + (self.task != "odd")
        _check(n_items >= shown, "things", self.things, f"a screen shows {shown} items; there are "
               f"{n_items}, bring more or show fewer")  # fmt: skip
        dims = self.n_components
        _check(dims is None or dims < n_items, "n_components", dims,
               f"must be below the number of items, {n_items}")  # fmt: skip

    @property
    def in_rounds(self) -> bool:
        """Whether the method asks in rounds and trusts what was decided."""
        way = methods.METHODS.get(self.method)
        return way is not None and way.in_studies == "rounds"

    @property
    def rule(self) -> str:
        """How many people a question is put to."""
        if self.votes:
            return self.votes
        return "2+1" if self.in_rounds and self.scope == "pooled" else "1"

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

    def changed(self, settings: Mapping[str, Any]) -> Config:
        """These settings with some others in their place.

        Examples
        --------
        >>> Config().changed({"questions": 7}).questions
        7
        """
        return Config.of({**dataclasses.asdict(self), **settings})

    def to_json(self) -> str:
        """All settings, defaults written out, so that a later version changes nothing."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Config:
        """What `to_json` wrote."""
        return cls.of(json.loads(text))


#: settings that can be changed while people answer
CHANGEABLE = tuple(f.name for f in dataclasses.fields(Config) if f.name not in _FIXED)


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
        remedy = "; put it in quotes" if kind is str else ""
        raise InvalidInput(f"setting {name}={value!r}: must be of type {kind.__name__}{remedy}")
    return value


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:  # as of http://[
        return False
    return parts.scheme in ("https", "http") and bool(parts.netloc)


def _check(good: bool, name: str, value: object, rule: str) -> None:
    if not good:
        raise InvalidInput(f"setting {name}={value!r}: {rule}")


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; anything else is refused."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is not UTF-8 ({error}); save it as UTF-8 text") from error
    loaded = parse_yaml(str(path), text)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InvalidInput(f"{path}: holds a {type(loaded).__name__}; must be `name: value` lines")
    return loaded


def parse_yaml(name: str, text: str) -> Any:
    """What a text says; one that is almost a date or a number is refused with its place."""
    import yaml  # noqa: PLC0415 - only needed where a file is read

    class Loader(yaml.SafeLoader):
        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep=deep)
            except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
                what = f"{str(node.value)[:40]!r} is no {node.tag.rpartition(':')[2]}"
                raise yaml.constructor.ConstructorError(
                    None, None, f"{what}; put it in quotes where it is text", node.start_mark
                ) from error

    try:
        _refuse_repeats(name, yaml.compose(text, Loader=Loader))
        return yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise InvalidInput(f"{name}: cannot be read as YAML: {error}") from error
    except RecursionError:
        raise InvalidInput(
            f"{name}: cannot be read as YAML: its brackets are nested too deeply; mend it"
        ) from None


def _refuse_repeats(name: str, node: Any) -> None:
    """Of a name that is there twice YAML takes the last, and nobody would know."""
    seen: dict[Any, int] = {}
    for key, _ in node.value if node is not None and node.id == "mapping" else ():
        line = key.start_mark.line + 1
        if isinstance(key.value, str) and seen.setdefault(key.value, line) != line:
            raise InvalidInput(
                f"{name}, line {line}: {key.value!r} is there twice, first on line "
                f"{seen[key.value]}; take one out"
            )


def part(path: Path, given: Mapping[Any, Any], name: Any) -> dict[Any, Any]:
    """A mapping inside a mapping of a YAML file; empty where there is none."""
    found = given.get(name) or {}
    if not isinstance(found, dict):
        raise InvalidInput(f"{path}: {name}={found!r}: must be `name: value` lines")
    return found
