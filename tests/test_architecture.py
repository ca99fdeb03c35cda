"""The rooms, who may import whom, and the public surface."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nearer

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nearer"

# Who may import whom; docs/architecture.md says the same.
LEAVES = {
    "errors",
    "wording",
    "questions",
    "checks",
    "distances",
    "files",
    "tasks",
    "trials",
    "jobs",
}
INSIDE = {
    "_kernels",
    "asking",
    "geometry",
    "fitting",
    "metrics",
    "embedding",
    "algorithms",
} | LEAVES
DOORS = INSIDE | {"running", "triplets", "_embed", "_fit"}
MAY_IMPORT = {
    "errors": {"questions"},  # for types only
    "wording": set(),
    "questions": {"errors"},
    "checks": {"errors", "questions"},
    "distances": {"errors"},
    "files": {"errors"},
    "jobs": set(),
    "judges": {"running", "asking", "fitting"} | LEAVES,
    "tasks": {"errors"},
    "trials": {"errors", "questions", "checks", "tasks"},
    "_kernels": set(),
    "metrics": {"_kernels"} | LEAVES,
    "asking": LEAVES,
    "geometry": {"_kernels"} | LEAVES,
    "fitting": {"_kernels", "asking", "metrics"} | LEAVES,
    "trust": {"fitting", "metrics"} | LEAVES,
    "_dimension": {"fitting"} | LEAVES,
    "embedding": {"asking", "fitting", "metrics", "running"} | LEAVES,
    "embedding_file": {"_dimension", "embedding", "fitting", "triplets", "trust"} | LEAVES,
    "comparing": {"embedding", "metrics"} | LEAVES,
    "algorithms": INSIDE - {"algorithms"},
    "running": {"_kernels", "asking", "fitting", "triplets"} | LEAVES,
    "triplets": {"asking"} | LEAVES,
    "_embed": INSIDE | {"running"},
    "_given": INSIDE | {"triplets", "trust"},
    "_many": INSIDE | {"_dimension", "triplets"},
    "_fit": INSIDE | {"_dimension", "_given", "_many", "running", "triplets", "trust"},
    "datasets": {"asking", "triplets"} | LEAVES,
    "plotting": INSIDE | {"_dimension"},
    "estimators": DOORS | {"_given"},
    "cells": LEAVES,
    "study": DOORS,
    "reports": {"_dimension", "embedding", "metrics", "plotting", "triplets", "trust"} | LEAVES,
    "reproduce": DOORS | {"cells", "datasets", "plotting"},
}
TOP = {"cli", "__init__", "__main__"}  # may import everything
# the ways up: a method that needs a room above its own
EXCEPTIONS = {
    ("embedding", "place"): {"algorithms"},
    ("embedding", "plot"): {"plotting"},
    ("embedding", "save"): {"embedding_file"},
    ("embedding", "report"): {"reports"},
    ("_dimension", "plot"): {"plotting"},
}
QUIET = ("asking", "geometry", "fitting", "algorithms")
# what takes the text of a name and may hide an import behind it
HIDING = {"import_module", "__import__"}
# the module behind each public name of the package
HOMES = {
    name: f"nearer.{home}"
    for home, name in re.findall(
        r"^from \.([\w.]+) import \w+ as (\w+)", (SOURCE / "__init__.pyi").read_text("utf-8"), re.M
    )
}
MAY_HIDE = {"__init__.py", "cli/main.py"}  # loaded lazily, from lists of full names

MODULES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def name(path):
    return path.relative_to(SOURCE).as_posix()


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def every(paths):
    return pytest.mark.parametrize("path", paths, ids=name)


def imported_rooms(tree):
    """The rooms of ours that source names: in imports, wherever they are, and in hidden ones."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in HIDING:
            names = [c.value for c in ast.walk(node) if isinstance(c, ast.Constant)]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "nearer":
            names = [HOMES.get(node.attr, f"nearer.{node.attr}")]
        for imported in names:
            first, _, rest = imported.partition(".")
            part = rest.split(".")[0]
            if first == "nearer" and (SOURCE / part).is_dir() | (SOURCE / f"{part}.py").is_file():
                yield part or "__init__"


def without(tree, method):
    """The tree with the body of a method taken out, and that body."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == method]
    body = ast.Module([statement for node in found for statement in node.body], [])
    for node in found:
        node.body = [ast.Pass()]
    return body


@every(MODULES)
def test_imports_go_one_way(path):
    here, tree = room(path), ast.parse(path.read_text(encoding="utf-8"))
    if here in TOP:
        return
    allowed = MAY_IMPORT[here] | {here, "__init__"}
    for (owner, method), more in EXCEPTIONS.items():
        if here == owner:
            assert set(imported_rooms(without(tree, method))) <= allowed | more
    tree.body = [n for n in tree.body if not is_for_types_only(n) or here != "embedding"]
    assert set(imported_rooms(tree)) <= allowed


def is_for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_every_room_has_its_place():
    rooms = {room(path) for path in MODULES}
    assert rooms <= set(MAY_IMPORT) | TOP


def test_nothing_below_knows_who_uses_it():
    """Following the arrows from any room never leads back to it."""
    below = {here: set(may) for here, may in MAY_IMPORT.items()}
    below["errors"] = set()  # names the arrays of questions for types only
    for _ in below:
        below = {h: m.union(*(below[room] for room in m)) for h, m in below.items()}
    assert [here for here, may in below.items() if here in may] == []


def test_the_architecture_page_says_the_same():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for here, may in MAY_IMPORT.items():
        if here in LEAVES or not any(room(path) == here for path in MODULES):
            continue
        line = re.search(rf"^\| `{here}` \|(.*)\|$", page, re.MULTILINE)
        assert line, f"no line for {here}"
        assert set(re.findall(r"`(\w+)`", line[1])) == may - LEAVES


@every([path for path in MODULES if name(path) not in MAY_HIDE])
def test_no_import_is_hidden(path):
    called = {
        ast.unparse(node.func).split(".")[-1]
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Call)
    }
    assert not called & HIDING


@every(MODULES)
def test_numba_lives_in_the_kernels_alone(path):
    if room(path) != "_kernels":
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) numba", text, re.MULTILINE)
        # device.py asks whether there is a GPU, and hands tensors to the kernels; torchrun.py sends
        # them from process to process
        may = ("fitting/device.py", "running/torchrun.py")
        assert name(path) in may or not re.search(
            r"^\s*(import|from) (torch|triton)", text, re.MULTILINE
        )


FORBIDDEN_CALLS = {"print", "open", "input"}
FORBIDDEN_MODULES = {"time", "random", "datetime", "logging", "threading", "socket", "tempfile"}
SEEDED = {"default_rng", "Generator", "SeedSequence", "BitGenerator"}


@every([path for path in MODULES if room(path) in QUIET])
def test_algorithms_touch_no_file_no_clock_no_global_randomness(path):
    for node in ast.walk(TREES[path]):
        what = ast.unparse(node)
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in FORBIDDEN_CALLS, what
            unseeded = called.endswith("default_rng") and not node.args and not node.keywords
            assert not unseeded, what
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in (
            "np.random",
            "numpy.random",
        ):
            assert node.attr in SEEDED, what
        elif isinstance(node, ast.Import):
            assert not {a.name.split(".")[0] for a in node.names} & FORBIDDEN_MODULES, what
        elif isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] not in FORBIDDEN_MODULES, what


@every([path for path in MODULES if room(path) in QUIET])
def test_algorithms_draw_nothing(path):
    assert "matplotlib" not in path.read_text(encoding="utf-8")


def shared_names(names):
    """Those that occur in more than one room."""
    rooms = {}
    for here, called in names:
        rooms.setdefault(called, set()).add(here)
    return {called for called, where in rooms.items() if len(where) > 1}


def test_no_two_modules_have_one_name():
    """A name says which module is meant; a command's module is named after the command."""
    named = [(room(p), p.stem) for p in MODULES if not p.stem.startswith("__")]
    rooms = [(room(p), room(p)) for p in MODULES]
    assert shared_names(pair for pair in named + rooms if pair[0] != "cli") == set()


def test_no_two_classes_have_one_name():
    classes = (
        (room(path), node.name)
        for path, tree in TREES.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert shared_names(classes) == set()


@every(MODULES)
def test_modules_and_functions_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 700
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= node.body[0].end_lineno - node.body[0].lineno + 1
            assert lines <= 60, node.name


@pytest.mark.parametrize("public", nearer.__all__)
def test_every_public_name_is_there_and_documented_with_an_example(public):
    thing = getattr(nearer, public)
    documentation = inspect.getdoc(thing)
    assert documentation
    if inspect.ismodule(thing) or public == "UNSURE":
        return
    assert ">>>" in documentation or public == "Embedding", f"{public} lacks an example"


def test_the_api_page_is_current():
    spec = importlib.util.spec_from_file_location(
        "make_api_page", ROOT / "scripts/make_api_page.py"
    )
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == maker.page(), "run: .venv/bin/python scripts/make_api_page.py"


def test_the_public_surface_is_small():
    assert len(nearer.__all__) <= 45
    assert set(nearer.__all__) <= set(dir(nearer))
    with pytest.raises(AttributeError, match="attribute nonsense"):
        nearer.nonsense


def test_every_command_is_in_the_readme_or_the_docs():
    from nearer.cli.main import _COMMANDS

    text = "".join(
        p.read_text("utf-8") for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    )
    for command in _COMMANDS:
        assert f"nearer {command}" in text


def test_the_readme_examples_run(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
