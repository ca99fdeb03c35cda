"""Make docs/api.md from the docstrings of the public names; the tests check that it is current.

python scripts/make_api_page.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import nearer

TARGET = Path(__file__).parents[1] / "docs" / "api.md"


def page() -> str:
    """The page: sections as in ``nearer/__init__.py``, a line a name."""
    source = inspect.getsource(nearer)
    lines = [
        "# API",
        "",
        "Every public name by its first line; `help(nearer.NAME)` says the rest, with an example.",
        "This page is made by `scripts/make_api_page.py`.",
    ]
    for row in re.findall(r"^    (# .*|\"\w+\"): ?.*|^    (# .*)$", source, re.MULTILINE):
        text = row[0] or row[1]
        if text.startswith("#"):
            lines += ["", f"## {text[2:]}", "", "| name | what it is |", "| --- | --- |"]
        else:
            lines.append(_line(text.strip('"')))
    lines += ["", "## modules", "", "| name | what it holds |", "| --- | --- |"]
    for name in nearer._MODULES:
        module = getattr(nearer, name)
        lines.append(_line(name))
        lines += [_line(f"{name}.{inner}") for inner in getattr(module, "__all__", [])]
    return "\n".join(lines) + "\n"


def _line(name: str) -> str:
    thing = nearer
    for part in name.split("."):
        thing = getattr(thing, part)
    documentation = inspect.getdoc(thing) if callable(thing) or inspect.ismodule(thing) else ""
    first = (documentation or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return f"| `{name}` | {first} |"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(TARGET)
