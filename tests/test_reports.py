"""Reports: what they say is what was found, in HTML and in Markdown, for every kind of result."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from browserkit import LOOKS, look, needs_browser, open_page

import nearer
from nearer.algorithms.pipelines import basis_embedding
from nearer.errors import AnswersWarning, DroppedRows, InvalidInput
from nearer.plotting.report import methods_text, references
from nearer.questions import answered, random_questions

NAMES = ["<b>bold</b>", "a|b", "x_1*", "</script>", "`tick`", *(f"thing {i}" for i in range(15))]


def answers(flip, m=2400, n=20, d=2, seed=0):
    rng = np.random.default_rng(seed)
    asked = random_questions(n, m // 2, rng)
    asked = np.concatenate([asked, asked])
    right = nearer.PointOracle(rng.normal(size=(n, d)))(asked)
    return answered(asked, right ^ (rng.random(len(asked)) < flip))


@pytest.fixture(scope="module")
def people():
    rows = answers(0.1)
    who = np.random.default_rng(1).choice(["ann", "bob", "cy", "dee"], len(rows))
    rows[who == "dee"] = rows[who == "dee"][:, [0, 2, 1]]  # says the contrary
    embedding = nearer.fit(rows, people=who, random_state=0)
    return replace(embedding, names=tuple(NAMES))


@pytest.fixture(scope="module")
def exact():
    return nearer.fit(answers(0.0, d=1), n_components=1, random_state=0)


@pytest.fixture(scope="module")
def many():
    X = np.random.default_rng(0).normal(size=(400, 3))
    rows = random_questions(400, 2_000, np.random.default_rng(1))
    return nearer.Embedding(X, rows, 2_000, 12, (), {}, covariances=np.tile(np.eye(3), (400, 1, 1)))


@pytest.fixture
def room_for_300(monkeypatch):
    """Tables and pictures with room for 300 objects, so that 400 are too many."""
    for module in ("report", "maps"):
        monkeypatch.setattr(f"nearer.plotting.{module}.MANY", 300)


@pytest.fixture(scope="module")
def asked():
    X = np.random.default_rng(0).normal(size=(30, 2))
    return nearer.embed(nearer.PointOracle(X), 30, noise=0, random_state=0)


def written(embedding, tmp_path, name="report.html", **about):
    embedding.report(tmp_path / name, **about)
    return (tmp_path / name).read_text(encoding="utf-8")


def words(page):
    """What a reader of the page sees."""
    page = re.sub(r"<style>.*?</style>|<img[^>]*>", "", page, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", page))


def test_the_report_states_the_figures_of_the_fit(people, tmp_path):
    page = words(written(people, tmp_path, title="Report on things"))
    held, rated = people.held_out, people.people
    assert f"{100 * held.accuracy:.1f} % of {held.n_trials:,} answers" in page
    assert f"{100 * held.low:.1f} – {100 * held.high:.1f} %" in page
    others = people.details["agreement"]["others"]
    assert f"{100 * others.share:.1f} %" in page
    low, high = others.ceiling_interval
    assert f"{100 * others.ceiling:.1f} %" in page
    assert f"{100 * low:.1f} – {100 * high:.1f} %" in page
    assert "1 of 4 contradicts all others: dee." in page
    for agreement in rated["agreement"]:
        assert f"{100 * agreement:.1f} %" in page
    for d, known in people.evidence.items():
        if "log_likelihood" in known:
            assert f"{-known['log_likelihood']:.4f}" in page, d
    assert "nearer.fit(answers, people=…, random_state=0)" in page
    assert nearer.__version__ in page
    assert "Luce, R. D. (1959)" in page
    for name in NAMES:
        assert name in page


def test_methods_name_the_task_and_how_many_took_part(people):
    text = methods_text(people)
    assert "2,400 answers of 4 participants with nearer" in text
    assert "Each answer said which of two objects is more like" in text


def test_whoever_is_cited_is_listed_and_the_reverse(people, exact):
    for embedding in (people, exact):
        text, listed = (
            methods_text(embedding),
            [r for r in references(embedding) if "nearer" not in r],
        )
        cited = re.findall(r"\(([A-Za-z][^()]*?),? (?:and|et)?[^()]*(\d{4})\)", text)
        assert len(cited) == len(listed) > 0
        for name, year in cited:
            assert any(r.startswith(name.split()[0]) and f"({year})" in r for r in listed), name
    assert "its posterior covariance, given the other objects" in methods_text(people)
    assert "other maps that satisfy all answers" in methods_text(exact)


def test_the_curve_that_was_fitted_is_the_one_described(people):
    """The t curve, in which distances count by their logarithm, has words and a source."""
    fit = people.details["posterior"]
    for tail, lapses, cited in ((0.0, True, False), (1.0, False, True)):
        posterior = replace(fit, noise=replace(fit.noise, tail=tail))
        changed = replace(people, details={**people.details, "posterior": posterior})
        assert ("except for a share of lapses" in methods_text(changed)) is lapses
        assert (
            "Student's t (van der Maaten and Weinberger, 2012)" in methods_text(changed)
        ) is cited
        assert any(r.startswith("van der Maaten") for r in references(changed)) is cited


def test_names_stay_names(people, tmp_path):
    page = written(people, tmp_path)
    assert "<b>bold" not in page
    assert "</script" not in page
    text = written(people, tmp_path, "report.md")
    assert "<b>" not in text
    table = [line for line in text.splitlines() if "a\\|b" in line and line.startswith("|")]
    assert table, "a bar in a name does not end its cell"
    assert "x\\_1\\*" in text
    assert r"costs \$1 to \$2" in written(people, tmp_path, "b.md", title="costs $1 to $2")


def test_markdown_has_its_pictures_beside_it(people, tmp_path):
    text = written(people, tmp_path, "paper.md", command="nearer fit things.csv --seed 0")
    linked = set(re.findall(r"\]\(([^)]+)\)", text))
    assert linked == {"paper-dimension.svg", "paper-map.svg", "paper-people.svg"}
    assert {file.name for file in tmp_path.iterdir()} == linked | {"paper.md"}
    assert "```\nnearer fit things.csv --seed 0\n```" in text


def test_a_page_needs_nothing_else(people, tmp_path):
    page = written(people, tmp_path)
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)
    assert "<script" not in page


def test_exact_answers_in_one_dimension(exact, tmp_path):
    page = words(written(exact, tmp_path))
    assert "and satisfy all answers" in page
    assert "The number was set, not estimated" in page
    assert "uncertainty" in page
    assert "People" not in page


@pytest.mark.usefixtures("room_for_300")
def test_many_objects_make_no_giant(many, tmp_path):
    page = written(many, tmp_path)
    assert len(page) < 3_000_000
    assert "300 of 400 objects" in page
    assert page.count("<tr>") < 350


def test_questions_that_were_chosen(asked, tmp_path):
    page = words(written(asked, tmp_path))
    assert "chosen round by round" in page
    for phase in asked.history:
        assert phase.note in page


def test_what_was_saved_can_still_be_reported(people, tmp_path):
    people.save(tmp_path / "map.nearer.npz")
    loaded = written(nearer.load(tmp_path / "map.nearer.npz"), tmp_path, "report.md")
    assert f"{100 * people.held_out.accuracy:.1f} %" in loaded
    assert "two different people" in loaded
    assert loaded == written(people, tmp_path, "report.md")


def test_what_was_left_out_is_said(tmp_path):
    rows = ["head,winner,loser,person", "a,b,c,p1", "a,b,b,p1", "b,c,a,p2", "c,b,a,p1", "b,a,c,p2"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    with pytest.warns(nearer.errors.DroppedRows):
        embedding = nearer.fit(tmp_path / "t.csv", n_components=1, random_state=0)
    page = words(written(embedding, tmp_path))
    assert "Left out, an object twice in the question: 1 (line 3)." in page
    assert "No answer was left out" not in page


def test_other_files_are_refused(people, tmp_path):
    with pytest.raises(InvalidInput, match=r"report\.pdf: a report is written to \.html or \.md"):
        people.report(tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


@needs_browser
@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_a_browser_shows_it(browser, people, tmp_path, size, scheme):
    written(people, tmp_path)
    page = open_page(browser, size, color_scheme=scheme)
    page.goto(f"file://{tmp_path}/report.html")
    look(page, f"report-{size}-{scheme}")
    assert page.eval_on_selector_all("img", "all => all.every((i) => i.naturalWidth > 100)")
    cut = "all => all.filter((box) => box.scrollHeight > box.clientHeight).length"
    assert page.eval_on_selector_all(".scroll:not(.long)", cut) == 0, "a short table hides rows"
    assert page.faults == []
    page.context.close()


def test_the_largest_dimension_stands_for_all_beyond(people, tmp_path):
    rows = {1: {"probability": 0.7, "log_likelihood": -0.5}, 2: {"probability": 0.3}}
    page = words(written(replace(people, evidence=rows), tmp_path))
    assert "2 or more" in page
    assert "2 dimensions and all beyond" in page
    rows = {d: {"probability": 1 / 19} for d in range(1, 20)}  # 20 objects have no more than 19
    assert "or more" not in words(written(replace(people, evidence=rows), tmp_path))


def test_guessing_is_called_guessing(people, tmp_path):
    rng = np.random.default_rng(0)
    rows = answered(random_questions(12, 900, rng), rng.random(900) < 0.5)
    with pytest.warns(AnswersWarning, match="no better than by guessing"):
        embedding = nearer.fit(rows, n_components=2, random_state=0)
    assert embedding.held_out.is_guessing
    assert words(written(embedding, tmp_path)).count("no better than by guessing") == 2
    assert "guessing," not in words(written(people, tmp_path))


def test_a_saved_map_reports_what_was_left_out(tmp_path):
    lines = "\n".join(f"{a},{b},{c}" for a, b, c in answers(0.1, m=400).tolist())
    file = tmp_path / "answers.csv"
    file.write_text(f"head,winner,loser\n{lines}\n1,2,2\n", "utf-8")
    with pytest.warns(DroppedRows, match="named twice"):
        embedding = nearer.fit(nearer.read_triplets(file), n_components=2, random_state=0)
    embedding.save(tmp_path / "map.npz")
    again = nearer.load(tmp_path / "map.npz")
    assert again.details["read"] == embedding.details["read"]
    for which in (embedding, again):
        page = words(written(which, tmp_path))
        assert "Left out, an object twice in the question" in page
        assert "No answer was left out" not in page
    older = replace(again, details={k: v for k, v in again.details.items() if k != "read"})
    assert "No answer was left out" not in words(written(older, tmp_path))


def test_methods_say_what_was_done(people, exact, asked, tmp_path):
    drawn = nearer.fit(answers(0.1, m=600), n_components=2, bootstrap=3, random_state=0)
    assert "resampled answers" in methods_text(drawn)
    few = nearer.fit([[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 1, 2], [0, 2, 1]], random_state=0)
    assert few.held_out is None
    assert "eld-out" not in methods_text(few)
    who = np.random.default_rng(1).choice(["ann", "bob"], 2400)
    exact = nearer.fit(answers(0.0, d=1), n_components=1, people=who, random_state=0)
    assert "sensitivity" not in methods_text(exact)
    page = words(written(exact, tmp_path))
    assert "No participant was excluded." in page
    assert "Too few people answered for statements about others" in page
    assert "given the others" not in page
    page = words(written(asked, tmp_path))
    assert "No question was asked twice" not in page
    assert "answers were predicted by fits that had not seen them" in page
    assert "expected to carry most information about the positions" in page
    assert "without lapses" in page
    assert "nearer.embed(oracle, 30, noise=0, random_state=0)" in page
    assert "of the answers contradict the positions" in page
    page = words(written(people, tmp_path))
    assert "compared with one map for all" in page


def test_where_all_guess_no_person_is_cleared(tmp_path):
    rng = np.random.default_rng(0)
    rows = answered(random_questions(12, 660, rng), rng.random(660) < 0.5)
    who = rng.choice(["ann", "bob", "cy"], 660)
    with pytest.warns(AnswersWarning, match="guessing"):
        embedding = nearer.fit(rows, people=who, n_components=2, random_state=0)
    page = words(written(embedding, tmp_path))
    assert "look like guesses" in page
    assert "No person contradicts the others or seems to guess" not in page


def test_probabilities_add_up(people, tmp_path):
    page = written(people, tmp_path, "report.md")
    table = page.split("| dimensions | probability |")[1].split("\n\n")[0]
    shares = [float(x) for x in re.findall(r"\| (\d+\.\d) % \| (?:\d|not)", table)]
    assert sum(shares) == pytest.approx(100, abs=0.3)


def test_choices_are_counted_as_such(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    shown = np.array([rng.choice(12, 3, replace=False) for _ in range(300)])
    sides = [
        np.linalg.norm(X[shown[:, i]] - X[shown[:, j]], axis=1) for i, j in ((1, 2), (0, 2), (0, 1))
    ]
    odd = shown[np.arange(300), np.argmin(sides, axis=0)]
    embedding = nearer.fit(nearer.Trials.odd_one_out(shown, odd), n_components=2, random_state=0)
    page = words(written(embedding, tmp_path))
    assert "log-loss of 0.693" not in page
    assert "an answer counts if all of it was predicted. Guessing predicts 33.3 %" in page
    assert "Each answer named the odd one out of three objects" in methods_text(embedding)
    assert "each possible choice has a probability" in methods_text(embedding)
    assert embedding.held_out.chance == pytest.approx(1 / 3)


def table(page, caption):
    """The rows of a table in Markdown, the heads first."""
    lines = page.split(caption)[1].split("\n\n")[1].splitlines()
    return [[cell.strip() for cell in line.split(" | ")] for line in lines if "---" not in line]


@pytest.mark.usefixtures("room_for_300")
def test_objects_are_listed_by_how_sure_they_are(many, people, tmp_path):
    sizes = np.random.default_rng(0).permutation(400) + 1.0
    unsure = replace(many, covariances=sizes[:, None, None] ** 2 * np.eye(3) / 3)
    rows = table(written(unsure, tmp_path, "report.md"), "the least and the most certain")
    heads, rows = rows[0], rows[1:]
    assert [head.strip("| ") for head in heads][:3] == ["object", "comparisons", "uncertainty"]
    assert len(rows) == 300
    order = np.argsort(-sizes)
    listed = [int(row[0].strip("| ")) for row in rows]
    half = len(rows) // 2
    assert listed == [*order[:half], *order[-half:]]
    asked, spread = np.bincount(many.triplets.ravel()), np.sqrt(many.positions.var(axis=0).sum())
    for i, row in zip(listed, rows, strict=True):
        assert row[1] == f"{asked[i]:,}"
        assert row[2] == f"{100 * sizes[i] / spread:.1f} %"
    without = replace(many, triplets=many.triplets[:0])
    assert "comparisons" not in written(without, tmp_path, "report.md").split("## Objects")[1]


def test_people_are_listed_by_how_far_they_agree(people, tmp_path):
    page = written(people, tmp_path, "report.md").split("## People")[1]
    listed = re.findall(r"^\| (ann|bob|cy|dee) \|", page, flags=re.MULTILINE)
    agreement = dict(zip(people.people["id"].tolist(), people.people["agreement"], strict=True))
    assert listed == sorted(agreement, key=agreement.get)
    assert listed[0] == "dee"


@pytest.mark.parametrize(
    ("method", "said", "cited"),
    [
        (nearer.algorithms.basis_soe, "soft ordinal embedding", "Terada"),
        (basis_embedding, "axes found from rankings of the objects", "Anderton"),
        (nearer.algorithms.rand_soe, "drawn at random", "Terada"),
        (nearer.algorithms.crowd_kernel, "the crowd kernel's likelihood", "Tamuz"),
        (nearer.adaptive, "the posterior mode", "nearer"),
    ],
)
def test_every_strategy_is_called_what_it_is(method, said, cited, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    options = (
        {"budget": 900}
        if method in (nearer.algorithms.rand_soe, nearer.algorithms.crowd_kernel)
        else {}
    )
    result = nearer.run(method(40, random_state=0, **options), nearer.PointOracle(X))
    assert said in methods_text(result)
    assert any(work.startswith((cited, f"The {cited}")) for work in references(result))
    others = {"Terada", "Anderton", "Tamuz"} - {cited}
    assert not any(work.startswith(tuple(others)) for work in references(result))
    assert "was set, not estimated" not in words(written(result, tmp_path))
