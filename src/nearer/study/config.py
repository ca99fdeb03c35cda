"""The settings of a study, read from YAML and stored in its header, and its texts.

Every text that arrives, in a request, a settings file or a table, is one of the types below: valid
Unicode, without control characters, of bounded length. Nothing behind them needs to check again.
"""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, NotRequired, Self
from urllib.parse import SplitResult, urlsplit

import pydantic
import yaml
from markdown_it import MarkdownIt
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from nearer.checks import UNREADABLE
from nearer.errors import InvalidInput
from nearer.files import decoded, one_message, read_bytes
from nearer.trials import Task

_RULES = {
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be a text; put it in quotes (YAML reads yes, no and dates as others)",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "literal_error": "must be one of {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "model_type": "must be `name: value` lines",
    "missing": "is missing; it must be given",
    "extra_forbidden": "is not known here",
}


def _readable(text: str) -> str:
    if match := UNREADABLE.search(text):
        raise ValueError(f"holds the control character {match[0]!r}; take it out")
    return text


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError("must be one line")
    return _readable(text)


#: a text of several lines
Text = Annotated[str, Field(max_length=20_000), AfterValidator(_readable)]
#: a name, an id, a label
Line = Annotated[str, Field(max_length=2_000), AfterValidator(_one_line)]
#: an id, a version, a word that a browser keeps
Short = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]


class Checked(BaseModel):
    """Values from outside; every name and type must be known."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        for name in given if isinstance(given, Mapping) else ():
            if name not in cls.model_fields:
                raise ValueError(unknown(name, cls.model_fields))
        return given


def unknown(name: object, known: Iterable[str]) -> str:
    """The message about an unknown name, with the one that may be meant."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "known are: " + ", ".join(known)
    return f"{str(name)[:60]!r} is not known; {hint}"


def shown(value: Any) -> str:
    """A value in a message, if it is short: a few lines of YAML can be a list without end."""
    try:
        text = repr(value) if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # a number of thousands of digits
        return ""
    return f"={text}" if len(text) <= 200 else ""


def parse(kind: Any, given: Any, what: str) -> Any:
    """Check values; the error shows name, value, rule and remedy."""
    try:
        adapter = kind if isinstance(kind, pydantic.TypeAdapter) else pydantic.TypeAdapter(kind)
        return adapter.validate_python(given)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
    names = [str(k + 1) if isinstance(k, int) else str(k) for k in first["loc"]]
    rule = first["msg"].removeprefix("Value error, ")
    if first["type"] in _RULES:
        rule = _RULES[first["type"]].format(**first.get("ctx", {}))
    if not names:
        raise InvalidInput(f"{what}{rule}")
    value = "" if first["type"] == "missing" else shown(first["input"])
    raise InvalidInput(f"{what}{'.'.join(names)}{value}: {rule}")


@cache
def _markdown() -> MarkdownIt:
    # `breaks`: line breaks of the study's file are line breaks of the page.
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    made.disable("image")
    kinds = ("http", "https", "mailto")
    made.validateLink = lambda url: address(url).scheme in kinds  # type: ignore[method-assign]
    made.add_render_rule("link_open", _open_beside)
    made.add_render_rule("heading_open", lambda *_: "<h3>")  # below those of the page itself
    made.add_render_rule("heading_close", lambda *_: "</h3>\n")
    return made


@lru_cache(maxsize=64)  # a stranger may ask for the longest text again and again
def to_html(text: str) -> str:
    """Markdown as HTML that is safe to show."""
    return str(_markdown().render(text))


def address(url: str) -> SplitResult:
    """The parts of an address; empty ones if it is none, such as http://[."""
    try:
        return urlsplit(url.strip())
    except ValueError:
        return urlsplit("")


def _open_beside(renderer: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
    tokens[i].attrs.update(target="_blank", rel="noopener noreferrer")
    return str(renderer.renderToken(tokens, i, options, env))


# --- the words of the pages -----------------------------------------------------------------------

_WORDS = files("nearer.study") / "pages" / "words"  # a file for each language
#: texts of a study's own, which otherwise come from its language
_TEXTS = ("title", "question", "instructions", "consent", "debrief")
#: task: the names of its question and of its instructions
_ASKED = {
    "two": ("question", "instructions"),
    "choose": ("ask_several", "instructions_choose"),
    "rank": ("ask_rank", "instructions_rank"),
    "odd": ("ask_odd", "instructions_odd"),
}


def shipped() -> list[str]:
    """The languages that come with the package."""
    return sorted(f.name.removesuffix(".yaml") for f in _WORDS.iterdir())


@cache
def _read(language: str) -> dict[str, str]:
    text = (_WORDS / f"{language}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, str] = yaml.safe_load(text)
    return loaded


def read_words(language: str, own: Mapping[str, Any]) -> dict[str, str]:
    """The words of a language, replaced by a study's own; `language` is one of them."""
    english = _read("en")
    if not re.fullmatch("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*", language):
        rule = "must be a language tag like en, de or pt-BR; screen readers choose a voice by it"
        raise InvalidInput(f"language={language!r}: {rule}")
    for key, text in own.items():
        if key not in english:
            raise InvalidInput(f"words: {unknown(key, english)}")
        if _filled(key, text) != _filled(key, english[key]):
            wanted = ", ".join(f"{{{name}}}" for name in sorted(_filled(key, english[key])))
            raise InvalidInput(f"words: {key}={text!r}: must hold {wanted or 'nothing in braces'}")
    missing = [key for key in english if key not in own]
    if language not in shipped() and missing:
        why = f"is not shipped ({', '.join(shipped())} are)"
        remedy = f"bring all its words: {len(missing)} are missing, among them {missing[0]}"
        raise InvalidInput(f"language={language!r}: {why}; {remedy}")
    words = {**(_read(language) if language in shipped() else {}), **own, "language": language}
    if words["direction"] not in ("ltr", "rtl"):
        raise InvalidInput(f"words: direction={words['direction']!r}: must be ltr or rtl")
    return words


def default_texts(language: str, own: Mapping[str, Any], task: str, choose: int) -> dict[str, str]:
    """The texts of a study with this task that has none of its own."""
    words = read_words(language, own)
    question, instructions = _ASKED[task]
    if task in ("choose", "rank") and choose == 1:
        question = "ask_closest"
    asked = {"question": words[question], "instructions": words[instructions]}
    filled = {name: text.replace("{k}", str(choose)) for name, text in asked.items()}
    return {name: words[name] for name in _TEXTS} | filled


def _filled(key: str, text: str) -> set[str]:
    """The names in braces; none in texts of a study, which are Markdown without names."""
    if key in _TEXTS:
        return set()
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise InvalidInput(f"words: {key}={text!r}: {error}; braces come in pairs") from error


# --- the settings ---------------------------------------------------------------------------------

#: settings that cannot change after a study has begun
_FIXED = ("task", "things", "choose", "method", "scope", "votes", "n_components", "seed")

Count = Annotated[int, pydantic.Strict(), Field(ge=0, le=1_000_000_000)]
AtLeastOne = Annotated[int, pydantic.Strict(), Field(ge=1, le=1_000_000_000)]
Share = Annotated[float, pydantic.Strict(), Field(ge=0, le=0.5)]
Probability = Annotated[float, pydantic.Strict(), Field(ge=0, le=1)]
Switch = Annotated[bool, pydantic.Strict()]
Number = Annotated[float, pydantic.Strict(), Field(ge=-1e15, le=1e15)]
#: people who answer a question; for 2+1 a third if the first two disagree
Votes = Annotated[
    Literal["1", "2+1", "3", "5"],
    BeforeValidator(lambda votes: str(votes or 1)),  # YAML reads 3 as a number
]


class _Field(Checked):
    """One question about the person."""

    name: Annotated[Line, Field(max_length=60)]
    label: Annotated[Text, Field(min_length=1)]
    required: Switch = True

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if not self.name.isidentifier():
            raise ValueError(f"name={self.name!r}: must be one word of letters, digits and _")
        return self


class Choice(_Field):
    """One of several options."""

    kind: Literal["choice"]
    options: Annotated[tuple[Line, ...], Field(min_length=2, max_length=200)]
    screen_out: tuple[Line, ...] = ()

    @pydantic.model_validator(mode="after")
    def _check_options(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise ValueError(f"options={self.options}: must be different texts")
        if not set(self.screen_out) <= set(self.options):
            raise ValueError(f"screen_out={self.screen_out}: must be among the options")
        return self


class Outside(Checked):
    """Numbers below or above which a person is screened out."""

    below: Number = -1e15
    above: Number = 1e15

    def __contains__(self, value: float) -> bool:
        return not self.below <= value <= self.above


class Ranged(_Field):
    """A number that is typed, between two limits."""

    kind: Literal["number"]
    least: Number | None = None
    most: Number | None = None
    screen_out: Outside = Outside()

    @pydantic.model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.least is not None and self.most is not None and self.least >= self.most:
            raise ValueError(f"most={self.most}: must be above least={self.least}")
        return self


class Scale(Ranged):
    """Points between two ends."""

    kind: Literal["scale"]  # type: ignore[assignment]
    least: Annotated[int, pydantic.Strict()] = 1
    most: Annotated[int, pydantic.Strict()] = 7
    ends: tuple[Line, ...] = ()

    @pydantic.model_validator(mode="after")
    def _check_points(self) -> Self:
        if self.most - self.least > 10:
            raise ValueError(f"most={self.most}: must make at most 11 points")
        if len(self.ends) not in (0, 2):
            raise ValueError(f"ends={self.ends}: must be two texts, for the two ends")
        return self


class Written(_Field):
    """A text: one line, or several."""

    kind: Literal["text", "long"]
    most: Annotated[int, pydantic.Strict(), Field(ge=1, le=20_000)] = 5_000
    screen_out: tuple[()] = ()


def _type_of_reply(field: Choice | Ranged | Written) -> Any:
    if isinstance(field, Choice):
        return Literal.__getitem__(field.options)
    if isinstance(field, Written):
        return Annotated[str, Field(max_length=field.most)]
    number = int if isinstance(field, Scale) else float
    return Annotated[number, pydantic.Strict(), Field(ge=field.least, le=field.most)]


class QuestionnairePage(Checked):
    """Fields that are shown together, before or after the comparisons."""

    title: Annotated[Line, Field(min_length=1)]
    text: Text = ""
    ask: tuple[Annotated[Choice | Ranged | Scale | Written, Field(discriminator="kind")], ...] = ()

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if not self.text and not self.ask:
            raise ValueError("ask=(): must ask something, or `text` say something")
        return self

    def shown(self, number: str) -> dict[str, Any]:
        """The fields for the participant's page, without the answers that screen out."""
        fields = [field.model_dump(exclude={"screen_out"}) for field in self.ask]
        return {"id": number, "title": self.title, "html": to_html(self.text), "fields": fields}

    def check(self, replies: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The replies to store, and whether the person is screened out."""
        fields = {field.name: field for field in self.ask}
        filled = {k: v for k, v in replies.items() if v is not None and str(v).strip()}
        types = {k: _type_of_reply(field) for k, field in fields.items()}
        needed = {k: t if fields[k].required else NotRequired[t] for k, t in types.items()}
        page = pydantic.with_config(extra="forbid")(TypedDict("page", needed))  # type: ignore[operator]
        parse(page, filled, "reply ")
        return filled, any(value in fields[name].screen_out for name, value in filled.items())


class Config(Checked):
    """The settings of a study; docs/study-settings.md says what each of them does."""

    title: Line = ""
    question: Line = ""
    instructions: Text = ""
    consent: Text = ""
    consent_version: Short = "1"
    contact: Line = ""
    debrief: Text = ""
    language: Line = "en"
    words: dict[Line, Annotated[Text, Field(min_length=1)]] = Field(default_factory=dict)
    surround: Line = "#ffffff"
    show_names: Switch = False
    questions: AtLeastOne = 50
    practice: Annotated[Count, Field(le=100)] = 2
    quota: Count = 0
    quality: Probability = 0.99
    task: Literal["two", "choose", "rank", "odd"] = "two"
    things: Count = 2
    choose: AtLeastOne = 1
    method: Literal["informative", "random"] = "informative"
    scope: Literal["pooled", "person"] = "pooled"
    votes: Votes = "1"
    n_components: AtLeastOne | None = None
    batch: AtLeastOne = 20
    lease_seconds: AtLeastOne = 120
    catch_share: Share = 0.04
    repeat_share: Share = 0.06
    holdout_share: Share = 0.1
    own_share: Probability = 0.2
    when_all_asked: Literal["more", "finish"] = "more"
    returning: Literal["browser", "link"] = "browser"
    lab: Switch = False
    fastest_ms: Count = 0
    refuse_false_times: Switch = False
    joins_per_minute: Count = 60
    frame_ancestors: Line = ""
    can_skip: Switch = True
    can_be_undecided: Switch = True
    must_play: Switch = True
    completion_code: Line = ""
    completion_redirect: Line = ""
    before: tuple[QuestionnairePage, ...] = ()
    after: tuple[QuestionnairePage, ...] = ()
    screen_out: Text = ""
    screen_out_code: Line = ""
    screen_out_redirect: Line = ""
    seed: Count = 0

    @pydantic.model_validator(mode="after")
    def _check_settings(self) -> Self:
        texts = default_texts(self.language, self.words, self.task, self.choose)
        for name, text in texts.items():
            if not getattr(self, name):
                object.__setattr__(self, name, text)  # written out, as every default is
        for good, name, rule in self._rules():
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r}: {rule}")
        self._check_pages()
        return self

    def _rules(self) -> Iterator[tuple[object, str, str]]:
        """Setting, whether its rule holds, and the rule in words."""
        colour = re.fullmatch("#[0-9a-f]{6}", self.surround)
        yield colour, "surround", "must be a colour like #808080, in small letters"
        shares = self.catch_share + self.repeat_share + self.holdout_share
        yield shares <= 0.8, "holdout_share", "the shares must leave 0.2 for real questions"
        alone = self.scope == "person"
        yield not alone or self.votes == "1", "votes", "must be 1 if scope is person"
        odd = set(self.frame_ancestors) & set(";,'\"")
        yield not odd, "frame_ancestors", "must be addresses, with spaces between them"
        for name in ("completion_redirect", "screen_out_redirect"):
            url = address(getattr(self, name))
            known = url.scheme in ("http", "https") and url.netloc
            yield known or not getattr(self, name), name, "must be an http(s) address"
        two = self.task == "two"
        least, most = 3 if self.task == "odd" else 2, 2 if two else 20
        yield least <= self.things <= most, "things", f"must be {least} to {most}"
        yield self.choose < self.things, "choose", "must be fewer than things"
        single = self.choose == 1 or self.task in ("choose", "rank")
        yield single, "choose", f"must be 1 if task is {self.task}"
        yield two or self.method == "random", "method", f"must be random if task is {self.task}"
        together = not alone and self.votes == "1"
        yield two or together, "task", "needs scope pooled and one vote a question"

    def _check_pages(self) -> None:
        for when, pages in (("before", self.before), ("after", self.after)):
            fields = [field for page in pages for field in page.ask]
            names = [field.name for field in fields]
            for field in fields:
                if names.count(field.name) > 1:
                    raise ValueError(f"{when}: name={field.name!r}: is taken; names differ")
                if when == "after" and field.screen_out not in ((), Outside()):
                    rule = "comes too late; ask before"
                    raise ValueError(f"after: screen_out of {field.name!r}: {rule}")

    @property
    def pages(self) -> dict[str, QuestionnairePage]:
        """The pages of the questionnaires by their ids, ``before-1`` and so on."""
        pages = (("before", self.before), ("after", self.after))
        return {f"{when}-{k}": page for when, some in pages for k, page in enumerate(some, 1)}

    @property
    def as_task(self) -> Task:
        """The task of a screen, as the library's `Task`."""
        kind = "odd-one-out" if self.task == "odd" else "near"
        return Task(kind, self.choose, self.things, self.task == "rank")

    def check_items(self, n_items: int) -> None:
        """Refuse settings that need more items."""
        shown = self.things + (self.task != "odd")
        if n_items < shown:
            why = f"a screen shows {shown} items; there are {n_items}, bring more or show fewer"
            raise InvalidInput(f"setting things={self.things}: {why}")
        if n_items <= (self.n_components or 0):
            rule = f"must be below the number of items, {n_items}"
            raise InvalidInput(f"setting n_components={self.n_components}: {rule}")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Config:
        """A configuration of settings, which may have any types."""
        config: Config = parse(cls, settings, "setting ")
        return config

    def changed(self, settings: Mapping[str, Any]) -> Config:
        """These settings with some of them replaced."""
        return Config.of({**self.model_dump(), **settings})


#: settings that can be changed while people answer
CHANGEABLE = tuple(name for name in Config.model_fields if name not in _FIXED)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; anything else is refused."""
    return part(path, {"file": parse_yaml(str(path), decoded(read_bytes(path), path))}, "file")


def parse_yaml(name: str, text: str) -> Any:
    """What a text says; a repeated name is refused, since YAML would take the last."""
    remedy = "put what is almost a date or a number in quotes, and nest brackets less deeply"
    with one_message(name, "YAML", remedy):
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    lines: dict[Any, int] = {}
    for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
        line = key.start_mark.line + 1
        if isinstance(key.value, str) and (first := lines.setdefault(key.value, line)) != line:
            twice = f"{key.value!r} is there twice, first on line {first}; take one out"
            raise InvalidInput(f"{name}, line {line}: {twice}")
    return value


def part(path: Path, given: Mapping[Any, Any], name: Any) -> dict[Any, Any]:
    """A mapping inside a mapping of a YAML file; empty if there is none."""
    inside = given.get(name) or {}
    if not isinstance(inside, dict):
        said = f"holds a {type(inside).__name__}" if name == "file" else f"{name}{shown(inside)}"
        raise InvalidInput(f"{path}: {said}: must be `name: value` lines")
    return inside
