"""The rules of the tree, one test a rule, and the budget of its size."""

import ast
import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import nearer

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nearer"

# A package imports those to its left or above, never others; docs/architecture.md draws this.
ORDER = """
    errors questions checks distances files parallel trials
    _kernels metrics triplets asking fitting
    dimension embedding comparison
    algorithms _fit _embed scale datasets plotting estimators judges
    study cli __main__ __init__
""".split()  # noqa: SIM905 - shorter and easier to change than a list of strings
# A function may import from a later package when it is called: these do.
WAYS_UP = {
    "asking": {"triplets"},
    "embedding": {"algorithms", "plotting"},
    "comparison": {"_fit", "plotting"},
    "dimension": {"plotting"},
}
# Packages that only their own command, or a function when it is called, may import.
LATE = {"scale", "study", "cli"}
# Strategies and fits open no file, read no clock, print nothing and use no randomness of their own.
PURE = ("asking", "fitting", "algorithms")
IMPURE = {f"asking/{name}.py" for name in ("run", "journal", "progress")}

# What the package may hold. A change that adds beyond it takes away elsewhere, or argues in review.
BUDGET = {"lines": 25_999, "modules": 87, "constants": 99, "one importer": 7}
PAPER_LINES = 1_700

MODULES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def name(path):
    return path.relative_to(SOURCE).as_posix()


def package(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imports(path):
    """Each import of ours: the module that is named, and when it happens: load, call, types."""
    tree, listed = TREES[path], []
    types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    called = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        else:
            continue
        when = "types" if node in types else "call" if node in called else "load"
        ours = (full for full in named if full.split(".")[0] == "nearer")
        listed.extend((full.removeprefix("nearer").removeprefix("."), when) for full in ours)
    return listed


def imported_packages(path, *times):
    packages = {full.split(".")[0] for full, when in imports(path) if when in times}
    return {r for r in packages if (SOURCE / r).is_dir() or (SOURCE / f"{r}.py").is_file()} - {""}


# ---------------------------------------------------------------------------------- the packages


def test_every_package_has_its_place():
    assert {package(path) for path in MODULES} <= set(ORDER)


def test_the_architecture_page_names_every_folder_and_is_short():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    packages = {package(p) for p in MODULES if p.parent != SOURCE}
    assert [r for r in sorted(packages) if f"{r}/" not in page] == []
    assert len(page.splitlines()) <= 150


def test_imports_go_one_way():
    wrong = [
        f"{name(path)} imports {other}"
        for path in MODULES
        for other in imported_packages(path, "load") - {"__init__"}
        if ORDER.index(other) > ORDER.index(package(path))
    ]
    assert not wrong


def test_a_function_imports_from_a_later_package_only_where_that_is_listed():
    wrong = [
        f"{name(path)} imports {other}"
        for path in MODULES
        for other in imported_packages(path, "call") - WAYS_UP.get(package(path), set()) - {"scale"}
        if ORDER.index(other) > ORDER.index(package(path))
    ]
    assert not wrong


def test_scale_study_and_the_commands_are_imported_by_nothing_at_load_time():
    wrong = [
        f"{name(path)} imports {other}"
        for path in MODULES
        for other in imported_packages(path, "load") & LATE
        if package(path) not in (other, "__main__")
        and not (package(path) == "cli" and other in ("scale", "study"))
    ]
    assert not wrong


def test_the_package_does_not_know_the_paper_or_the_benchmarks():
    outside = re.compile(r"^\s*(from|import) (paper|benchmarks|tests)\b", re.MULTILINE)
    assert [name(p) for p in MODULES if outside.search(p.read_text("utf-8"))] == []


def test_no_import_is_hidden_or_relative():
    wrong = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                wrong.append(f"{name(path)}: {ast.unparse(node)}")
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.split(".")[-1] in ("import_module", "__import__"):
                wrong.append(f"{name(path)}: {ast.unparse(node)}")
    assert [line for line in wrong if not line.startswith("cli/main.py")] == []


def test_numba_lives_in_the_kernels_and_pytorch_in_scale():
    wrong = []
    for path in MODULES:
        text, here = path.read_text(encoding="utf-8"), name(path)
        if package(path) != "_kernels" and re.search(
            r"^\s*(import|from) numba", text, re.MULTILINE
        ):
            wrong.append(f"{here}: numba")
        gpu = package(path) in ("scale", "_kernels") or here == "fitting/solver.py"
        if not gpu and re.search(r"^\s*(import|from) (torch|triton)", text, re.MULTILINE):
            wrong.append(f"{here}: torch")
    assert not wrong


FORBIDDEN_CALLS = {"print", "open", "input"}
FORBIDDEN_MODULES = {"time", "random", "datetime", "logging", "threading", "socket", "tempfile"}
FORBIDDEN_MODULES |= {"matplotlib"}
SEEDED = {"default_rng", "Generator", "SeedSequence", "BitGenerator"}


def impure(node):
    """Whether a node opens a file, reads a clock, prints, draws or uses randomness of its own."""
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        unseeded = called.endswith("default_rng") and not node.args and not node.keywords
        return called in FORBIDDEN_CALLS or unseeded
    if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(".random"):
        return ast.unparse(node.value) in ("np.random", "numpy.random") and node.attr not in SEEDED
    if isinstance(node, ast.Import):
        return bool({a.name.split(".")[0] for a in node.names} & FORBIDDEN_MODULES)
    if isinstance(node, ast.ImportFrom):
        return node.module.split(".")[0] in FORBIDDEN_MODULES
    return False


def test_strategies_and_fits_touch_no_file_no_clock_no_global_randomness():
    wrong = [
        f"{name(path)}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in TREES.items()
        if package(path) in PURE and name(path) not in IMPURE
        for node in ast.walk(tree)
        if impure(node)
    ]
    assert not wrong


def test_functions_are_short():
    long = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    lines -= node.body[0].end_lineno - node.body[0].lineno + 1
                if lines > 60:
                    long.append(f"{name(path)}: {node.name} has {lines} lines")
    assert not long


# ---------------------------------------------------------------------------------- the budget


def count_constants(tree):
    """Numbers that a module names at its top."""
    n = 0
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value:
            targets = [node.target]
        else:
            continue
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if all(
            isinstance(v, ast.UnaryOp)
            or (isinstance(v, ast.Constant) and type(v.value) in (int, float))
            for v in values
        ):
            n += sum(len(t.elts) if isinstance(t, ast.Tuple) else 1 for t in targets)
    return n


def importers():
    """For each module, the modules that import it; the package itself does not count."""
    full = {".".join(p.relative_to(SOURCE).with_suffix("").parts): p for p in MODULES}
    full = {module.removesuffix("__init__").removesuffix("."): p for module, p in full.items()}
    users = {module: set() for module in full}
    for module, path in full.items():
        for named, _ in imports(path):
            target = named if named in full else named.rpartition(".")[0]
            if module and target in users:
                users[target].add(module)
    return users


def lines_of(paths):
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def test_the_package_is_within_its_budget():
    size = {
        "lines": lines_of(MODULES),
        "modules": len(MODULES),
        "constants": sum(count_constants(tree) for tree in TREES.values()),
        "one importer": sum(len(users) == 1 for users in importers().values()),
    }
    over = {what: f"{size[what]} of {most}" for what, most in BUDGET.items() if size[what] > most}
    assert not over, "take something away, or argue in review"


def test_the_paper_is_within_its_budget():
    assert lines_of((ROOT / "paper").rglob("*.py")) <= PAPER_LINES


# ---------------------------------------------------------------------------------- the surface


def test_the_public_surface_is_small():
    assert len(nearer.__all__) <= 45
    assert set(nearer.__all__) <= set(dir(nearer))
    with pytest.raises(AttributeError, match=r"attribute .?nonsense"):
        nearer.nonsense


def test_every_public_name_is_documented_with_an_example():
    without = []
    for public in nearer.__all__:
        thing = getattr(nearer, public)
        documentation = inspect.getdoc(thing) or ""
        exempt = inspect.ismodule(thing) or public in ("UNSURE", "Embedding")
        if not documentation or (">>>" not in documentation and not exempt):
            without.append(public)
    assert not without


def test_the_api_page_is_current():
    spec = importlib.util.spec_from_file_location(
        "make_api_page", ROOT / "scripts/make_api_page.py"
    )
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == maker.page(), "run: .venv/bin/python scripts/make_api_page.py"


def test_every_command_is_in_the_readme_or_the_docs():
    from nearer.cli.main import main

    text = "".join(
        p.read_text("utf-8") for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    )
    assert [c for c in main.list_commands(None) if f"nearer {c}" not in text] == []
