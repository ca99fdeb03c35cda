"""People are the sample: what each makes of the map, and what is said of others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.special import expit

import nearer
from nearer.asking.oracles import CrowdOracle, Person
from nearer.metrics import share_interval_over_people
from nearer.questions import answered, random_questions, share_interval


def answers_of(maps, who, questions, rng):
    """Answers of people who each have an own map, with logistic errors."""
    head, a, b = questions.T
    to_a = np.linalg.norm(maps[who, head] - maps[who, a], axis=1)
    to_b = np.linalg.norm(maps[who, head] - maps[who, b], axis=1)
    return answered(questions, rng.random(len(who)) < expit(to_b - to_a))


def crowd(seed, m, P=10, n=24, spread=4.0, stretch=0.0, jitter=0.0):
    """True map, answers, their people, and answers of the same people to further questions."""
    rng = np.random.default_rng(seed)
    X = spread * rng.normal(size=(n, 2))
    maps = X * np.exp(stretch * rng.normal(size=(P, 1, 2)))
    maps = maps + jitter * spread * rng.normal(size=(P, n, 2))
    who, more = np.arange(m) % P, np.arange(4000) % P
    rows = answers_of(maps, who, random_questions(n, m, rng), rng)
    return X, rows, who, answers_of(maps, more, random_questions(n, 4000, rng), rng), more


def test_a_person_who_contradicts_is_flagged_and_has_no_weight():
    X = np.random.default_rng(3).normal(size=(40, 2))
    people = [Person()] * 8 + [Person(reliability=-1), Person(lapse=1.0)]
    crowd = CrowdOracle(X, people, scale=0.3, random_state=77)
    questions = random_questions(40, 4000, np.random.default_rng(0))
    rows = answered(questions, crowd(questions))
    known = {"n_components": 2, "n_objects": 40, "random_state": 0}
    embedding = nearer.fit(rows, people=crowd.answered_by, **known)
    flags = dict(
        zip(embedding.people["id"].tolist(), embedding.people["flag"].tolist(), strict=True)
    )
    assert flags == dict.fromkeys(range(8), "") | {8: "contrary", 9: "guessing"}
    tau = nearer.metrics.mean_kendall_tau
    assert tau(X, embedding.positions) > tau(X, nearer.fit(rows, **known).positions)


def test_those_who_guess_are_known_where_they_are_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    reliability = np.repeat([1.0, 0.0, -1.0], [8, 6, 3])
    who = np.arange(2040) % len(reliability)
    questions = random_questions(40, len(who), rng)
    head, a, b = X[questions.T]
    margin = np.linalg.norm(head - b, axis=1) - np.linalg.norm(head - a, axis=1)
    near = rng.random(len(who)) < expit(reliability[who] * margin / 0.3)
    rows = answered(questions, near)
    embedding = nearer.fit(rows, people=who, n_components=3, n_objects=40, random_state=0)
    sensitivity = embedding.people["sensitivity"]
    sensitivity = sensitivity / sensitivity[:8].median()
    assert sensitivity[:8].min() > 0.6
    assert np.abs(sensitivity[8:14]).max() < 0.4
    assert sensitivity[14:].max() < -0.5


def test_people_who_weigh_axes_differently_are_predicted_better_by_weights():
    _X, rows, who, further, whose = crowd(0, 3000, stretch=0.5)
    one = nearer.fit(rows, n_components=2, n_objects=24, random_state=0)
    embedding = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=0)
    assert embedding.weights.shape == (10, 2)
    np.testing.assert_allclose(np.log(embedding.weights).mean(axis=0), 0, atol=1e-9)
    assert 0.5 < np.log(embedding.weights).std() < 1.1  # less with the least spread
    right, logs = [], []
    for person in embedding.people["id"]:
        asked = further[whose == person]
        right.append(embedding.predict(asked, person=person).mean())
        logs.append(np.log(embedding.predict_proba(asked, person=person)[:, 1]).mean())
    assert np.mean(right) > one.predict(further).mean() + 0.005
    assert np.mean(logs) > np.log(one.predict_proba(further)[:, 1]).mean() + 0.01
    gain, error = max(embedding.details["people_differ"].values())
    assert gain > error > 0


def test_people_who_do_not_differ_share_one_map():
    _X, rows, who, *_ = crowd(1, 1500)
    embedding = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=0)
    assert embedding.weights is None
    person = embedding.people["id"][0]
    np.testing.assert_array_equal(embedding.positions_for(person), embedding.positions)
    with pytest.raises(nearer.errors.InvalidInput, match="nobody"):
        embedding.predict([[0, 1, 2]], person="nobody")


def test_draws_are_wider_where_answers_depend_on_people():
    X, rows, who, *_ = crowd(2, 3000, jitter=0.5)
    known = {"n_components": 2, "n_objects": 24, "random_state": 0}
    one = nearer.fit(rows, **known)
    embedding = nearer.fit(rows, people=who, **known)
    few = nearer.fit(rows, people=who % 4, **known)

    def width(map_):
        return np.sqrt(map_.draws(60, 0).var(axis=0).mean()) / map_.positions.std()

    assert width(embedding) > 1.3 * width(one)
    assert width(few) == pytest.approx(width(one), rel=0.15)
    assert few.held_out.new_people is None
    names = np.where(who % 5 == 4, "", who % 5)
    assert nearer.fit(rows[:400], people=names[:400], **known).held_out.new_people is None
    assert embedding.held_out.new_people.low < embedding.held_out.low
    assert embedding.details["expected_tau"] < one.details["expected_tau"]
    again = nearer.metrics.mean_kendall_tau(X, embedding.positions)
    assert abs(embedding.details["expected_tau"] - again) < 0.08


def test_what_is_expected_of_few_answers_comes_true():
    more_sure, higher = [], []
    for seed in range(6):
        X, rows, who, further, _ = crowd(seed, 400)
        embedding = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=seed)
        p = embedding.predict_proba(further)[:, 1]
        more_sure.append((np.maximum(p, 1 - p) - (p > 0.5)).mean())
        tau = nearer.metrics.mean_kendall_tau(X, embedding.positions)
        higher.append(embedding.details["expected_tau"] - tau)
    assert abs(np.mean(more_sure)) < 0.01
    assert abs(np.mean(higher)) < 0.03


def test_exact_answers_of_several_people_are_predicted_for_others():
    questions = random_questions(15, 900, np.random.default_rng(0))
    exactly = nearer.PointOracle(np.random.default_rng(0).normal(size=(15, 2)))
    rows = answered(questions, exactly(questions))
    exact = nearer.fit(rows, people=np.arange(900) % 6, n_components=2, random_state=0)
    new = exact.held_out.new_people
    assert exact.details["method"] == "soe"
    assert new.low <= new.accuracy <= new.high
    assert nearer.fit(rows, n_components=2, random_state=0).held_out.new_people is None


def test_a_map_of_people_is_saved(tmp_path):
    _X, rows, who, *_ = crowd(3, 800, stretch=0.5)
    embedding = nearer.fit(
        rows, people=who, differ="weights", n_components=2, n_objects=24, random_state=0
    )
    embedding.save(tmp_path / "map.nearer.npz")
    again = nearer.load(tmp_path / "map.nearer.npz")
    np.testing.assert_array_equal(again.weights, embedding.weights)
    np.testing.assert_array_equal(again.draws(3, 0), embedding.draws(3, 0))
    assert again.held_out == embedding.held_out
    for person in embedding.people["id"][:2]:
        p = [e.predict_proba(rows[:9], person=person) for e in (embedding, again)]
        np.testing.assert_array_equal(*p)


def test_people_who_choose_one_side_are_flagged():
    rng = np.random.default_rng(4)
    X = 2 * rng.normal(size=(20, 2))
    q, who = random_questions(20, 1600, rng), np.arange(1600) % 8
    gap = np.linalg.norm(X[q[:, 0]] - X[q[:, 2]], axis=1)
    gap -= np.linalg.norm(X[q[:, 0]] - X[q[:, 1]], axis=1)
    first = rng.random(1600) < expit(gap + np.where(who == 3, 4.0, 0.0))
    chosen = np.where(first[:, None], [1, 0], [0, 1])
    trials = nearer.Trials.near(q[:, 0], q[:, 1:], chosen.astype(bool), people=who)
    embedding = nearer.fit(trials, n_components=2, random_state=0)
    assert embedding.people["id"][embedding.people["flag"] == "one side"].tolist() == [3]
    assert embedding.people["bias"][3] > 2
    assert np.abs(np.delete(embedding.people["bias"], 3)).max() < 1


def test_choices_of_any_task_have_people():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(15, 2))
    shown = np.array([rng.choice(15, 3, replace=False) for _ in range(900)])
    sides = [
        np.linalg.norm(X[shown[:, (i + 1) % 3]] - X[shown[:, (i + 2) % 3]], axis=1)
        for i in range(3)
    ]
    odd = shown[np.arange(900), np.argmin(np.array(sides), axis=0)]
    wild = rng.random(900) < 0.1
    odd[wild] = shown[wild, 0]
    trials = nearer.Trials.odd_one_out(shown, odd, people=np.arange(900) % 6)
    embedding = nearer.fit(trials, n_components=2, differ="weights", random_state=0)
    assert embedding.weights.shape == (6, 2)
    assert embedding.held_out.new_people.low < embedding.held_out.new_people.high
    assert np.isfinite(embedding.people["sensitivity"]).all()


def two_groups(seed, moved):
    """Answers of two groups of ten, the second with some objects elsewhere, and the groups."""
    rng = np.random.default_rng(seed)
    X = 4 * rng.normal(size=(16, 2))
    Y = X.copy()
    Y[:moved, 0] += 6
    who = np.arange(2000) % 20
    maps = np.concatenate([np.tile(X, (10, 1, 1)), np.tile(Y, (10, 1, 1))])
    maps += 1.0 * rng.normal(size=maps.shape)
    rows = answers_of(maps, who, random_questions(16, len(who), rng), rng)
    return rows, who, who >= 10


@pytest.mark.parametrize("n", [19, pytest.param(99, marks=pytest.mark.slow)])
def test_groups_that_differ_are_distinguished_from_groups_that_do_not(n):
    comparisons = []
    for moved in (0, 2):
        rows, who, group = two_groups(6, moved)
        known = {"groups": group, "n_permutations": n, "random_state": 0}
        comparisons.append(nearer.compare(rows, people=who, **known))
    same, other = comparisons
    assert same.p_differ > 0.05
    assert (same.moved > 0.05).all()
    assert other.p_differ == 1 / (1 + n)
    assert sorted(np.argsort(other.moved)[:2].tolist()) == [0, 1]
    if n == 99:  # fewer permutations give no p so small for one of 16 objects
        assert np.flatnonzero(other.moved <= 0.05).tolist() == [0, 1]
    ax = other.plot()
    assert ax.get_title() == f"the groups differ: p = {1 / (1 + n):.3f}"
    with pytest.raises(nearer.errors.InvalidInput, match="groups need the person"):
        nearer.compare(rows, groups=group)


def test_objects_that_moved_are_named_for_all_objects_together():
    rows, who, group = two_groups(6, 2)
    known = {"n_components": 2, "n_objects": 16, "random_state": 0}
    maps = [nearer.fit(rows[side], people=who[side], **known) for side in (~group, group)]
    comparison = nearer.compare(*maps, n_permutations=9, n_draws=50, random_state=0)
    alone = (replace(map_, people=None) for map_ in maps)
    each = nearer.compare(*alone, n_permutations=9, n_draws=50, random_state=0)
    assert (comparison.moved >= np.minimum(16 * each.moved, 1)).all()
    assert (comparison.low[comparison.moved > 0.05] == 0).all()


def test_probabilities_for_further_people_are_no_surer_than_right():
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(24, 2))
    maps = X + 2 * rng.normal(size=(105, 24, 2))
    who, further = np.arange(2000) % 5, 5 + np.arange(8000) % 100
    rows = answers_of(maps, who, random_questions(24, 2000, rng), rng)
    embedding = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=0)
    p = embedding.predict_proba(answers_of(maps, further, random_questions(24, 8000, rng), rng))
    assert abs(p.max(axis=1).mean() - (p[:, 1] > 0.5).mean()) < 0.02  # .04 by fits that saw them


@pytest.mark.parametrize("surer", [{"error": 0.0}, {"sensitivity": 3.0}, {"lapse": 0.0}])
def test_probabilities_for_a_person_are_those_of_its_row_in_the_table(surer):
    _X, rows, who, *_ = crowd(2, 1200)
    embedding = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=0)
    sure = replace(embedding, people=embedding.people.assign(**surer))
    away = [abs(map_.predict_proba(rows, person=0)[:, 0] - 0.5) for map_ in (embedding, sure)]
    assert (away[0] < away[1]).all()


def test_each_person_is_a_unit_of_the_interval_for_further_people():
    as_one = share_interval_over_people(np.full(5, 80), np.full(5, 100))
    assert as_one[1] == pytest.approx(share_interval(0.8, 500 * (1.96 / 2.776) ** 2), abs=1e-3)
    shares = np.array([0.95, 0.7, 0.8, 0.9, 0.65])
    mean, limits = share_interval_over_people(1000 * shares, np.full(5, 1000))
    assert mean == pytest.approx(0.8)
    n = 0.8 * 0.2 / (2 * shares.var(ddof=1) / 5) * (1.96 / 2.776) ** 2  # what people add, twice
    assert limits == pytest.approx(share_interval(0.8, n), abs=0.01)
    # however many answers one of five people gave, they are those of one
    asked = np.array([1e6, 1000, 1000, 1000, 1000])
    mean, uneven = share_interval_over_people(shares * asked, asked)
    assert mean == pytest.approx(0.8, abs=0.01)
    assert uneven == pytest.approx(limits, abs=0.01)


@pytest.mark.slow
def test_intervals_for_further_people_hold_with_unequal_numbers_of_answers():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        asked = np.ceil(300 * np.exp(1.2 * rng.normal(size=10)))
        own = np.clip(0.8 + 0.05 * rng.normal(size=10), 0, 1)
        _, (low, high) = share_interval_over_people(rng.binomial(asked.astype(int), own), asked)
        held.append(low <= 0.8 <= high)
    assert np.mean(held) > 0.94  # .92 if answers were the units


def test_the_weights_of_people_are_drawn():
    _X, rows, who, *_ = crowd(3, 800, stretch=0.5)
    embedding = nearer.fit(rows, people=who, differ="weights", n_components=2, random_state=0)
    assert embedding.plot(people=True).get_xlabel() == "weight of axis 1"
    with pytest.raises(nearer.errors.InvalidInput, match="none"):
        nearer.fit(rows, n_components=2, random_state=0).plot(people=True)


def test_answers_of_unknown_people_leave_weights_with_whom_they_belong():
    _X, rows, who, *_ = crowd(3, 1200, stretch=0.5)
    people = np.array([f"p{i}" for i in who], dtype=object)
    people[::40] = ""
    embedding = nearer.fit(rows, people=people, differ="weights", n_components=2, random_state=0)
    assert len(embedding.weights) == len(embedding.people) == 10
    own = embedding.positions * embedding.weights[embedding.people["id"] == "p3"] ** 0.5
    assert np.allclose(embedding.positions_for("p3"), own)


def test_a_study_is_planned_from_a_pilot():
    from nearer.algorithms.plan import needed, plan_pilot

    _X, rows, who, *_ = crowd(7, 600, jitter=0.5)
    pilot = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=0)
    plan = plan_pilot(pilot, n_people=[10, 40], most=2000, n_repeats=8, random_state=0)
    assert plan.n_people.tolist() == [10, 40]
    assert plan.n_answers[-1] == 2000
    for values in (plan.accuracy, plan.tau):
        assert (np.diff(values, axis=2) >= 0).all()
        assert (values[:, -1, 1] > values[:, 0, 1]).all()
    tau = plan.tau[1, :, 1]
    between = needed(float(tau[1:3].mean()), plan.n_answers, tau)
    assert plan.n_answers[1] < between < plan.n_answers[2]
    assert needed(0.9999, plan.n_answers, tau) is None


@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_populations_have_maps_as_far_apart_as_those_of_the_people_asked(jitter):
    from nearer.fitting.draws import draw_populations
    from nearer.fitting.likelihood import as_answers
    from nearer.fitting.people import Crowd

    X, rows, who, *_ = crowd(1, 2000, jitter=jitter)
    fit = nearer.fit(rows, people=who, n_components=2, n_objects=24, random_state=0)
    posterior = fit.details["posterior"]
    parts = (rows, who, as_answers(rows, 24), np.ones(len(rows)), None, np.ones(10))
    drawn = draw_populations(
        posterior, Crowd(*parts, posterior.noise), 100, np.random.default_rng(0)
    )
    apart, width = np.array([(noise.apart * noise.prior, X.std()) for X, noise in drawn]).T
    assert np.mean(apart) == pytest.approx(4 * jitter, abs=max(0.5, 3 * np.std(apart)))
    assert abs(np.mean(width) - X.std()) < 3 * np.std(width)


def test_choices_are_right_as_a_whole_and_chance_is_that_of_the_task():
    rng = np.random.default_rng(8)
    shown = np.array([rng.choice(12, 3, replace=False) for _ in range(600)])
    guesses = nearer.Trials.odd_one_out(shown, shown[np.arange(600), rng.integers(3, size=600)])
    with pytest.warns(nearer.errors.AnswersWarning, match="guessing"):
        embedding = nearer.fit(guesses, n_components=2, random_state=0)
    assert embedding.held_out.chance == pytest.approx(1 / 3)
    assert embedding.held_out.low < 1 / 3 < embedding.held_out.high + 0.03
    X = 3 * rng.normal(size=(12, 2))
    sides = [np.linalg.norm(X[shown[:, i - 2]] - X[shown[:, i - 1]], axis=1) for i in range(3)]
    odd = shown[np.arange(600), np.argmin(np.array(sides) - rng.gumbel(size=(3, 600)), axis=0)]
    trials = nearer.Trials.odd_one_out(shown, odd)
    whole = nearer.fit(trials, n_components=2, random_state=0).held_out
    parts = nearer.fit(trials.triplets()[0], n_components=2, random_state=0).held_out
    assert parts.chance == whole.chance
    assert abs(parts.accuracy - whole.accuracy) < 0.05


def test_the_dimension_that_predicts_best_may_be_larger_than_the_supported_one():
    rng = np.random.default_rng(9)
    X = 3 * rng.normal(size=(1, 20, 3)) * [1.0, 1.0, 0.3]
    rows = answers_of(X, np.zeros(1500, dtype=int), random_questions(20, 1500, rng), rng)
    usual, best = (nearer.fit(rows, n_components=k, random_state=0) for k in ("auto", "predictive"))
    tried = {d: x["log_likelihood"] for d, x in usual.evidence.items() if "log_likelihood" in x}
    assert usual.dimension <= best.dimension
    assert (best.dimension_low, best.dimension_high) == (usual.dimension_low, usual.dimension_high)
    assert best.dimension >= max(tried, key=tried.get)


def test_reports_show_weights_and_check_residuals(tmp_path):
    _X, rows, who, *_ = crowd(3, 1200, stretch=0.5)
    embedding = nearer.fit(rows, people=who, differ="weights", n_components=2, random_state=0)
    embedding.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "How much the first two axes count" in page
    checks = embedding.details["checks"]
    assert checks.keys() == {"other distances", "person", "object", "order"}
    assert min(checks.values()) > 0.001
    late = rows.copy()
    late[800:] = np.where(np.arange(400)[:, None] % 2, late[800:], late[800:, [0, 2, 1]])
    tired = nearer.fit(late, people=who, differ="no", n_components=2, random_state=0)
    assert tired.details["checks"]["order"] < 1e-6


@pytest.mark.parametrize("kind", ["plane", "clusters", "city block", "tree", "clock"])
def test_files_that_no_euclidean_map_fits_are_flagged(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    if kind == "clusters":
        X = 0.3 * X + 4 * rng.normal(size=(3, 2))[np.arange(24) % 3]
    if kind == "tree":  # each object hangs on an earlier one: a column a branch, a distance its sum
        X = np.eye(24)
        for i in range(1, 24):
            X[i] += X[rng.integers(i)]
        X *= rng.exponential(size=24)
    D = cdist(X, X, "cityblock" if kind in {"city block", "tree"} else "euclidean")
    if kind == "clock":  # all objects are equally far from the root
        D = squareform(cophenet(average(pdist(X))))
    head, a, b = (questions := random_questions(24, 4000, rng)).T
    margin = D[head, b] - D[head, a]
    near = rng.random(4000) < expit(4 * margin / D.std())
    embedding = nearer.fit(answered(questions, near), n_objects=24, random_state=0)
    p = embedding.details["checks"]["other distances"]
    assert p > 0.2 if kind in {"plane", "clusters"} else p < 0.01
    embedding.report(tmp_path / "report.md")
    assert f"| other distances | {p:.3f} |" in (tmp_path / "report.md").read_text("utf-8")
