"""README and docs/: their code runs, their commands exist, their links lead somewhere."""

import importlib
import json
import pkgutil
import re
import shlex
from pathlib import Path

import click
import matplotlib as mpl
import pytest

import benchmarks
import nearer
from nearer.cli.main import main
from paper.experiments import FULL, list_experiments

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(path):
    return str(path.relative_to(ROOT))


def code(page):
    return [body for kind, body in FENCE.findall(page.read_text("utf-8")) if kind == "python"]


LONG = {DOCS / "scale.md"}  # embeds thousands of objects
WITH_CODE = [
    pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] if page in LONG else [])
    for page in PAGES
    if code(page)
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    names = {"__name__": "__main__"}
    for number, block in enumerate(code(page), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def commands(page):
    """Lines that begin with ``nearer``, up to what explains them."""
    for line in page.read_text("utf-8").splitlines():
        if re.match(r"^(    )?nearer [a-z]", line):
            yield re.split(r"\s{2,}|\s#", line.strip())[0]


@pytest.mark.parametrize("page", [p for p in PAGES if list(commands(p))], ids=name_of)
def test_the_commands_of_a_page_exist(page):
    for line in commands(page):
        command, words = main, shlex.split(line)[1:]
        while isinstance(command, click.Group):
            context = click.Context(command)
            result = command.get_command(context, words[0])
            assert result is not None, f"{page.name}: {line}"
            command, words = result, words[1:]
        known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)} | {"--help"}
        unknown = [w for w in words if w.startswith("-") and w.split("=")[0] not in known]
        assert not unknown, f"{page.name}: {line}: no option {unknown}"


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=name_of)
def test_the_names_on_a_page_exist(page):
    for name in re.findall(r"`(nearer(?:\.\w+)+)", page.read_text("utf-8")):
        pkgutil.resolve_name(name)


def anchors(page):
    """What headings of a page can be linked as, in GitHub's way, which is MyST's, too."""
    text = FENCE.sub("", page.read_text("utf-8"))
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", head.lower()) for head in heads)
    return {head.replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page):
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if file.startswith("gallery/"):  # made by `make docs`
            example = ROOT / "examples" / "gallery" / f"{Path(file).name}.py"
            assert file == "gallery/index" or example in GALLERY, link
            continue
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in DOCS.glob("*.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            listed |= set(re.findall(r"^(?:.* <)?([\w/-]+)>?$", tree, re.MULTILINE))
    assert {page.stem for page in DOCS.glob("*.md")} == (listed - {"gallery/index"}) | {"index"}


def guides():
    page = (DOCS / "guides.md").read_text("utf-8")
    listed = re.search(r"```\{toctree\}\n(.*?)```", page, re.DOTALL)[1]
    return [DOCS / f"{name}.md" for name in re.findall(r"^([\w-]+)$", listed, re.MULTILINE)]


def test_a_guide_is_short_and_begins_with_code():
    wrong = []
    for page in [*guides(), DOCS / "start.md"]:
        text = page.read_text("utf-8")
        title, first = text.split("\n\n")[:2]
        prose = re.sub(r"^\|.*$", "", FENCE.sub("", text), flags=re.MULTILINE)
        if not first.startswith("```") or len(prose.split()) > 900:
            wrong.append(f"{page.name}: {len(prose.split())} words after {title!r}, {first[:20]!r}")
    assert not wrong


def test_every_benchmark_is_in_the_index():
    page = (DOCS / "benchmarks.md").read_text("utf-8")
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__)]
    for name in names:
        if name.startswith("_") or name in ("cells", "harness"):
            continue
        assert f"| `{name}` |" in page, name


def test_the_reproduction_has_no_empty_cell():
    """The committed cells are those that the command computes, whatever code they are of."""
    lines = (DOCS / "reproduction.jsonl").read_text("utf-8").splitlines()
    stored = {json.loads(line)["cell"] for line in lines}
    planned = {cell.name for cell in list_experiments("all", FULL)}
    assert stored == planned
    page = (DOCS / "reproduction.md").read_text("utf-8")
    assert f"- cells: {len(stored):,} of {len(planned):,}" in page


def test_the_gallery():
    assert len(GALLERY) >= 12
    listed = re.search(
        r"^ORDER = \[(.*?)\]", (DOCS / "_ext" / "pictures.py").read_text(), re.S | re.M
    )
    assert sorted(re.findall(r'"(\w+)"', listed[1])) == [
        p.stem.removeprefix("plot_") for p in GALLERY
    ]
    assert (ROOT / "examples" / "gallery" / "GALLERY_HEADER.rst").exists()


def test_one_version_everywhere():
    said = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    release = re.search(
        r"^## (\d\S*) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert said == release[1]
    assert nearer.__version__.startswith(said)
    assert f"date-released: {release[2]}" in (ROOT / "CITATION.cff").read_text()


def test_what_types_the_package_has_is_said():
    assert importlib.resources.files("nearer").joinpath("py.typed").is_file()
