"""Text: what may arrive, how Markdown is shown, and the words of the participant's pages.

Every text that arrives, in a request, a settings file or a table, is one of the types below: valid
Unicode, without control characters, of bounded length. Nothing behind them needs to check again.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

import yaml
from markdown_it import MarkdownIt
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.functional_validators import model_validator

from nearer.checks import UNREADABLE
from nearer.errors import InvalidInput

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
    if found := UNREADABLE.search(text):
        raise ValueError(f"holds the control character {found[0]!r}; take it out")
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
    """Values from outside, of which every name and type is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        for name in given if isinstance(given, Mapping) else ():
            if name not in cls.model_fields:
                raise ValueError(unknown(name, cls.model_fields))
        return given


def unknown(name: object, known: Iterable[str]) -> str:
    """What is wrong with a name that is not known, and which may be meant."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "known are: " + ", ".join(known)
    return f"{str(name)[:60]!r} is not known; {hint}"


def parse(kind: Any, given: Any, what: str) -> Any:
    """Check values; what is wrong is said with its name, the value, the rule and a remedy."""
    try:
        adapter = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
        return adapter.validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
    names = [str(k + 1) if isinstance(k, int) else str(k) for k in first["loc"]]
    rule = first["msg"].removeprefix("Value error, ")
    if first["type"] in _RULES:
        rule = _RULES[first["type"]].format(**first.get("ctx", {}))
    if not names:
        raise InvalidInput(f"{what}{rule}")
    shown = repr(first["input"])
    value = "" if first["type"] == "missing" or len(shown) > 200 else f"={shown}"
    raise InvalidInput(f"{what}{'.'.join(names)}{value}: {rule}")


@cache
def _markdown() -> MarkdownIt:
    # `breaks`: a line that ends in the study's file ends on the page, as in plain text.
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    made.disable("image")
    kinds = ("http", "https", "mailto")
    made.validateLink = lambda url: address(url).scheme in kinds  # type: ignore[method-assign]
    made.add_render_rule("link_open", _open_beside)
    made.add_render_rule("heading_open", lambda *_: "<h3>")  # below those of the page itself
    made.add_render_rule("heading_close", lambda *_: "</h3>\n")
    return made


def to_html(text: str) -> str:
    """Markdown as HTML that is safe to show."""
    return str(_markdown().render(text))


def address(url: str) -> SplitResult:
    """The parts of an address; empty ones where it is none, as of http://[."""
    try:
        return urlsplit(url.strip())
    except ValueError:
        return urlsplit("")


def _open_beside(renderer: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
    tokens[i].attrSet("target", "_blank")
    tokens[i].attrSet("rel", "noopener noreferrer")
    return str(renderer.renderToken(tokens, i, options, env))


_WORDS = files("nearer.study") / "pages" / "words"  # a file for each language
#: what a study says in its own words, and a language for a study that does not
_TEXTS = ("title", "question", "instructions", "consent", "debrief")
#: task: the words that ask it, and those that explain it
_ASKED = {
    "two": ("question", "instructions"),
    "choose": ("ask_several", "instructions_choose"),
    "rank": ("ask_rank", "instructions_rank"),
    "odd": ("ask_odd", "instructions_odd"),
}


def shipped() -> list[str]:
    """The languages that are there for every study."""
    return sorted(f.name.removesuffix(".yaml") for f in _WORDS.iterdir())


@cache
def _read(language: str) -> dict[str, str]:
    text = (_WORDS / f"{language}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, str] = yaml.safe_load(text)
    return loaded


def read_words(language: str, own: Mapping[str, Any]) -> dict[str, str]:
    """The words of a language with a study's own in their place; `language` is among them."""
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
    """What a study with this task says where it has no text of its own."""
    words = read_words(language, own)
    question, instructions = _ASKED[task]
    if task in ("choose", "rank") and choose == 1:
        question = "ask_closest"
    asked = {"question": words[question], "instructions": words[instructions]}
    filled = {name: text.replace("{k}", str(choose)) for name, text in asked.items()}
    return {name: words[name] for name in _TEXTS} | filled


def _filled(key: str, text: str) -> set[str]:
    """The names in braces; the texts of a study are Markdown, and nothing is filled into them."""
    if key in _TEXTS:
        return set()
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise InvalidInput(f"words: {key}={text!r}: {error}; braces come in pairs") from error
