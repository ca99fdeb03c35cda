"""Wrong arguments are refused where they enter, in one message with value and rule."""

from pathlib import Path

import numpy as np
import pytest

import nearer
from nearer import algorithms, asking, datasets, fitting, metrics, plotting
from nearer.algorithms.plan import expected_cost
from nearer.errors import InvalidInput, NearerError
from nearer.judges import ChatJudge, Panel, from_similarity

X = np.random.default_rng(0).random((12, 2))
T = np.array([[0, 1, 2], [0, 1, 3], [3, 2, 0], [2, 1, 0], [1, 0, 3]])
ORACLE = nearer.PointOracle(X)
NAN, INF, HALF = float("nan"), float("inf"), "a\ud800"


def rank():
    return nearer.rank_objects(0, 5)


def positions(**options):
    return fitting.fit_positions(T, 12, 2, **{"rng": np.random.default_rng(0)} | options)


class Says:
    """A loss that returns the same whatever the positions are."""

    def __init__(self, *said):
        self.said = said

    def sums(self, X, triplets, weights):
        return self.said


def chat(**options):
    return ChatJudge(options.pop("model", "m"), **{"key": None} | options)


MISUSES = {
    # judges
    "options=5": lambda: chat(options=5),
    "options={'a': nan}": lambda: chat(options={"a": NAN}),
    "options={'model': 'x'}": lambda: chat(options={"model": "x"}),
    "options={'a': <object": lambda: chat(options={"a": object()}),
    "model=5": lambda: chat(model=5),
    "model=''": lambda: chat(model=""),
    "model='a\\ud800'": lambda: chat(model=HALF),
    "system=5": lambda: chat(system=5),
    "question='a\\ud800{head}'": lambda: chat(question=HALF + "{head}"),
    "key=5": lambda: chat(key=5),
    "price must be finite": lambda: chat(price=(INF, 1)),
    "price=-1.0": lambda: chat(price=(-1, 1)),
    "timeout=inf": lambda: chat(timeout=INF),
    "random_state='x'": lambda: chat(random_state="x"),
    "judges=5": lambda: Panel(5),
    "random_state=-1": lambda: Panel([ORACLE], random_state=-1),
    "f=array( … nearer.DistanceOracle": lambda: from_similarity(X),
    "similarities of … are 'x'": lambda: nearer.run(rank(), from_similarity(lambda a, b: "x")),
    # strategies and their wrappers
    "askable=5": lambda: nearer.adaptive(10, askable=5),
    "askable=[": lambda: algorithms.choose_questions(T, 10, 3, askable=[]),
    "triplets 5": lambda: algorithms.choose_questions(5, 10, 3),
    "strategy=5": lambda: asking.limited(5, 5),
    "strategy=6": lambda: asking.forced_choice(6),
    "strategy=7": lambda: asking.together(7),
    "strategy=8": lambda: asking.Session(8),
    "record=5": lambda: asking.recorded(rank(), 5),
    "objects=5": lambda: asking.renumbered(rank(), 5),
    ": the strategy asks about it, and objects= has 2": lambda: nearer.run(
        asking.renumbered(rank(), [0, 1]), ORACLE
    ),
    "objects=6": lambda: nearer.run(rank(), ORACLE, objects=6),
    "about=5": lambda: nearer.run(rank(), ORACLE, about=5),
    "journal=5": lambda: asking.Session(rank(), journal=5),
    "make=5": lambda: asking.accepts_uncertain(5),
    "memory=5": lambda: asking.remembered(rank(), 5),
    "memory=<nearer": lambda: asking.remembered(rank(), ORACLE),
    "among=['x']": lambda: asking.nearest_objects(0, 5, 2, among=["x"]),
    "objects=[[0], [1, 2]]": lambda: asking.renumbered(rank(), [[0], [1, 2]]),
    "triplets 7": lambda: nearer.adaptive(10, known=7),
    "belief=5": lambda: algorithms.choose_questions(T, 10, 3, belief=5),
    f"n_questions={10**40}": lambda: algorithms.choose_questions(T, 10, 10**40),
    # how much there may be
    f"n_objects={10**15}": lambda: datasets.make_ball(10**15, 2),
    f"dimension={10**15}": lambda: datasets.make_cube(2, 10**15),
    "n_centres=-1": lambda: datasets.make_mixture(10, 2, n_centres=-1),
    f"k={10**15}": lambda: nearer.fit(T, n_components=1, random_state=0).draws(10**15),
    f"n_init={10**15}": lambda: nearer.SOE(n_init=10**15).fit(T),
    f"n_objects={10**20}": lambda: expected_cost(10**20, 2),
    "answers=5": lambda: nearer.PricedAnswers(5),
    "by=5": lambda: nearer.PricedAnswers([True], by=5),
    "by names 2 judges of 1": lambda: nearer.PricedAnswers([True], by=["a", "b"]),
    "kind='x'": lambda: nearer.Task("x"),
    # fits
    "loss=5": lambda: positions(loss=5),
    "the gradient of loss.sums of shape (3,)": lambda: positions(loss=Says(1.0, np.zeros(3))),
    "the sum that loss.sums returned=nan": lambda: positions(loss=Says(NAN, np.zeros((12, 2)))),
    "start must be numbers": lambda: positions(start="x"),
    "start of shape (1, 1)": lambda: positions(start=[[1.0]]),
    "ridge='x'": lambda: positions(ridge="x"),
    "max_iter='x'": lambda: positions(max_iter="x"),
    "tol='x'": lambda: positions(tol="x"),
    "rng=5": lambda: positions(rng=5),
    "callback=5": lambda: positions(callback=5),
    "init must be numbers": lambda: nearer.STE(init={}).fit(T),
    "choose=3": lambda: nearer.Task("near", 3, 3),
    # oracles, records
    "questions=5": lambda: ORACLE(5),
    "questions=[[0, 1, nan]]": lambda: ORACLE([[0, 1, NAN]]),
    "questions=[[0, 1]]": lambda: ORACLE([[0, 1]]),
    "questions=6": lambda: nearer.RecordedOracle(T)(6),
    "questions='x'": lambda: nearer.RecordedOracle(T).knows("x"),
    "questions=[[0, 1, 'x']]": lambda: asking.Session(rank()).tell([[0, 1, "x"]], [True]),
    "questions=7": lambda: asking.Record().add(7, 7),
    "triplets 'x'": lambda: asking.Memory("x"),
    "people=5": lambda: asking.CrowdOracle(X, 5, scale=1),
    "reliability=[]": lambda: asking.Person(reliability=[]),
    "people=['x']": lambda: asking.CrowdOracle(X, ["x"], scale=1),
    "metric=5": lambda: nearer.PointOracle(X, metric=5),
    "metric=array(": lambda: nearer.PointOracle(X, metric=np.eye(12)),
    # metrics
    "metric=None": lambda: metrics.mean_kendall_tau(X, X, metric=None),
    "right of shape": lambda: metrics.share_interval_over_people([1, 2], [1]),
    "right must be from 0 to asked": lambda: metrics.share_interval_over_people([5, 5], [1, 1]),
    "right must be finite": lambda: metrics.share_interval_over_people([NAN, 1], [1, 1]),
    "points of shape (3, 5)": lambda: metrics.procrustes(X, X).move(np.ones((3, 5))),
    "triplets 6": lambda: metrics.measure_agreement(6, None),
    "people of shape ()": lambda: metrics.measure_agreement(T, 5),
    "people of shape (1,)": lambda: metrics.measure_agreement(T, ["a"]),
    "weights of shape ()": lambda: metrics.measure_agreement(T, None, 5),
    "weights must be finite": lambda: metrics.measure_agreement(T, None, [NAN] * 5),
    # files and pictures
    "labels=5": lambda: nearer.read_triplets(T, labels=5),
    "labels=6": lambda: nearer.write_triplets("t.csv", T, labels=6),
    "trials=5": lambda: nearer.write_trials("t.json", 5, form="psiz"),
    "trials=6": lambda: nearer.Triplets(6, 6),
    "trials=7": lambda: nearer.Triplets.of(7),
    "report=5": lambda: nearer.Triplets(nearer.Trials.from_triplets(T), 5),
    "arguments: cannot be read as trials": lambda: nearer.Trials.from_screens(5, [True]),
    "cannot be read as trials ('int'": lambda: nearer.Trials.joined(5),
    "name=[]": lambda: datasets.load_human([]),
    "names[0]='a": lambda: nearer.fit([[HALF, "b", "c"]]),
    "objects[0]='a": lambda: nearer.embed(ORACLE, [HALF, "b", "c"]),
    "objects[1]=PosixPath('a": lambda: nearer.embed(ORACLE, ["b", Path("a\udcff"), "c"]),
    "5: is no path": lambda: datasets.load_points(5),
    "comparison=5": lambda: plotting.plot_comparison(5),
    "basis=5": lambda: plotting.plot_basis(5, X),
    "cities=5": lambda: plotting.plot_world(X, 5),
    "title=5": lambda: plotting.plot_positions(X, title=5),
    "title=6": lambda: plotting.explore_positions(X, title=6),
    "[0.0]: is none of the 12 objects": lambda: nearer.fit(T, n_objects=12).nearest([0.0]),
    "estimate=5": lambda: plotting.plot_dimension(5),
    "names of 12 people": lambda: plotting.plot_people(X, ["a"]),
    "drawn=5": lambda: plotting.as_png(5),
    "picture_size=nan": lambda: plotting.plot_positions(X, picture_size=NAN),
    "picture_size=-1": lambda: plotting.explore_positions(X, picture_size=-1),
    "positions of shape (0, 1)": lambda: plotting.plot_positions([]),
}


ARRAY = np.array([1, 2])
BASIS = nearer.run(nearer.choose_basis(12, random_state=0), ORACLE)
FIT = nearer.fit(T, n_components=1, n_objects=12, random_state=0)
SCREENS = {"query": [0], "shown": [[1, 2, 3]], "chosen": [[3]]}
FLAGS = {
    "keep_triplets": [
        lambda on: nearer.embed(ORACLE, 12, keep_triplets=on, budget=5, progress=False),
        lambda on: nearer.run(nearer.adaptive(12, keep_triplets=on, budget=5), ORACLE),
        lambda on: nearer.run(algorithms.place_objects(FIT, [12], keep_triplets=on), ORACLE),
    ],
    "rank_start": [lambda on: nearer.run(nearer.choose_basis(12, rank_start=on), ORACLE)],
    "ordered": [lambda on: nearer.run(asking.nearest_objects(0, 12, 3, ordered=on), ORACLE)],
    "keep": [lambda on: asking.Record(keep=on)],
    "grades": [lambda on: chat(grades=on)],
    "may_be_exact": [lambda on: fitting.Belief(12, may_be_exact=on)],
    "every_fold": [lambda on: fitting.Belief(12, every_fold=on)],
    "interactive": [lambda on: FIT.plot(interactive=on)],
    "people": [lambda on: FIT.plot(people=on)],
    "ranked": [
        lambda on: nearer.Task(ranked=on),
        lambda on: nearer.Trials.near(**SCREENS, ranked=on),
    ],
    "drop_bad_rows": [lambda on: nearer.read_triplets("t.csv", drop_bad_rows=on)],
    "header": [lambda on: nearer.read_triplets("t.csv", header=on)],
    "progress": [lambda on: nearer.embed(ORACLE, 12, progress=on)],
}


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [ARRAY, ARRAY > 1, "no", [], 2.0, HALF], ids=str)
def test_what_is_no_flag_is_one_message(name, value):
    for call in FLAGS[name]:
        with pytest.raises(InvalidInput, match=rf"^{name}=.*: must be "):
            call(value)


MISUSES |= {
    # arrays where a number or a word is expected, and rows of different lengths
    "noise=array([1, 2])": lambda: nearer.run(nearer.adaptive(12, noise=ARRAY), ORACLE),
    "n_components=array([1, 2])": lambda: nearer.fit(T, n_components=ARRAY),
    "picture_size=array([1, 2])": lambda: plotting.plot_positions(X, picture_size=ARRAY),
    "picture_size=0": lambda: plotting.explore_positions(X, picture_size=0),
    "options=array([1, 2])": lambda: chat(options=ARRAY),
    "metric=array([1, 2])": lambda: nearer.OrdinalBasis(metric=ARRAY).fit(X),
    "triplets [[1, 2], [3]]": lambda: nearer.fit([[1, 2], [3]]),
    "people of shape (): ": lambda: nearer.fit(T, people=[[1, 2], [3]]),
    "groups of shape ()": lambda: nearer.compare(T, groups=[[1, 2], [3]], people=list("abcde")),
    "1 names of 12 people": lambda: plotting.plot_people(X, [[1, 2], [3]]),
    "n_objects=2: must be a whole number, at least 12": lambda: plotting.plot_basis(BASIS, [1, 2]),
    # texts
    "title='a\\ud800'": lambda: plotting.plot_positions(X, title=HALF),
    "title='a\\x00b'": lambda: plotting.explore_positions(X, title="a\0b"),
    "key='a\\ud800'": lambda: chat(key=HALF),
    "title=7": lambda: FIT.report("r.html", title=7),
    "command=7": lambda: FIT.report("r.html", command=7),
    "source=5": lambda: FIT.report("r.html", source=5),
    "source=array([1, 2])": lambda: FIT.report("r.html", source=ARRAY),
    "is no path of a file": lambda: nearer.read_triplets("z" * 300 + ".csv"),
    " is no path of a file": lambda: nearer.embed(ORACLE, 12, journal="z" * 300),
    # what no memory holds
    "n_objects=1000000000: must be a whole number, from 3 to 2097152": lambda: nearer.embed(
        ORACLE, 10**9
    ),
    "n_objects=1000000001": lambda: nearer.run(nearer.adaptive(10**9 + 1), ORACLE),
    "n_objects=1000000002": lambda: nearer.run(nearer.choose_basis(10**9 + 2), ORACLE),
    "n_objects=1000000003": lambda: nearer.run(algorithms.crowd_kernel(10**9 + 3), ORACLE),
    "n_objects=1000000004": lambda: nearer.run(nearer.rank_objects(0, 10**9 + 4), ORACLE),
    "n_objects=1000000005": lambda: fitting.Belief(10**9 + 5),
    "n_objects=1000000006": lambda: nearer.estimate_dimension(T, 10**9 + 6),
    "n_objects=1000000007": lambda: datasets.make_ball(10**9 + 7, 2),
    "n_objects=1000000008": lambda: nearer.SOE(n_objects=10**9 + 8).fit(T),
    "budget=1000000000": lambda: nearer.run(algorithms.rand_soe(12, budget=10**9), ORACLE),
    f"budget={10**15}": lambda: nearer.run(algorithms.rand_soe(12, budget=10**15), ORACLE),
}


@pytest.mark.parametrize("message", MISUSES)
def test_a_misuse_is_one_message(message):
    with pytest.raises(NearerError) as refused:
        MISUSES[message]()
    said = str(refused.value)
    assert all(part in said for part in message.split(" … "))
    assert len(said) < 300


def test_a_screen_without_a_query_stays_without_one_when_it_is_renumbered():
    def asks():
        return (yield np.array([[-1, 0, 1, 2]]))

    seen = []

    def oracle(questions):
        seen.append(questions.tolist())
        return np.eye(3, dtype=bool)[:1]

    nearer.run(asking.renumbered(asks(), [7, 8, 9]), oracle)
    assert seen == [[[-1, 7, 8, 9]]]


def test_an_estimator_that_was_not_fitted_says_so():
    from sklearn.exceptions import NotFittedError

    for ask in (nearer.SOE().predict, nearer.OrdinalEmbedding().score):
        with pytest.raises(NotFittedError):
            ask(T)


def test_messages_can_be_printed_whatever_they_name(tmp_path):
    long = "z" * 100_000
    with pytest.raises(InvalidInput) as refused:
        nearer.Task.parse(long)
    assert len(str(refused.value)) < 1100
    with pytest.raises(InvalidInput, match=r"^a\\x1b\[2J\\udc80: ") as refused:
        nearer.read_triplets("a\x1b[2J\udc80")
    assert str(refused.value).encode().isascii()


def test_a_report_shows_characters_that_no_file_can_hold(tmp_path):
    for end in ("html", "md"):
        file = tmp_path / f"r.{end}"
        FIT.report(file, title=HALF, command="fit a\x1b.csv", source={"answers": 5})
        text = file.read_text("utf-8")
        assert "a\\ud800" in text or "a\\\\ud800" in text
        assert "\x1b" not in text
