"""Tables and pictures as text: Markdown, CSV, and one HTML page that needs no other file."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass

from nearer.files import table_text
from nearer.plotting import as_png
from nearer.reproduce.figures import Drawing
from nearer.reproduce.notes import Note
from nearer.reproduce.tables import Mark, Table, Value

__all__ = ["Page", "as_csv", "as_html", "as_markdown", "show"]

_ARROW: dict[Mark, str] = {"better": " ▲", "worse": " ▼"}


@dataclass
class Page:
    """Everything that a page shows.

    Attributes
    ----------
    title
        Of the page.
    facts
        What was run, with what, on what: name → value.
    tables, drawings, notes
        What it is about.
    """

    title: str
    facts: dict[str, str]
    tables: Sequence[Table]
    drawings: Sequence[Drawing]
    notes: Sequence[Note]


def show(value: Value, digits: int) -> str:
    """A value for people: so many digits after the point, none of a number of three digits.

    Examples
    --------
    >>> show(0.7149, 2), show(549.99, 3), show(96020, 0), show(None, 2), show(-0.004, 2)
    ('0.71', '550', '96,020', '', '0.00')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def as_csv(table: Table) -> str:
    """The table with all its digits; figures of the paper have a head that says so."""
    heads: list[str] = []
    for column in table.columns:
        # "paper" and "±" belong to the column before them
        owner = next((head for head in reversed(heads) if not head.endswith((" paper", " ±"))), "")
        heads.append(f"{owner} {column.head}" if column.head in ("paper", "±") else column.head)
    return table_text(heads, table.rows)


def as_markdown(page: Page) -> str:
    """The page in Markdown; pictures are named, not held."""
    lines = [f"# {page.title}", ""]
    lines += [f"- {name}: {value}" for name, value in page.facts.items()]
    for table in page.tables:
        lines += ["", f"## {table.title}", "", *_markdown_rows(table), "", table.caption]
    for drawing in page.drawings:
        lines += ["", f"## {drawing.title}", "", f"![{drawing.title}]({drawing.name}.png)"]
        lines += ["", drawing.caption]
    if page.notes:
        lines += ["", "## Where this differs from the paper, and why"]
        for note in page.notes:
            lines += ["", f"**{note.title}.** {note.text}"]
    return "\n".join(lines) + "\n"


def _markdown_rows(table: Table) -> list[str]:
    heads = " | ".join(column.head for column in table.columns)
    rules = " | ".join("---:" if i > 1 else "---" for i in range(len(table.columns)))
    rows = [
        " | ".join(text.replace("|", "\\|") + (_ARROW[mark] if mark else "") for text, mark in row)
        for row in _entries(table)
    ]
    return [f"| {line} |" for line in (heads, rules, *rows)]


def _entries(table: Table) -> list[list[tuple[str, Mark | None]]]:
    """Text and mark of every value."""
    rows = []
    for r, row in enumerate(table.rows):
        entries = []
        for c, (value, column) in enumerate(zip(row, table.columns, strict=True)):
            entries.append((show(value, column.digits), table.marks.get((r, c))))
        rows.append(entries)
    return rows


_STYLE = """
body { font: 15px/1.55 system-ui, sans-serif; color: #2b2f36; max-width: 1320px;
       margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.2rem; margin-top: 2.6rem; }
dl { display: grid; grid-template-columns: max-content auto; gap: .1rem 1rem; color: #5b6270; }
dt { font-weight: 600; } dd { margin: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .5rem; text-align: right; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
th { border-bottom: 2px solid #c9ced6; } tr.first td { border-top: 1px solid #c9ced6; }
.paper { color: #7a8290; } .better { color: #23744a; } .worse { color: #b23a48; }
.better::after, .worse::after { position: absolute; font-size: 75%; padding: .15em 0 0 .1em; }
.better::after { content: "▲"; } .worse::after { content: "▼"; }
.caption { color: #5b6270; max-width: 62rem; } img { max-width: 100%; }
"""


def as_html(page: Page) -> str:
    """The page as one HTML file with its pictures and its style inside."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(page.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{html.escape(page.title)}</h1><dl>",
    ]
    for name, value in page.facts.items():
        parts.append(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>")
    parts.append("</dl>")
    for table in page.tables:
        parts += [f"<h2>{html.escape(table.title)}</h2>", _html_table(table)]
        parts.append(f'<p class="caption">{html.escape(table.caption)}</p>')
    for drawing in page.drawings:
        picture = base64.b64encode(as_png(drawing.figure)).decode("ascii")
        parts.append(f"<h2>{html.escape(drawing.title)}</h2>")
        parts.append(
            f'<img alt="{html.escape(drawing.title)}" src="data:image/png;base64,{picture}">'
        )
        parts.append(f'<p class="caption">{html.escape(drawing.caption)}</p>')
    if page.notes:
        parts.append("<h2>Where this differs from the paper, and why</h2>")
        for note in page.notes:
            title, text = html.escape(note.title), html.escape(note.text)
            parts.append(f"<p><b>{title}.</b> {text}</p>")
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _html_table(table: Table) -> str:
    heads = [_tag("th", column.head, "paper" if column.paper else None) for column in table.columns]
    lines = [f'<div class="scroll"><table><tr>{"".join(heads)}</tr>']
    before: Value = None
    for row, entries in zip(table.rows, _entries(table), strict=True):
        begins = row[0] not in ("", before)  # a line between data sets
        before = row[0] or before
        cells = [
            _tag("td", text, "paper" if column.paper else mark)
            for column, (text, mark) in zip(table.columns, entries, strict=True)
        ]
        lines.append(f"<tr{_class('first' if begins else None)}>{''.join(cells)}</tr>")
    return "".join([*lines, "</table></div>"])


def _tag(name: str, text: str, kind: str | None) -> str:
    return f"<{name}{_class(kind)}>{html.escape(text)}</{name}>"


def _class(kind: str | None) -> str:
    return f' class="{kind}"' if kind else ""
