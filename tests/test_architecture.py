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

LEAVES = {"errors", "questions", "checks", "distances", "files", "trials"}
MAY_IMPORT = {
    "errors": {"questions"},  # for types only
    "questions": {"errors"},
    "checks": {"errors", "questions"},
    "trials": {"errors", "questions", "checks"},
    "embedding": {"running", "algorithms", "asking", "plotting"} | LEAVES,
    "distances": {"errors"},
    "files": {"errors"},
    "running": {"asking"} | LEAVES,
    "_kernels": set(),
    "asking": LEAVES,
    "geometry": {"_kernels"} | LEAVES,
    "fitting": {"_kernels", "asking", "metrics"} | LEAVES,
    "algorithms": {"embedding", "_kernels", "asking", "geometry", "fitting", "metrics"} | LEAVES,
    "metrics": {"_kernels"} | LEAVES,
    "datasets": {"asking", "triplets"} | LEAVES,
    "triplets": {"asking"} | LEAVES,
    "_embed": {"running", "algorithms", "asking", "embedding"} | LEAVES,
    "_dimension": {"fitting", "plotting"} | LEAVES,  # it draws through plotting, when asked
    "_given": {"embedding", "fitting", "metrics", "triplets"} | LEAVES,
    "_fit": {"_dimension", "_given", "embedding", "fitting", "metrics"} | LEAVES,
    "plotting": {"_dimension", "embedding", "algorithms", "metrics", "fitting"} | LEAVES,
    "study": {"running", "embedding", "algorithms", "asking", "fitting"} | LEAVES,
    "reproduce": {
        "running",
        "embedding",
        "algorithms",
        "asking",
        "geometry",
        "metrics",
        "datasets",
        "plotting",
    }
    | LEAVES,
    "estimators": {
        "running",
        "_fit",
        "embedding",
        "algorithms",
        "asking",
        "fitting",
        "metrics",
        "_kernels",
    }
    | LEAVES,
}
QUIET = ("asking", "geometry", "fitting", "algorithms")


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "nearer":
                names = [f"nearer.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("nearer."):
                yield name.split(".")[1]


MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    here = room(path)
    if here not in MAY_IMPORT:
        return
    assert set(imported_rooms(path)) <= MAY_IMPORT[here] | {here}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_numba_lives_in_the_kernels_alone(path):
    if room(path) != "_kernels":
        assert not re.search(r"^\s*(import|from) numba", path.read_text(), re.MULTILINE)


FORBIDDEN = re.compile(
    r"\bprint\(|(?<!def )\bopen\(|\bimport (time|random|datetime|logging)\b"
    r"|np\.random\.(seed|rand|normal)\("
)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if room(p) in QUIET], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_algorithms_touch_no_file_no_clock_no_global_randomness(path):
    found = FORBIDDEN.search(path.read_text(encoding="utf-8"))
    assert not found, found


@pytest.mark.parametrize("name", nearer.__all__)
def test_every_public_name_is_there_and_documented_with_an_example(name):
    thing = getattr(nearer, name)
    documentation = inspect.getdoc(thing)
    assert documentation
    if inspect.ismodule(thing) or name == "UNSURE":
        return
    listed = {"Record", "Basis", "recorded", "remembered", "limited", "Embedding", "Placed"}
    assert ">>>" in documentation or name in listed, f"{name} lacks an example"


def test_the_api_page_is_current():
    spec = importlib.util.spec_from_file_location(
        "make_api_page", ROOT / "scripts/make_api_page.py"
    )
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == maker.page(), "run: .venv/bin/python scripts/make_api_page.py"


def test_types_and_names_agree():
    declared = set(re.findall(r"import \w+ as (\w+)", (SOURCE / "__init__.py").read_text()))
    assert declared == set(nearer.__all__)
    assert set(nearer.__all__) <= set(dir(nearer))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
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
