"""Make docs/api.md from the docstrings of the public names; the tests check that it is current.

python scripts/make_api_page.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name

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
    lines += ["", "## what they return", "", "| name | what it is |", "| --- | --- |"]
    lines += [_line(name) for name in nearer._RETURNED]
    return "\n".join(lines) + "\n"


def _line(name: str) -> str:
    thing = resolve_name(f"nearer.{name}")
    told = callable(thing) or inspect.ismodule(thing)
    first = ((inspect.getdoc(thing) or "") if told else _remark(name)).split("\n\n")[0]
    return f"| `{name}` | {first.replace(chr(10), ' ').replace('|', chr(92) + '|')} |"


def _remark(name: str) -> str:
    """What the source says above a constant, after ``#:``."""
    last = name.rsplit(".", maxsplit=1)[-1]
    for file in sorted(Path(nearer.__file__).parent.rglob("*.py")):
        found = re.search(rf"^#: (.+)\n{last}\b", file.read_text("utf-8"), re.MULTILINE)
        if found:
            return found[1][0].upper() + found[1][1:] + "."
    raise ValueError(f"{name}: has no remark; write one after #: above it")


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(TARGET)
