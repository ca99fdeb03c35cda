"""Make docs/api.md from the docstrings of the public names; the tests check that it is current.

python scripts/make_api_page.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import nearer

TARGET = Path(__file__).parents[1] / "docs" / "api.md"
# Types that functions return and users do not construct.
RETURNED = (
    "comparison.Aligned",
    "comparison.Comparison",
    "dimension.DimensionEstimate",
    "embedding.HeldOutAccuracy",
    "embedding.Phase",
    "fitting.heldout.Calibration",
    "fitting.posterior.Posterior",
    "fitting.likelihood.Noise",
    "fitting.likelihood.Curve",
    "fitting.people.PeopleFit",
    "trials.Report",
)


def page() -> str:
    """The page: sections as in ``nearer/__init__.pyi``, a line a name."""
    stub = Path(nearer.__file__).with_suffix(".pyi").read_text("utf-8")
    lines = [
        "# API",
        "",
        "Every public name by its first line; `help(nearer.NAME)` says the rest, with an example.",
        "This page is made by `scripts/make_api_page.py`.",
    ]
    for section in re.split(r"\n\n# ", stub)[1:]:
        title, *imports = section.splitlines()
        lines += ["", f"## {title}", "", "| name | what it is |", "| --- | --- |"]
        for name in re.findall(r"import \w+ as (\w+)", "\n".join(imports)):
            lines.append(_line(name))
            if inspect.ismodule(module := getattr(nearer, name)):
                names = getattr(module, "__all__", None) or _own_names(module)
                lines += [_line(f"{name}.{inner}") for inner in names]
    lines += ["", "## Types of results", "", "| name | what it is |", "| --- | --- |"]
    lines += [_line(name) for name in RETURNED]
    return "\n".join(lines) + "\n"


def _own_names(module: Any) -> list[str]:
    """The public functions and classes that a module defines."""
    public = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    own = (n for n, x in public.items() if getattr(x, "__module__", "") == module.__name__)
    return sorted(own)


def _line(name: str) -> str:
    thing = resolve_name(f"nearer.{name}")
    documented = callable(thing) or inspect.ismodule(thing)
    first = ((inspect.getdoc(thing) or "") if documented else _remark(name)).split("\n\n")[0]
    return f"| `{name}` | {first.replace(chr(10), ' ').replace('|', chr(92) + '|')} |"


def _remark(name: str) -> str:
    """The comment above a constant, after ``#:``."""
    last = name.rsplit(".", maxsplit=1)[-1]
    for file in sorted(Path(nearer.__file__).parent.rglob("*.py")):
        match = re.search(rf"^#: (.+)\n{last}\b", file.read_text("utf-8"), re.MULTILINE)
        if match:
            return match[1][0].upper() + match[1][1:] + "."
    raise ValueError(f"{name}: has no remark; write one after #: above it")


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(TARGET)
