"""Texts of a study as HTML: Markdown, of which nothing can reach beyond the page.

HTML in a text is shown as text; pictures are left out, since a page fetches nothing from
elsewhere; links open beside the page, say nothing about where they were clicked, and go to web
and mail addresses only. Headings are all of one rank, below those that the page itself has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["to_html"]


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
