"""A page of text, tables and pictures, as HTML that needs no other file or as Markdown.

Everything in it is plain text until it is written: names with ``<`` or ``|`` in them stay names.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

__all__ = ["Block", "Code", "Document", "Grid", "Paragraph", "Plate", "Section"]


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str

    def html(self) -> str:
        """As HTML."""
        return f"<p>{escape(self.text)}</p>"

    def markdown(self) -> str:
        """As Markdown."""
        return _plain(self.text)


@dataclass(frozen=True)
class Code:
    """Something to type."""

    text: str

    def html(self) -> str:
        """As HTML."""
        return f'<pre tabindex="0"><code>{escape(self.text)}</code></pre>'

    def markdown(self) -> str:
        """As Markdown."""
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", self.text) or [""]))
        return f"{fence}\n{self.text}\n{fence}"


@dataclass(frozen=True)
class Grid:
    """A table: heads, rows of text, and what it shows. Its first column names the rows."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def html(self) -> str:
        """As HTML."""
        heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in self.heads)
        rows = "\n".join(
            f'<tr><th scope="row">{escape(first)}</th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in others)
            + "</tr>"
            for first, *others in self.rows
        )
        return (
            f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(self.caption)}">'
            f"<table><caption>{escape(self.caption)}</caption>"
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def markdown(self) -> str:
        """As Markdown."""
        rules = ["---", *["---:"] * (len(self.heads) - 1)]
        lines = [self.heads, rules, *self.rows]
        shown = [lines[0], lines[1]] + [[_plain(cell) for cell in row] for row in lines[2:]]
        table = "\n".join(f"| {' | '.join(row)} |" for row in shown)
        return f"{_plain(self.caption)}\n\n{table}"


@dataclass(frozen=True)
class Plate:
    """A picture: its file, what can be seen on it, and what it shows."""

    name: str
    content: bytes
    alt: str
    caption: str

    def html(self) -> str:
        """As HTML, the picture inside."""
        kind = "svg+xml" if self.name.endswith(".svg") else "png"
        held = base64.b64encode(self.content).decode("ascii")
        return (
            f'<figure><img alt="{escape(self.alt)}" src="data:image/{kind};base64,{held}">'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )

    def markdown(self) -> str:
        """As Markdown, the picture in a file beside it."""
        return f"![{_plain(self.alt)}]({quote(self.name)})\n\n{_plain(self.caption)}"


Block = Paragraph | Code | Grid | Plate


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    r"""A title and sections.

    Examples
    --------
    >>> page = Document("On <maps>", [Section("Data", [Paragraph("12 | 3 answers")])])
    >>> print(page.markdown())
    # On &lt;maps&gt;
    <BLANKLINE>
    ## Data
    <BLANKLINE>
    12 \| 3 answers
    <BLANKLINE>
    """

    title: str
    sections: Sequence[Section]

    @property
    def plates(self) -> list[Plate]:
        """All pictures."""
        return [b for s in self.sections for b in s.blocks if isinstance(b, Plate)]

    def html(self) -> str:
        """One HTML file with everything inside."""
        parts = [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head><body><main>",
            f"<h1>{escape(self.title)}</h1>",
        ]
        for section in self.sections:
            parts.append(f"<section><h2>{escape(section.title)}</h2>")
            parts += [block.html() for block in section.blocks]
            parts.append("</section>")
        return "\n".join([*parts, "</main></body></html>"]) + "\n"

    def markdown(self) -> str:
        """The same as Markdown; pictures are files beside it."""
        parts = [f"# {_plain(self.title)}"]
        for section in self.sections:
            parts.append(f"## {_plain(section.title)}")
            parts += [block.markdown() for block in section.blocks]
        return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    line = escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_\[\]|#$])", r"\\\1", line)


_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #2b2f36; --soft: #5b6270; --line: #d3d7dd;
  --card: #f6f7f9; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181c; --ink: #e8eaee; --soft: #a6adb9;
  --line: #3a3f48; --card: #21242a; } }
body { font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--ground);
  margin: 0; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.4rem; }
.scroll { overflow-x: auto; max-height: 32rem; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem;
  overflow-wrap: normal; min-width: min(100%, 32rem); }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; overflow-wrap: anywhere; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); }
th:first-child { text-align: left; overflow-wrap: anywhere; min-width: 7rem; }
tbody th { font-weight: 400; }
pre { background: var(--card); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto;
  white-space: pre-wrap; }
figure { margin: 1rem 0; } img { max-width: 100%; background: #fff; border-radius: 6px; }
figcaption { color: var(--soft); font-size: .92rem; }
@media print { .scroll { max-height: none; overflow: visible; }
  figure, table { break-inside: avoid-page; } }
"""
