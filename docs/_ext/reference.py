"""A page for every public name, and the names in the table of api.md as links to them.

api.md is a plain table, made by scripts/make_api_page.py, that reads well without this site.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

FOLDER = "reference"  # beside api.md; made anew by every build

# What these give a class is documented elsewhere, as are the methods that scikit-learn makes.
_BASES = "ClassNamePrefixFeaturesOutMixin, Exception, Warning, dict, tuple"
_SKLEARN = re.compile(r"set_\w+_request|set_output|get_metadata_routing")


def public_names() -> list[str]:
    """The names in the table of api.md that are not modules."""
    page = (Path(__file__).parents[1] / "api.md").read_text("utf-8")
    names = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    return [name for name in names if not inspect.ismodule(resolve_name(f"nearer.{name}"))]


def _page(name: str) -> str:
    title = f"nearer.{name}"
    thing = resolve_name(title)
    lines = [title, "=" * len(title), ""]
    if inspect.isclass(thing):
        lines += [f".. autoclass:: {title}", "   :members:", f"   :inherited-members: {_BASES}"]
    elif callable(thing):
        lines += [f".. autofunction:: {title}"]
    else:
        lines += [f".. autodata:: {title}", "   :no-value:"]
    return "\n".join(lines) + "\n"


def _write_pages(app: Any) -> None:
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {f"nearer.{name}.rst": _page(name) for name in public_names()}
    for old in folder.glob("*.rst"):
        if old.name not in pages:
            old.unlink()
    for file, text in pages.items():
        path = folder / file
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _link_names(app: Any, page: str, source: list[str]) -> None:
    if page == "api":
        source[0] = re.sub(
            r"^\| `([\w.]+)` \|", r"| {py:obj}`\1 <nearer.\1>` |", source[0], flags=re.MULTILINE
        )
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{FOLDER}/*\n```\n"


def _skip(app: Any, kind: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    return True if _SKLEARN.fullmatch(name) else None


def _mend_links(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Links from sources: Sphinx takes all names of a module for names of the same package."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = re.sub(
            rf"({FOLDER}/(nearer[\w.]*?\.(\w+))\.html#)nearer[\w.]*?\.\3\b",
            r"\1\2",
            context["body"],
        )


def _name_aliases(*event: Any) -> tuple[str | None, str | None]:
    """Types by the names in `ALIASES`, as they are written, in the two parts of a signature."""
    plain = r"TypeAliasForwardRef\('(\w+)'\)"
    one, other = (None if part is None else re.sub(plain, r"\1", part) for part in event[-2:])
    return one, other


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _link_names)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _name_aliases)
    app.connect("html-page-context", _mend_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
