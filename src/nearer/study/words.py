"""The words of the participant's pages: one small file a language, ``pages/words/en.yaml`` first.

English is the measure: another language has exactly its keys, and in every text the same names in
braces, so that no page is half translated and nothing is filled into the wrong place. A study may
change single words of a language that is shipped, or bring all words of one that is not.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nearer.errors import InvalidInput

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["default_texts", "read_words", "shipped", "to_html"]


def to_html(text: str) -> str:
    r"""Markdown as HTML that is safe to show.

    Examples
    --------
    >>> to_html("Look *twice*.\n<script>alert(1)</script>")
    '<p>Look <em>twice</em>.<br />\n&lt;script&gt;alert(1)&lt;/script&gt;</p>\n'
    >>> to_html("[x](javascript:alert(1))")
    '<p>[x](javascript:alert(1))</p>\n'
    """
    return str(_markdown().render(text))


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only where a study is served

    # `breaks`: a line that ends in the study's file ends on the page, as in plain text.
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    made.disable("image")
    made.validateLink = _is_harmless  # type: ignore[method-assign]
    made.add_render_rule("link_open", _open_beside)
    made.add_render_rule("heading_open", lambda *_: "<h3>")
    made.add_render_rule("heading_close", lambda *_: "</h3>\n")
    return made


def _is_harmless(url: str) -> bool:
    try:
        return urlsplit(url.strip()).scheme.lower() in ("http", "https", "mailto")
    except ValueError:
        return False


def _open_beside(renderer: Any, tokens: Sequence[Token], i: int, options: Any, env: Any) -> str:
    tokens[i].attrSet("target", "_blank")
    tokens[i].attrSet("rel", "noopener noreferrer")
    return str(renderer.renderToken(tokens, i, options, env))


#: what a study says in its own words, and a language for a study that does not
_TEXTS = ("title", "question", "instructions", "consent", "debrief")
#: task: the words that ask it, and those that explain it
_ASKED = {
    "two": ("question", "instructions"),
    "choose": ("ask_several", "instructions_choose"),
    "rank": ("ask_rank", "instructions_rank"),
    "odd": ("ask_odd", "instructions_odd"),
}

_TAG = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")


def shipped() -> list[str]:
    """The languages that are there for every study.

    Examples
    --------
    >>> shipped()
    ['de', 'en']
    """
    folder = files("nearer.study") / "pages" / "words"
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir())


@cache
def _read(language: str) -> dict[str, str]:
    import yaml  # noqa: PLC0415 - slow to load

    path = files("nearer.study") / "pages" / "words" / f"{language}.yaml"
    loaded: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def read_words(language: str, own: Mapping[str, Any]) -> dict[str, str]:
    """The words of a language with a study's own in their place; `language` is among them.

    Examples
    --------
    >>> read_words("de", {"skip": "Weiter so"})["skip"]
    'Weiter so'
    >>> read_words("en", {"skipp": "Pass"})
    Traceback (most recent call last):
    nearer.errors.InvalidInput: words: 'skipp' is not known; did you mean 'skip'?
    """
    english = _read("en")
    if not _TAG.fullmatch(language):
        raise InvalidInput(
            f"language={language!r}: must be a language tag like en, de or pt-BR; screen readers "
            "choose their voice by it"
        )
    for key, text in own.items():
        if key not in english:
            near = difflib.get_close_matches(str(key), english, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see the file en.yaml for all of them"
            raise InvalidInput(f"words: {key!r} is not known; {hint}")
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"words: {key}={text!r}: must be a text; put it in quotes")
        if _names(key, text) != _names(key, english[key]):
            wanted = ", ".join(f"{{{name}}}" for name in sorted(_names(key, english[key])))
            raise InvalidInput(f"words: {key}={text!r}: must hold {wanted or 'nothing in braces'}")
    if language not in shipped():
        missing = [key for key in english if key not in own]
        if missing:
            raise InvalidInput(
                f"language={language!r}: is not shipped ({', '.join(shipped())} are); bring all of "
                f"its words: {len(missing)} are missing, among them {', '.join(missing[:3])}"
            )
        found = dict(own)
    else:
        found = {**_read(language), **own}
    if found["direction"] not in ("ltr", "rtl"):
        raise InvalidInput(f"words: direction={found['direction']!r}: must be ltr or rtl")
    return {**found, "language": language}


def default_texts(words: Mapping[str, str], task: str, choose: int) -> dict[str, str]:
    """What a study with this task says where it has no text of its own.

    Examples
    --------
    >>> default_texts(read_words("en", {}), "choose", 2)["question"]
    'Which 2 are most like this one?'
    """
    question, instructions = _ASKED.get(task, _ASKED["two"])
    if task in ("choose", "rank") and choose == 1:
        question = "ask_closest"
    asked = words[question].replace("{k}", str(choose))
    explained = words[instructions].replace("{k}", str(choose))
    own = {name: words[name] for name in _TEXTS}
    return {**own, "question": asked, "instructions": explained}


def _names(key: str, text: str) -> set[str]:
    """What is filled into a text; the texts of a study are Markdown and filled with nothing."""
    if key in _TEXTS:
        return set()
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise InvalidInput(f"words: {key}={text!r}: {error}; braces come in pairs") from error
