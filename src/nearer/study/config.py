"""What a researcher decides about a study, read from YAML and kept in the study's header.

Every setting has a default that suits a first study with people; an unknown name is refused with
the nearest known one, so that a misspelt setting is never silently ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, Strict, model_validator

from nearer.algorithms import methods
from nearer.errors import InvalidInput
from nearer.study.questionnaire import QuestionnairePage
from nearer.study.words import Checked, Line, Text, default_texts, parse, read_words
from nearer.trials import Task

#: the library's methods that suit people who come and go; and none, questions drawn at random
METHODS = (*(name for name, way in methods.METHODS.items() if way.in_studies), "random")
#: rule: (people asked at first, votes at most, votes that decide)
RULES: dict[str, tuple[int, int, int]] = {
    "1": (1, 1, 1),
    "2+1": (2, 3, 2),
    "3": (3, 3, 2),
    "5": (5, 5, 3),
}
#: settings of which a study that has begun depends on the first value
_FIXED = ("task", "things", "choose", "method", "scope", "votes", "n_components", "seed")

Count = Annotated[int, Strict(), Field(ge=0, le=1_000_000_000)]
AtLeastOne = Annotated[int, Strict(), Field(ge=1, le=1_000_000_000)]
Share = Annotated[float, Strict(), Field(ge=0, le=0.5)]
Probability = Annotated[float, Strict(), Field(ge=0, le=1)]
Switch = Annotated[bool, Strict()]


class Config(Checked):
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
    title: Line = ""
    question: Line = ""
    instructions: Text = ""
    consent: Text = ""
    consent_version: Annotated[Line, Field(max_length=200)] = "1"
    contact: Line = ""
    debrief: Text = ""
    #: one that is shipped, or the name of one whose words are all given
    language: Line = "en"
    #: words of the page that differ from the language's, see ``pages/words/en.yaml``
    words: dict[Line, Any] = Field(default_factory=dict)
    #: the colour that every stimulus stands on, in light and in dark surroundings
    surround: Line = "#ffffff"
    #: whether people may hear or read what the items are called; else only a given description
    show_names: Switch = False
    #: questions a person answers, catch trials and repeats included
    questions: AtLeastOne = 50
    practice: Count = 2
    #: answers the whole study wants; 0 for no limit
    quota: Count = 0
    #: the study has enough when Kendall's τ between distances on the map and true ones is expected
    #: to be this; 1: never, the quota decides
    quality: Probability = 0.99
    #: "two": which of two is more like the one on top; "choose": which k of m; "rank": which k,
    #: best first; "odd": which one is least like the others. More than two things need `random`
    task: Literal["two", "choose", "rank", "odd"] = "two"
    #: things to choose from
    things: Count = 2
    #: how many of them are chosen
    choose: AtLeastOne = 1
    method: Line = "informative"
    scope: Literal["pooled", "person"] = "pooled"
    #: "1", "2+1", "3", "5"; empty: what suits the method
    votes: Line = ""
    n_components: AtLeastOne | None = None
    #: questions chosen at a time, at least
    batch: AtLeastOne = 20
    lease_seconds: AtLeastOne = 120
    catch_share: Share = 0.04
    repeat_share: Share = 0.06
    holdout_share: Share = 0.1
    #: own questions among a person's, where there is a list of them
    own_share: Probability = 0.2
    #: "more": when every question has its votes, ask for further ones; "finish": thank people
    when_all_asked: Literal["more", "finish"] = "more"
    #: who may go on under an id that is taken: "browser", the one it began in; "link", who has
    #: the personal link too; "visit", everybody with the id, who can add answers but erase none
    returning: Literal["browser", "link", "visit"] = "browser"
    #: people come one after the other to the same computer: nothing of one is left for the next
    lab: Switch = False
    #: answers that come faster than this by the server's clock must wait; 0 takes all
    fastest_ms: Count = 0
    #: refuse an answer whose response time is longer than the question was out
    refuse_false_times: Switch = False
    #: people who may join from one address in a minute, after the first 300; 0 for no limit
    joins_per_minute: Count = 60
    #: sites that may show the study in a frame of theirs, as MTurk does
    frame_ancestors: Line = ""
    can_skip: Switch = True
    can_be_undecided: Switch = True
    #: audio and video must be played to the end before a choice can be made
    must_play: Switch = True
    #: the code a panel asks for; empty: one of its own for every person
    completion_code: Line = ""
    #: where a person is sent at the end; {code} and {id} are filled in
    completion_redirect: Line = ""
    #: pages of a questionnaire, see `nearer.study.questionnaire`
    before: tuple[QuestionnairePage, ...] = ()
    after: tuple[QuestionnairePage, ...] = ()
    #: what those see and get who are screened out; the text is Markdown
    screen_out: Text = ""
    screen_out_code: Line = ""
    screen_out_redirect: Line = ""
    seed: Count = 0

    @model_validator(mode="after")
    def _check(self) -> Config:
        words = read_words(self.language, self.words)
        for name, text in default_texts(words, self.task, self.choose).items():
            if not getattr(self, name):
                object.__setattr__(self, name, text)  # written out, as every default is
        colour = re.fullmatch("#[0-9a-f]{6}", self.surround)
        self._insist(colour, "surround", "must be a colour like #808080, in small letters")
        shares = self.catch_share + self.repeat_share + self.holdout_share
        self._insist(shares <= 0.8, "holdout_share", "the shares must leave 0.2 for real questions")
        self._insist(self.method in METHODS, "method", f"must be one of {', '.join(METHODS)}")
        self._insist(
            self.votes in ("", *RULES), "votes", f"must be one of {', '.join(RULES)}, in quotes"
        )
        alone = self.scope == "person"
        self._insist(not alone or self.rule == "1", "votes", "must be 1 where scope is person")
        odd = set(self.frame_ancestors) & set(";,'\"")
        self._insist(not odd, "frame_ancestors", "must be addresses, with spaces between them")
        for name in ("completion_redirect", "screen_out_redirect"):
            self._insist(_is_address(getattr(self, name)), name, "must be an http(s) address")
        self._check_task()
        self._check_pages()
        return self

    def _check_task(self) -> None:
        least = 3 if self.task == "odd" else 2
        most = 2 if self.task == "two" else 20
        self._insist(least <= self.things <= most, "things", f"must be {least} to {most}")
        self._insist(self.choose < self.things, "choose", "must be fewer than things")
        single = self.choose == 1 or self.task in ("choose", "rank")
        self._insist(single, "choose", f"must be 1 where task is {self.task}")
        two = self.task == "two"
        rule = f"must be random where task is {self.task}"
        self._insist(two or self.method == "random", "method", rule)
        together = (self.scope, self.rule) == ("pooled", "1")
        self._insist(two or together, "task", "needs scope pooled and one vote a question")

    def _check_pages(self) -> None:
        for when, pages in (("before", self.before), ("after", self.after)):
            names = [field.name for page in pages for field in page.ask]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"{when}: name={twice!r}: is taken; names differ")
        late = next((f.name for page in self.after for f in page.ask if f.can_screen_out), None)
        if late is not None:
            raise ValueError(f"after: screen_out of {late!r}: comes too late; ask that before")

    def _insist(self, good: object, name: str, rule: str) -> None:
        if not good:
            raise ValueError(f"{name}={getattr(self, name)!r}: {rule}")

    @property
    def pages(self) -> dict[str, QuestionnairePage]:
        """The pages of the questionnaires by their ids, ``before-1`` and so on."""
        pages = (("before", self.before), ("after", self.after))
        return {f"{when}-{k}": page for when, some in pages for k, page in enumerate(some, 1)}

    @property
    def as_task(self) -> Task:
        """What a screen asks for, in the library's words."""
        kind = "odd-one-out" if self.task == "odd" else "near"
        return Task(kind, self.choose, self.things, self.task == "rank")

    def check_items(self, n_items: int) -> None:
        """Refuse what cannot be asked about so few things."""
        shown = self.things + (self.task != "odd")
        if n_items < shown:
            raise InvalidInput(
                f"setting things={self.things}: a screen shows {shown} items; there are "
                f"{n_items}, bring more or show fewer"
            )
        if self.n_components is not None and self.n_components >= n_items:
            raise InvalidInput(
                f"setting n_components={self.n_components}: must be below the number of items, "
                f"{n_items}"
            )

    @property
    def in_rounds(self) -> bool:
        """Whether the method asks in rounds and takes decisions for true."""
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
        return parse(cls, settings, "setting ")

    def changed(self, settings: Mapping[str, Any]) -> Config:
        """These settings with some others in their place.

        Examples
        --------
        >>> Config().changed({"questions": 7}).questions
        7
        """
        return Config.of({**self.model_dump(), **settings})

    def to_json(self) -> str:
        """All settings, defaults written out, so that a later version changes nothing."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> Config:
        """What `to_json` wrote."""
        return cls.of(json.loads(text))


#: settings that can be changed while people answer
CHANGEABLE = tuple(name for name in Config.model_fields if name not in _FIXED)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:  # as of http://[
        return False
    return not text or (parts.scheme in ("https", "http") and bool(parts.netloc))


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; anything else is refused."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror}); check the path") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: is not UTF-8 ({error}); save it as UTF-8 text") from error
    return part(path, {"file": parse_yaml(str(path), text)}, "file")


def parse_yaml(name: str, text: str) -> Any:
    """What a text says; of a name that is there twice YAML would silently take the last."""
    import yaml  # noqa: PLC0415 - only needed where a file is read

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        lines: dict[Any, int] = {}
        for key, _ in pairs:
            line = key.start_mark.line + 1
            if isinstance(key.value, str) and lines.setdefault(key.value, line) != line:
                raise InvalidInput(
                    f"{name}, line {line}: {key.value!r} is there twice, first on line "
                    f"{lines[key.value]}; take one out"
                )
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"{name}: cannot be read as YAML: {error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{name}: cannot be read as YAML: {error}; put what is almost a date or a number in "
            "quotes"
        ) from error
    except RecursionError:
        raise InvalidInput(f"{name}: its brackets are nested too deeply; mend it") from None


def part(path: Path, given: Mapping[Any, Any], name: Any) -> dict[Any, Any]:
    """A mapping inside a mapping of a YAML file; empty where there is none."""
    found = given.get(name) or {}
    if not isinstance(found, dict):
        said = f"{name}={found!r}" if name != "file" else f"holds a {type(found).__name__}"
        raise InvalidInput(f"{path}: {said}: must be `name: value` lines")
    return found
