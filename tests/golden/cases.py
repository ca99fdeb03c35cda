"""The calls whose results are stored in the JSON files of this folder, one function a call.

Each takes an empty folder to work in and returns plain values. Random seeds are fixed everywhere.
What a processor's rounding moves is recorded with a tolerance (`about`): positions of exact answers
are any that satisfy them, and a strategy that chooses questions by a fit asks others after its
first round. What holds for every processor is recorded as it is.
"""

import csv
import hashlib
import io
import json
import warnings
from importlib import import_module

import numpy as np
from scipy.spatial.distance import pdist

import nearer

CASES = {}  # "file/name" -> function
# A name that leaves the package's own level is looked for one level down.
ROOMS = ("nearer", "nearer.asking", "nearer.paper_methods", "nearer.algorithms", "nearer.triplets")


def case(file):
    def keep(function):
        CASES[f"{file}/{function.__name__}"] = function
        return function

    return keep


def get(name):
    """A public name, wherever it lives now."""
    for room in ROOMS:
        try:
            return getattr(import_module(room), name)
        except (ImportError, AttributeError):
            continue
    raise AttributeError(f"{name} is in none of {', '.join(ROOMS)}")


def strategy(name):
    """The function that makes a strategy; noisy answers once had one of their own."""
    try:
        return get(name)
    except AttributeError:
        return get({"informative": "adaptive"}[name])


# ---------------------------------------------------------------------------------- plain values


def floats(values, digits=6):
    """Numbers with so many significant digits."""
    return [float(f"{v:.{digits}g}") for v in np.ravel(np.asarray(values, dtype=float))]


def about(value, within):
    """A number or a list of numbers that may differ from what is recorded by this much."""
    rounded = floats(value, 3) if np.ndim(value) else floats(value, 4)[0]
    return {"is": rounded, "within": floats(within, 2)[0]}


def count(n, share=0.3):
    """How many questions a strategy asked that stops when a fit says so: by whole rounds."""
    return about(n, share * n)


def outline(positions, within=0.05):
    """Positions that rounding moves: distances as shares of their mean."""
    distances = pdist(np.asarray(positions))
    some = np.linspace(0, len(distances) - 1, 8).astype(int)
    return {
        "shape": list(np.shape(positions)),
        "distances": about(distances[some] / distances.mean(), within),
        "deviation": about(distances.std() / distances.mean(), within),
    }


def shape_of(positions):
    """Positions up to rotation, reflection and translation: their distances, in a few numbers."""
    distances = pdist(np.asarray(positions))
    some = np.linspace(0, len(distances) - 1, 8).astype(int)
    return {
        "shape": list(np.shape(positions)),
        "distances": floats(distances[some], 5),
        "mean_distance": floats(distances.mean(), 5)[0],
        "deviation": floats(distances.std(), 5)[0],
    }


def rows(array):
    """Whole numbers: the first three rows, and a digest of all."""
    array = np.ascontiguousarray(array, dtype=np.int64)
    digest = hashlib.sha256(array.tobytes()).hexdigest()[:12]
    return {"shape": list(array.shape), "first": array[:3].tolist(), "digest": digest}


def text(content, lines=4):
    """A text: how long it is, its first lines, and a digest."""
    content = content.replace("\r\n", "\n")
    return {
        "lines": content.count("\n"),
        "first": content.split("\n")[:lines],
        "digest": hashlib.sha256(content.encode()).hexdigest()[:12],
    }


def embedding(e, *, answers=True):
    result = {
        "dimension": e.dimension,
        "n_comparisons": e.n_comparisons,
        "n_rounds": e.n_rounds,
        "determined": e.determined,
        "positions": shape_of(e.positions),
    }
    if answers:
        result["triplets"] = rows(e.triplets)
    if e.held_out is not None:
        held = e.held_out
        result["held_out"] = floats([held.low, held.accuracy, held.high])
    if e.error_rate is not None:
        result["error_rate"] = floats(e.error_rate)[0]
    if e.covariances is not None:
        result["covariance_traces"] = floats(np.trace(e.covariances, axis1=1, axis2=2)[:4], 4)
    if e.people is not None:
        result["people"] = [str(p) for p in e.people["id"]][:4]
        result["flags"] = [str(p) for p in e.people["flag"]][:4]
    return result


def satisfying(e):
    """A fit of exact answers: of all positions that satisfy them, those that rounding leads to."""
    result = embedding(e) | {"positions": outline(e.positions)}
    result.pop("covariance_traces", None)
    if e.held_out is not None:
        result["held_out"] = about(e.held_out.accuracy, 0.01)
    return result


def chosen(e, truth, *, budget=None, within=0.02):
    """A strategy that chooses questions by its fit: its first round, and how good its result is."""
    n = len(truth)
    return {
        "dimension": e.dimension,
        "n_comparisons": e.n_comparisons if budget else count(e.n_comparisons),
        "as_many_triplets": len(e.triplets) == e.n_comparisons,
        "history": [phase.name for phase in e.history],
        "first_round": rows(e.triplets[: 20 if budget else n]),
        "tau": about(nearer.metrics.mean_kendall_tau(truth, e.positions), within),
        "held_out": about(e.held_out.accuracy, 2 * within),
        "error_rate": about(e.error_rate, 2 * within),
        "covariances": list(e.covariances.shape),
    }


def points(n=24, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def random_triplets(n=24, m=1200, d=2, seed=0, flip=0.0):
    """Random questions about random points, answered; a share of the answers is wrong."""
    rng = np.random.default_rng(seed + 100)
    questions = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :3]
    near = nearer.PointOracle(points(n, d, seed))(questions) ^ (rng.random(m) < flip)
    return np.where(near[:, None], questions, questions[:, [0, 2, 1]])


def grids(n=24, t=250, shown=6, choose=2, seed=0):
    """Screens of which the objects nearest to a query are chosen."""
    rng, X = np.random.default_rng(seed), points(n, 2, seed)
    all_objects = rng.permuted(np.tile(np.arange(n), (t, 1)), axis=1)[:, : shown + 1]
    query, screens = all_objects[:, 0], all_objects[:, 1:]
    far = np.linalg.norm(X[screens] - X[query][:, None], axis=2) + rng.gumbel(0, 0.1, screens.shape)
    chosen = np.take_along_axis(screens, np.argsort(far, axis=1)[:, :choose], axis=1)
    return nearer.Trials.near(query, screens, chosen)


# ---------------------------------------------------------------------------------- fit


@case("library")
def fit_exact(folder):
    return satisfying(nearer.fit(random_triplets(), bootstrap=4, random_state=0))


@case("library")
def fit_noisy(folder):
    return embedding(nearer.fit(random_triplets(m=1500, flip=0.1), random_state=0))


@case("library")
def fit_csv_with_people(folder):
    triplets = random_triplets(m=1600, flip=0.15)
    lines = [f"o{h},o{a},o{b},p{i % 6}" for i, (h, a, b) in enumerate(triplets)]
    (folder / "a.csv").write_text("head,winner,loser,person\n" + "\n".join(lines) + "\n")
    e = nearer.fit(folder / "a.csv", n_components=2, random_state=0)
    return embedding(e) | {"names": [str(name) for name in e.names][:5]}


@case("library")
def fit_people_who_differ_in_reliability(folder):
    good, guesses = random_triplets(m=1200, flip=0.05), random_triplets(m=300, flip=0.5)
    who = np.r_[np.arange(1200) % 4, np.full(300, 4)]
    e = nearer.fit(np.concatenate([good, guesses]), people=who, n_components=2, random_state=0)
    return embedding(e)


@case("library")
def fit_weights(folder):
    weights = np.random.default_rng(3).integers(0, 3, 1200)
    triplets = random_triplets(flip=0.1)
    return embedding(nearer.fit(triplets, weights=weights, n_components=2, random_state=0))


@case("library")
def fit_odd_one_out(folder):
    rng, X = np.random.default_rng(5), points()
    shown = rng.permuted(np.tile(np.arange(24), (900, 1)), axis=1)[:, :3]
    far = np.linalg.norm(X[shown][:, :, None] - X[shown][:, None], axis=3).sum(axis=2)
    odd = shown[np.arange(900), (far + rng.gumbel(0, 0.2, far.shape)).argmax(axis=1)]
    trials = nearer.Trials.odd_one_out(shown, odd)
    return embedding(nearer.fit(trials, n_components=2, random_state=0), answers=False)


@case("library")
def fit_screens(folder):
    return embedding(nearer.fit(grids(), n_components=2, random_state=0), answers=False)


@case("library")
def fit_ste(folder):
    embedding = nearer.fit(
        random_triplets(), method="ste", n_components=2, bootstrap=0, random_state=0
    )
    return satisfying(embedding)


# ---------------------------------------------------------------------------------- estimators


def estimator(name):
    model = getattr(nearer, name)(n_components=2, random_state=0, n_objects=24)
    model.fit(random_triplets())
    return {
        "positions": outline(model.embedding_),
        "stress": floats(model.stress_)[0],
        "score": floats(model.score(random_triplets(seed=0, m=300)))[0],
        "predict": np.asarray(model.predict(random_triplets(m=12))).astype(int).tolist(),
    }


@case("library")
def soe(folder):
    return estimator("SOE")


@case("library")
def ckl(folder):
    return estimator("CKL")


@case("library")
def gnmds(folder):
    return estimator("GNMDS")


@case("library")
def ste(folder):
    return estimator("STE")


@case("library")
def tste(folder):
    return estimator("TSTE")


@case("library")
def ordinal_embedding(folder):
    model = get("OrdinalEmbedding")(2, random_state=0).fit(random_triplets(flip=0.1))
    return shape_of(model.embedding_)


def neighbours(n, k):
    X = points(n)
    far = np.linalg.norm(X[:, None] - X[None], axis=2)
    return np.argsort(far, axis=1)[:, 1 : k + 1]


@case("library")
def loe(folder):
    return shape_of(nearer.LOE(2, random_state=0).fit(neighbours(40, 5)).embedding_)


@case("library")
def knn_graph(folder):
    return shape_of(nearer.KNNGraphEmbedding(2).fit(neighbours(60, 12)).embedding_)


@case("library")
def ordinal_basis(folder):
    model = nearer.OrdinalBasis(random_state=0).fit(points(80))
    return {
        "dimension": model.dimension_,
        "n_comparisons": model.n_comparisons_,
        "n_rounds": model.n_rounds_,
        "positions": shape_of(model.embedding_),
    }


# ---------------------------------------------------------------------------------- the paper's


def basis_of(**options):
    basis = nearer.run(get("choose_basis")(80, random_state=0, **options), oracle(80))
    return {
        "dimension": basis.dimension,
        "endpoints": [[int(e) for e in axis.endpoints] for axis in basis.axes],
        "n_comparisons": basis.n_comparisons,
        "n_rounds": basis.n_rounds,
        "heads": sorted(int(h) for h in basis.rankings),
        "triplets": rows(basis.triplets),
        "coordinates": shape_of(basis.coordinates()),
    }


def oracle(n=40, d=2):
    return nearer.PointOracle(points(n, d))


@case("library")
def choose_basis(folder):
    return basis_of()


@case("library")
def choose_basis_farthest_rank(folder):
    return basis_of(endpoints="farthest-rank", order="fewest-rounds")


@case("library")
def locate_objects(folder):
    basis = nearer.run(get("choose_basis")(60, random_state=0), oracle(60))
    return {
        search: shape_of(nearer.run(get("locate_objects")(basis, search=search), oracle(60)))
        for search in ("linear", "binary")
    }


@case("library")
def rank_objects(folder):
    return {
        order: rows(
            nearer.run(get("rank_objects")(7, 60, order=order, random_state=0), oracle(60))[None]
        )
        for order in ("fewest-comparisons", "fewest-rounds")
    }


@case("library")
def select_objects(folder):
    nearest = nearer.run(get("nearest_objects")(3, 60, 5, ordered=True, random_state=0), oracle(60))
    farthest = nearer.run(get("farthest_object")(3, 60), oracle(60))
    return {"nearest": [int(o) for o in nearest], "farthest": int(farthest)}


@case("library")
def pipelines(folder):
    asked = {
        "basis+soe": get("basis_soe")(40, random_state=0),
        "extra+soe": get("extra_soe")(40, random_state=0),
        "rand+soe": get("rand_soe")(40, budget=1500, n_components=2, random_state=0),
        "paper": get("paper_protocol")(40, n_starts=2, random_state=0),
    }
    results = {name: nearer.run(made, oracle()) for name, made in asked.items()}
    result = {name: satisfying(each) for name, each in results.items()}
    # The extra questions are chosen by a fit; those of the basis before them are not.
    basis = results["basis+soe"].n_comparisons
    result["extra+soe"]["n_comparisons"] = count(results["extra+soe"].n_comparisons, 0.02)
    result["extra+soe"]["triplets"] = rows(results["extra+soe"].triplets[:basis])
    return result


@case("library")
def crowd_kernel(folder):
    made = get("crowd_kernel")(24, budget=400, n_components=2, random_state=0)
    return satisfying(nearer.run(made, oracle(24)))


# ---------------------------------------------------------------------------------- results


@case("library")
def estimate_dimension(folder):
    exact = nearer.estimate_dimension(random_triplets(m=2500, d=3), random_state=0)
    noisy = nearer.estimate_dimension(random_triplets(m=2500, flip=0.1), random_state=0)
    return {
        kind: {
            "dimension": result.dimension,
            "method": result.method,
            "determined": result.determined,
            "range": [result.dimension_low, result.dimension_high],
        }
        for kind, result in {"exact": exact, "noisy": noisy}.items()
    }


@case("library")
def compare_and_align(folder):
    X = points(20)
    Y = 2 * X[:, ::-1] + np.random.default_rng(2).normal(0, 0.1, X.shape)
    Y[3] += 3
    result, laid = nearer.compare(X, Y, random_state=0), nearer.align(X, 3 - 2 * Y, X[:15])
    return {
        "correlation": floats(result.correlation),
        "p_value": floats(result.p_value),
        "disparity": floats(result.disparity),
        "displacement": floats(result.displacement[:6]),
        "aligned": floats(laid.mean[:3]),
        "spread": floats(laid.spread[:5]),
    }


@case("library")
def draws_save_and_load(folder):
    e = nearer.fit(random_triplets(flip=0.1), n_components=2, random_state=0)
    e.save(folder / "map.nearer.npz")
    back = nearer.load(folder / "map.nearer.npz")
    names = [int(v) if isinstance(v, int | np.integer) else str(v) for v in e.nearest(3, 4)]
    return {
        "same_after_loading": bool(np.array_equal(e.positions, back.positions)),
        "loaded": embedding(back),
        "draws": shape_of(e.draws(3, random_state=0)[2]),
        "probabilities": floats(e.predict_proba([[0, 1, 2], [3, 4, 5]]), 5),
        "predict": np.asarray(e.predict([[0, 1, 2], [3, 4, 5]])).astype(int).tolist(),
        "nearest": names,
        "distances": floats(e.distances()[:4], 5),
        "frame": [str(column) for column in e.to_frame().columns],
    }


@case("embed")
def place(folder):
    X = points(70)
    embedding = nearer.embed(nearer.PointOracle(X[:60]), 60, random_state=0, progress=False)
    placed = embedding.place(nearer.PointOracle(X), np.arange(60, 70))
    return {
        "n_comparisons": count(placed.n_comparisons),
        "objects": placed.objects.tolist(),
        "one_new_object_a_question": bool(((placed.triplets >= 60).sum(axis=1) == 1).all()),
        "positions": outline(np.concatenate([embedding.positions[:10], placed.positions]), 0.1),
    }


@case("library")
def metrics(folder):
    X, Y = points(), points() + np.random.default_rng(1).normal(0, 0.2, (24, 2))
    return {
        "tau": floats(nearer.metrics.mean_kendall_tau(X, Y)),
        "precision": floats(nearer.metrics.knn_precision(X, Y)),
        "rmse": floats(nearer.metrics.distance_rmse(X, Y)),
        "accuracy": floats(nearer.metrics.triplet_accuracy(random_triplets(), Y)),
        "interval": floats(nearer.metrics.share_interval(0.75, 40)),
    }


# ---------------------------------------------------------------------------------- files


@case("library")
def read_triplets(folder):
    file = folder / "a.csv"
    file.write_text(
        "Center,Left,Right,Answer,worker_id,rt\nape,bee,cat,cat,p1,1200\nbee,ape,cat,ape,p1,800\n"
        "bee,ape,cat,cat,p2,900\ncat,cat,ape,cat,p2,700\ndog,ape,bee,,p2,600\ndog,ape,bee,bee,p2,1\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = nearer.read_triplets(file)
    people = sorted(set(answers.people.tolist()))
    return {
        "triplets": answers.triplets.tolist(),
        "labels": list(answers.labels),
        "persons": [people.index(person) for person in answers.people],
        "person_labels": people,
        "counts": [answers.report.rows, answers.report.triplets, answers.report.objects],
        "contradictions": answers.report.contradictions,
    }


@case("library")
def write_triplets(folder):
    labels = [f"thing {i}" for i in range(24)]
    get("write_triplets")(folder / "t.csv", random_triplets(m=40), labels=labels)
    back = nearer.read_triplets(folder / "t.csv", labels=labels)
    return {
        "file": text((folder / "t.csv").read_text()),
        "same": bool(np.array_equal(back.triplets, random_triplets(m=40))),
    }


@case("library")
def write_and_read_trials(folder):
    trials = grids(t=30)
    get("write_trials")(folder / "t.jsonl", trials)
    back = get("read_trials")(folder / "t.jsonl")
    return {
        "file": text((folder / "t.jsonl").read_text())["lines"],
        "query": rows(back.query[None]),
        "shown": rows(np.sort(back.shown, axis=1)),
        "chosen": rows(back.chosen.sum(axis=1)[None]),
        "triplets": rows(back.triplets()[0]),
    }


@case("library")
def datasets(folder):
    made = nearer.datasets
    cities = made.load_cities()
    return {
        name: floats(np.asarray(X)[:2])
        for name, X in {
            "cube": made.make_cube(30, 3, random_state=0),
            "ball": made.make_ball(30, 3, random_state=0),
            "gaussian": made.make_gaussian(30, 3, random_state=0),
            "sphere": made.make_sphere(30, 3, random_state=0),
            "mixture": made.make_mixture(30, 3, random_state=0),
            "3dgmm": made.load_points("3dgmm", random_state=0),
            "cities": made.load_points("cities"),
        }.items()
    } | {"names": [str(name) for name in cities.names[:3]], "n_cities": len(cities.names)}


# ---------------------------------------------------------------------------------- oracles


@case("library")
def oracles(folder):
    X, q = points(), random_triplets(m=12)
    people = [get("Person")(), get("Person")(reliability=0.5, lapse=0.2)]
    answers = {
        "points": nearer.PointOracle(X)(q),
        "cosine": nearer.PointOracle(X, metric="cosine")(q),
        "noisy": nearer.NoisyOracle(nearer.PointOracle(X), 0.3, random_state=0)(q),
        "fresh": nearer.NoisyOracle(nearer.PointOracle(X), 0.3, noise="fresh", random_state=0)(q),
        "psychometric": get("PsychometricOracle")(X, scale=0.5, random_state=0)(q),
        "crowd": get("CrowdOracle")(X, people, scale=0.5, random_state=0)(q),
        "recorded": get("RecordedOracle")(q)(q[:, [0, 2, 1]]),
    }
    return {name: "".join("01"[int(a)] for a in result) for name, result in answers.items()}


# ---------------------------------------------------------------------------------- embed


def embedded(n, d, *, budget=None, within=0.02, wrap=lambda exact: exact, **options):
    how = {"budget": budget, "random_state": 0, "progress": False} | options
    return chosen(
        nearer.embed(wrap(oracle(n, d)), n, **how), points(n, d), budget=budget, within=within
    )


@case("embed")
def embed_exact(folder):
    return embedded(60, 2)


@case("embed")
def embed_exact_three_dimensions(folder):
    return embedded(60, 3)


@case("embed")
def embed_line(folder):
    return embedded(40, 1)


@case("embed")
def embed_noisy(folder):
    def wrong(exact):
        return nearer.NoisyOracle(exact, 0.1, noise="fresh", random_state=0)

    return embedded(30, 2, budget=1600, within=0.05, wrap=wrong)


@case("embed")
def embed_small_budget(folder):
    """Too few answers to say more than that they are too few."""
    embedding = nearer.embed(oracle(60), 60, budget=250, random_state=0, progress=False)
    return {
        "n_comparisons": embedding.n_comparisons,
        "n_rounds": embedding.n_rounds,
        "determined": embedding.determined,
        "first_round": rows(embedding.triplets[:20]),
    }


@case("embed")
def embed_names_and_unsure(folder):
    names, X = [f"thing {i}" for i in range(20)], points(20)
    at = dict(zip(names, X, strict=True))

    def answer(questions):
        far = [[np.linalg.norm(at[h] - at[o]) for o in (a, b)] for h, a, b in questions]
        return [None if abs(a - b) < 0.02 else bool(a < b) for a, b in far]

    embedding = nearer.embed(answer, names, budget=300, noise=0.1, random_state=0, progress=False)
    result = chosen(embedding, X, budget=300, within=0.05)
    return result | {"names": list(embedding.names)[:3]}


@case("embed")
def embed_with_a_journal(folder):
    asked = []

    def answer(questions):
        asked.append(len(questions))
        return oracle(30)(questions)

    how = {"random_state": 0, "progress": False, "journal": folder / "j.db"}
    first, paid = nearer.embed(answer, 30, **how), sum(asked)
    again = nearer.embed(answer, 30, **how)
    journal = get("load_journal")(folder / "j.db")
    return chosen(first, points(30)) | {
        "same_again": bool(np.array_equal(first.positions, again.positions)),
        "asked_again": sum(asked) - paid,
        "all_in_the_journal": len(journal.triplets) == first.n_comparisons,
    }


@case("embed")
def adaptive_within_a_budget(folder):
    made = nearer.adaptive(50, budget=500, n_components=2, random_state=0)
    return chosen(nearer.run(made, oracle(50)), points(50), budget=500, within=0.05)


@case("embed")
def informative_screens(folder):
    made = strategy("informative")(20, budget=200, n_components=2, task="2 of 5", random_state=0)
    result = nearer.run(
        made, get("PsychometricOracle")(points(20), scale=0.2, choose=2, random_state=0)
    )
    tau = nearer.metrics.mean_kendall_tau(points(20), result.positions)
    return {
        "dimension": result.dimension,
        "n_comparisons": result.n_comparisons,
        "n_rounds": result.n_rounds,
        "first_round": rows(result.details["trials"].questions[:5]),
        "tau": about(tau, 0.05),
        "held_out": about(result.held_out.accuracy, 0.1),
    }


@case("embed")
def choose_questions(folder):
    chosen = get("choose_questions")(random_triplets(m=300), 24, 10, random_state=0)
    return rows(chosen)


@case("embed")
def session(folder):
    made = get("Session")(get("rank_objects")(0, 12, random_state=0))
    while not made.done:
        questions = made.open[-1:]
        made.tell(questions, oracle(12)(questions))
    return {"result": [int(r) for r in made.result], "triplets": rows(made.triplets)}


# ---------------------------------------------------------------------------------- commands


def command(*arguments):
    from click.testing import CliRunner

    from nearer.cli import main

    done = CliRunner().invoke(main, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


VARYING = {"seconds", "out", "version", "command", "source", "answers_per_hour"}
VARYING |= {"median_elapsed_ms", "pseudonym"}


def plain(summary):
    """A command's JSON without what differs from run to run; numbers to six digits."""
    if isinstance(summary, dict):
        seen = {k: v for k, v in summary.items() if k not in VARYING}
        return {k: plain(v) for k, v in seen.items() if not is_a_date(v)}
    if isinstance(summary, list):
        return [plain(v) for v in summary]
    return floats(summary)[0] if isinstance(summary, float) else summary


def is_a_date(value):
    return isinstance(value, float) and value > 1e9


def table(path, shape=shape_of):
    """A CSV: its columns, its length, its triplets, the distances between its positions."""
    content = list(csv.DictReader(io.StringIO(path.read_text())))
    columns = [c for c in content[0] if c[0] == "x" and c[1:].isdigit()]
    result = {"columns": list(content[0]), "rows": len(content)}
    if columns:
        result["positions"] = shape([[float(r[c]) for c in columns] for r in content])
    parts = ("head", "winner", "loser")
    if set(parts) <= set(content[0]):
        result["triplets"] = [" ".join(row[part] for part in parts) for row in content[:5]]
    return result


def files(folder, shape=shape_of):
    made = {path.name: table(path, shape) for path in sorted(folder.glob("*.csv"))}
    return {"files": sorted(path.name for path in folder.iterdir()), **made}


@case("commands")
def command_fit(folder):
    triplets = random_triplets(m=1600, flip=0.1)
    lines = [f"{h},{a},{b},p{i % 5}" for i, (h, a, b) in enumerate(triplets)]
    (folder / "t.csv").write_text("head,winner,loser,person\n" + "\n".join(lines) + "\n")
    out = folder / "out"
    said = command("fit", folder / "t.csv", "--seed", 0, "--dim", 2, "--out", out, "--json")
    return {"json": plain(json.loads(said)), **files(out)}


@case("embed")
def command_embed(folder):
    np.save(folder / "x.npy", points(50))
    said = command("embed", folder / "x.npy", "--seed", 0, "--out", folder / "out", "--json")
    summary, made = plain(json.loads(said)), files(folder / "out", lambda X: outline(X, 0.1))
    rounding = {"tau": 0.02, "knn_precision": 0.05, "rmse": 0.03}
    summary |= {name: about(summary[name], within) for name, within in rounding.items()}
    same = made["triplets.csv"].pop("rows") == summary["n_comparisons"]
    summary["n_comparisons"] = count(summary["n_comparisons"])
    summary["n_rounds"] = count(summary["n_rounds"])
    return {"json": summary, "as_many_triplets": same, **made}


@case("commands")
def command_embed_basis(folder):
    np.save(folder / "x.npy", points(50))
    options = ("--method", "basis", "--seed", 0, "--out", folder / "out")
    said = command("embed", folder / "x.npy", *options, "--json")
    return {"json": plain(json.loads(said)), **files(folder / "out")}


@case("commands")
def command_plan(folder):
    size = ("--objects", 12, "--dim", 2, "--noise", 0.15, "--repeats", 1, "--seed", 0, "--json")
    answers = plain(json.loads(command("plan", *size, "--answers", 400)))
    answers["needed"] = sorted(answers["needed"])
    tasks = ("--tasks", "1 of 2,2 of 4")
    hours = plain(json.loads(command("plan", *size, "--hours", 0.3, *tasks)))
    # One simulated study chooses few questions by hardly any answers, so that rounding shows.
    for plan in (answers, hours):
        for name, within in {"accuracy": 0.1, "agreement": 0.1, "tau": 0.2}.items():
            if name in plan:
                plan[name] = about(plan[name], within)
    compared = sorted([hours.pop("best"), *hours.pop("level_with_it")])
    return {"answers": answers, "hours": hours | {"compared": compared}}


@case("commands")
def command_data(folder):
    names = [line.split()[0] for line in command("data").splitlines() if line[:1].isalnum()]
    return {"names": sorted(names)}


# ---------------------------------------------------------------------------------- a study


@case("study")
def served_study(folder):
    """Three people answer over HTTP; the study is then read out by its commands."""
    from fastapi.testclient import TestClient

    from nearer.study.app import create_app
    from nearer.study.web import Study

    (folder / "words.csv").write_text("label\n" + "\n".join(f"word {k}" for k in range(9)) + "\n")
    settings = ("method=random", "questions=30", "practice=1", "catch_share=0.1")
    study = folder / "s.db"
    items = ("--items", folder / "words.csv")
    command("study", "new", study, *items, *(x for s in settings for x in ("--set", s)))

    real = np.random.default_rng
    np.random.default_rng = lambda seed=0: real(seed)  # a study is served with no fixed seed
    try:
        served = Study(study, work=False)
    finally:
        np.random.default_rng = real
    client = TestClient(create_app(served), follow_redirects=False)
    X = points(9)
    with client:
        researcher = {"name": "ada", "password": "correct horse"}
        assert client.post(f"/setup/{served.setup}", data=researcher).status_code == 303
        assert client.post("/login", data=researcher).status_code == 303
        page = client.get("/dashboard").text
        token = page.split('name="form-token" content="')[1].split('"')[0]
        allowed = {"x-form-token": token}
        started = client.post("/api/researcher/state", json={"state": "running"}, headers=allowed)
        assert started.status_code == 200, started.text
        n_answers = [answer_all(client, X, person) for person in range(3)]
    return {"answers": n_answers} | read_out(study, folder)


def answer_all(client, X, person):
    """One person answers every question; how many there were, by purpose."""
    joined = client.post("/api/join", json={"consent_version": "1", "parameters": {}})
    headers = {"authorization": f"Bearer {joined.json()['token']}"}
    assert client.post("/api/ready", headers=headers).status_code == 200
    n = 0
    while trials := client.get("/api/me", headers=headers).json()["trials"]:
        trial = trials[0]
        texts = [thing["text"] for thing in (trial["head"], *trial["shown"])]
        head, left, right = (int(word.removeprefix("word ")) for word in texts)
        near = np.linalg.norm(X[head] - X[left]) < np.linalg.norm(X[head] - X[right])
        answer = {"lease": trial["lease"], "choice": "left" if near else "right"}
        body = {"answers": [answer | {"response_ms": 800 + n}]}
        assert client.post("/api/answers", json=body, headers=headers).status_code == 200
        n += 1
    return n


def read_out(study, folder):
    """What the commands say of a study."""
    exported = {}
    for kind in ("triplets", "answers", "salmon", "triplettools"):
        command("study", "export", study, "--format", kind, "--out", folder / f"{kind}.csv")
        exported[kind] = table(folder / f"{kind}.csv")
    fitted = command("study", "embed", study, "--dim", 2, "--out", folder / "map.csv", "--json")
    status = json.loads(command("study", "status", study, "--json"))
    summary = plain(json.loads(fitted))
    summary["expected_tau"] = about(summary["expected_tau"], 0.01)
    for person in status["participants"]:
        del person["false_times"]  # how long the machine took between questions decides that
    return {
        "status": plain(status),
        "exported": exported,
        "fitted": summary,
        "map": table(folder / "map.csv", outline),
    }
