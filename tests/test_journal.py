"""Journals: nothing paid for is lost or paid twice, the result is the uninterrupted one."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import nearer
from nearer.errors import InvalidInput, JournalError
from nearer.questions import answered, random_questions

X = np.random.default_rng(0).normal(size=(24, 2))
EXACT = nearer.PointOracle(X)
NAMES = [f"thing {i}" for i in range(24)]


class Stopped(Exception):
    """The oracle went away."""


class Counting:
    """Answers, counts what it was asked, and goes away after so many answers."""

    def __init__(self, oracle=EXACT, leave_after=None):
        self.oracle, self.left = oracle, leave_after
        self.asked = []

    def __call__(self, questions):
        if self.left is not None:
            self.left -= len(questions)
            if self.left < 0:
                raise Stopped
        self.asked.extend(map(tuple, np.asarray(questions).tolist()))
        return self.oracle(questions)


METHODS = {
    "adaptive": lambda **seed: nearer.adaptive(24, budget=300, **seed),
    "basis": lambda **seed: nearer.choose_basis(24, **seed),
    "basis_soe": lambda **seed: nearer.algorithms.basis_soe(24, **seed),
    "extra_soe": lambda **seed: nearer.algorithms.extra_soe(24, **seed),
    "rand_soe": lambda **seed: nearer.algorithms.rand_soe(24, budget=300, **seed),
    "crowd_kernel": lambda **seed: nearer.algorithms.crowd_kernel(24, budget=300, **seed),
    "informative": lambda **seed: nearer.adaptive(24, budget=200, n_components=2, **seed),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_goes_on_where_it_stopped(method, tmp_path):
    make = METHODS[method]
    journal = tmp_path / "answers.db"
    whole = Counting()
    wanted = nearer.run(make(random_state=3), whole)
    first, second = Counting(leave_after=len(whole.asked) // 2), Counting()
    with pytest.raises(Stopped):
        nearer.run(make(random_state=3), first, journal=journal, block_size=20)
    result = nearer.run(make(random_state=3), second, journal=journal, block_size=20)
    assert sorted(first.asked + second.asked) == sorted(whole.asked)
    assert second.asked
    np.testing.assert_array_equal(result.triplets, wanted.triplets)
    if hasattr(wanted, "positions"):
        np.testing.assert_array_equal(result.positions, wanted.positions)


@pytest.mark.parametrize("cut", [0, 1, 60])
def test_embed_goes_on_at_any_cut_with_a_seed_that_was_drawn(cut, tmp_path):
    journal = tmp_path / "answers.db"
    first, second = Counting(leave_after=cut), Counting()
    with pytest.raises(Stopped) as stopped:
        nearer.embed(first, 24, budget=200, journal=journal, block_size=1, progress=False)
    message = f"{len(first.asked)} answers are stored"
    assert not cut or message in stopped.value.__notes__[0]
    embedding = nearer.embed(second, 24, budget=200, journal=journal, progress=False)
    third = Counting()
    again = nearer.embed(third, 24, budget=200, journal=journal, progress=False)
    assert not third.asked
    assert len(first.asked) + len(second.asked) == embedding.n_comparisons
    np.testing.assert_array_equal(embedding.positions, again.positions)


def test_a_ranking_goes_on_with_a_seed_that_was_drawn(tmp_path):
    journal = tmp_path / "answers.db"
    first, second = Counting(leave_after=40), Counting()
    with pytest.raises(Stopped):
        nearer.run(nearer.rank_objects(3, 24), first, journal=journal, block_size=1)
    ranking = nearer.run(nearer.rank_objects(3, 24), second, journal=journal)
    assert len(first.asked) == 40
    assert not set(first.asked) & set(second.asked)
    np.testing.assert_array_equal(ranking, nearer.run(nearer.rank_objects(3, 24), Counting()))


def test_a_question_that_is_put_twice_on_purpose_is_two_answers(tmp_path):
    said = iter([True, False, True])

    @nearer.asking.accepts_uncertain
    def thrice():
        question = np.array([[0, 1, 2]])
        first = yield question
        second = yield question
        third = yield question
        return [bool(answers[0]) for answers in (first, second, third)]

    journal = tmp_path / "answers.db"
    wanted = nearer.run(thrice(), lambda questions: [next(said)], journal=journal)
    assert wanted == [True, False, True]
    assert nearer.run(thrice(), Counting(), journal=journal) == wanted
    assert len(nearer.load_journal(journal)) == 3


def test_dont_know_grades_and_screens_come_back_as_they_were(tmp_path):
    @nearer.asking.accepts_uncertain
    def mixed():
        first = yield np.array([[0, 1, 2], [0, 2, 3], [1, 2, 3], [2, 0, 3]])
        second = yield np.array([[0, 1, 2, 3], [-1, 0, 1, 2]])
        return first, second

    def oracle(questions):
        if questions.shape[1] == 3:
            return [True, None, 0.1 + 0.2, False]
        return [[True, False, False], None]

    journal = tmp_path / "answers.db"
    wanted = nearer.run(mixed(), oracle)
    for _ in range(2):
        result = nearer.run(mixed(), oracle, journal=journal)
        for a, b in zip(result, wanted, strict=True):
            np.testing.assert_array_equal(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
            np.testing.assert_array_equal(np.ma.filled(a, 0), np.ma.filled(b, 0))
            assert a.dtype == b.dtype


def test_every_answer_of_a_large_round_is_in_the_journal(tmp_path):
    questions = random_questions(24, 3000, np.random.default_rng(0))

    def all_at_once():
        return (yield questions)

    near = nearer.run(all_at_once(), EXACT, journal=tmp_path / "j.db")
    assert np.array_equal(nearer.load_journal(tmp_path / "j.db"), answered(questions, near))


def test_a_journal_is_read_as_answers_with_names_and_weights(tmp_path):
    journal = tmp_path / "answers.db"
    at = dict(zip(NAMES, X, strict=True))

    def judge(questions):
        near = [
            np.linalg.norm(at[h] - at[a]) < np.linalg.norm(at[h] - at[b]) for h, a, b in questions
        ]
        return [None if i == 0 else bool(x) for i, x in enumerate(near)]

    embedding = nearer.embed(judge, NAMES, noise=0.1, budget=240, journal=journal, progress=False)
    answers = nearer.load_journal(journal)
    assert answers.labels == tuple(NAMES)
    assert answers.weights.sum() == pytest.approx(240)
    assert (
        (answers.weights == 0.5).sum()
        == 2 * embedding.details["n_unsure"]
        == 2 * embedding.n_rounds
    )
    sure = {tuple(row) for row in np.asarray(answers)[answers.weights == 1].tolist()}
    assert sure == {tuple(row) for row in embedding.triplets.tolist()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_state": 1}, "seed was 0 and is 1"),
        ({"noise": 0.2}, 'noise was "auto" and is 0.2'),
    ],
)
def test_a_journal_of_another_run_is_refused_with_what_differs(change, message, tmp_path):
    journal = tmp_path / "answers.db"
    call = {"budget": 80, "random_state": 0, "progress": False, "journal": journal}
    nearer.embed(EXACT, 24, **call)
    oracle = Counting()
    with pytest.raises(InvalidInput, match=rf"another run: .*{message}"):
        nearer.embed(oracle, 24, **{**call, **change})
    assert not oracle.asked


@pytest.mark.parametrize("first", [80, 130])
def test_a_journal_goes_on_with_a_larger_budget_and_other_workers(first, tmp_path):
    journal = tmp_path / "answers.db"
    call = {"random_state": 0, "progress": False, "journal": journal}
    before = nearer.embed(EXACT, 24, budget=first, **call)
    oracle = Counting()
    longer = nearer.embed(oracle, 24, budget=250, workers=3, quality=1, **call)
    assert len(oracle.asked) == 250 - first
    assert longer.n_comparisons == 250
    np.testing.assert_array_equal(longer.triplets[:first], before.triplets)
    again = nearer.embed(Counting(leave_after=0), 24, budget=250, quality=1, **call)
    np.testing.assert_array_equal(again.positions, longer.positions)
    without = nearer.embed(EXACT, 24, quality=0.9, **call)
    np.testing.assert_array_equal(without.triplets[:first], before.triplets)


def test_screens_go_on_with_a_larger_budget(tmp_path):
    oracle = nearer.PointOracle(X, choose=2)

    def run(budget):
        strategy = nearer.adaptive(24, budget=budget, task="2 of 5", quality=1, random_state=0)
        return nearer.run(strategy, oracle, journal=tmp_path / "answers.db")

    before, longer = run(53), run(90)  # the last round of 53 is not full
    assert (before.n_comparisons, longer.n_comparisons) == (53, 90)


def test_another_budget_that_changes_the_questions_is_refused_and_said(tmp_path):
    journal = tmp_path / "answers.db"
    make = nearer.algorithms.crowd_kernel
    nearer.run(make(24, budget=300, random_state=0), EXACT, journal=journal)
    oracle = Counting()
    with pytest.raises(InvalidInput, match=r"another run: .*since budget was 300 and is 200"):
        nearer.run(make(24, budget=200, random_state=0), oracle, journal=journal)
    assert not oracle.asked


def test_a_question_that_was_another_is_refused_with_what_may_be_the_reason(tmp_path):
    def one(question):
        return (yield np.array([question]))

    journal = tmp_path / "answers.db"
    nearer.run(one([0, 1, 2]), EXACT, journal=journal)
    oracle = Counting()
    with pytest.raises(InvalidInput, match=r"was \[0, 1, 2\] and is \[0, 1, 3\]"):
        nearer.run(one([0, 1, 3]), oracle, journal=journal)
    assert not oracle.asked


def test_other_objects_and_another_version_are_another_run(tmp_path, monkeypatch):
    journal = tmp_path / "answers.db"
    call = {"budget": 80, "random_state": 0, "progress": False, "journal": journal}
    nearer.embed(EXACT, NAMES, **call)
    with pytest.raises(InvalidInput, match="objects was"):
        nearer.embed(EXACT, NAMES[::-1], **call)
    monkeypatch.setattr(nearer, "__version__", "99")
    with pytest.raises(InvalidInput, match=r'version was .* and is "99"'):
        nearer.embed(EXACT, NAMES, **call)


def test_a_strategy_that_is_not_repeatable_is_recognised_by_its_questions(tmp_path):
    def ask(*rows):
        return (yield np.array(rows))

    journal = tmp_path / "answers.db"
    nearer.run(ask([0, 1, 2], [0, 1, 3]), EXACT, journal=journal)
    with pytest.raises(InvalidInput, match=r"question 1 of round 0 was \[0, 1, 3\] and is"):
        nearer.run(ask([0, 1, 2], [0, 1, 4]), EXACT, journal=journal)
    with pytest.raises(InvalidInput, match="is nothing"):
        nearer.run(ask([0, 1, 2]), EXACT, journal=journal)


def test_a_generator_cannot_begin_again(tmp_path):
    with pytest.raises(InvalidInput, match="Generator: a journal must be able to begin again"):
        nearer.embed(EXACT, 24, random_state=np.random.default_rng(0), journal=tmp_path / "a.db")


def test_files_that_are_no_journals_are_named_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("these are my notes, and no database at all\n" * 50)
    before = text.read_bytes()
    with pytest.raises(InvalidInput, match=r"notes\.txt: is not a journal"):
        nearer.embed(EXACT, 24, journal=text, progress=False)
    assert text.read_bytes() == before
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(InvalidInput, match="not a journal but another SQLite file"):
        nearer.embed(EXACT, 24, journal=other, progress=False)
    with pytest.raises(InvalidInput, match="not a journal but another SQLite file"):
        nearer.load_journal(other)
    with pytest.raises(InvalidInput, match="no such journal"):
        nearer.load_journal(tmp_path / "none.db")
    with pytest.raises(InvalidInput, match="5: is no path"):
        nearer.load_journal(5)
    with pytest.raises(JournalError, match="the folder must exist"):
        nearer.embed(EXACT, 24, journal=tmp_path / "none" / "a.db", progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "other.db"]


def test_a_damaged_journal_is_one_message(tmp_path):
    journal = tmp_path / "answers.db"
    nearer.run(nearer.rank_objects(0, 24, random_state=0), EXACT, journal=journal)
    with sqlite3.connect(journal) as db:
        db.execute("UPDATE answers SET question = '[1,' WHERE row = 0")
    db.close()
    with pytest.raises(InvalidInput, match="cannot be read as a journal"):
        nearer.load_journal(journal)
    with pytest.raises(InvalidInput, match="cannot be read as a journal"):
        nearer.run(nearer.rank_objects(0, 24, random_state=0), EXACT, journal=journal)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE header SET value = '100000000000' WHERE key = 'n_objects'", "NEARER_MAX_BYTES"),
        ("UPDATE answers SET question = '[0, 1, 99]'", "an answer is about object 99 of 24"),
        ("UPDATE answers SET question = '{}'", "cannot be read as a journal"),
        ("UPDATE answers SET answer = '[]'", "cannot be read as a journal"),
        ("DROP TABLE calls", "cannot be read as a journal"),
        ("UPDATE header SET value = '[\"\"]' WHERE key = 'budgets'", "cannot be read as a journal"),
    ],
)
def test_a_journal_that_says_what_cannot_be_is_one_message(tmp_path, change, message):
    journal, run = tmp_path / "answers.db", {"journal": tmp_path / "answers.db", "random_state": 0}
    nearer.embed(EXACT, 24, budget=50, progress=False, **run)
    with sqlite3.connect(journal) as db:
        db.execute("DELETE FROM objects")
        db.execute(change)
    db.close()
    if "calls" not in change and "budgets" not in change:
        with pytest.raises(InvalidInput, match=message):
            nearer.load_journal(journal)
    else:
        with pytest.raises(InvalidInput, match=message):
            nearer.embed(EXACT, 24, budget=60, progress=False, **run)


def test_a_journal_with_a_second_name_is_refused(tmp_path):
    """After a kill the latest answers are in a log beside the first name alone."""
    journal, other = tmp_path / "answers.db", tmp_path / "other.db"
    nearer.run(nearer.rank_objects(0, 24, random_state=0), EXACT, journal=journal)
    other.hardlink_to(journal)
    for name in (journal, other):
        with pytest.raises(InvalidInput, match="has a second name, a hard link"):
            nearer.run(nearer.rank_objects(0, 24, random_state=0), EXACT, journal=name)
    other.unlink()
    assert len(nearer.load_journal(journal)) > 0


def test_two_runs_do_not_write_one_journal(tmp_path):
    """Nor does the one that is refused end the locks of the other: its log stays."""
    journal = tmp_path / "answers.db"
    read = [sys.executable, "-c", "import nearer, sys; nearer.load_journal(sys.argv[1])", journal]

    def meddling(questions):
        if (tmp_path / "answers.db-wal").exists():
            with pytest.raises(InvalidInput, match="another run is writing"):
                nearer.embed(EXACT, 24, random_state=0, journal=journal, progress=False)
            subprocess.run(read, check=True)
            assert (tmp_path / "answers.db-wal").exists()
            raise KeyboardInterrupt
        return EXACT(questions)

    with pytest.raises(KeyboardInterrupt):
        nearer.embed(meddling, 24, random_state=0, journal=journal, progress=False)


FULL = """
    import resource, signal, sys
    import numpy as np
    import nearer

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
    X = np.random.default_rng(0).normal(size=(24, 2))
    strategy = nearer.algorithms.rand_soe(24, budget=5000, random_state=0)
    try:
        nearer.run(strategy, nearer.PointOracle(X), journal=sys.argv[1], block_size=50)
    except nearer.errors.JournalError as error:
        print(error)
"""


def test_a_full_disk_is_one_message_and_what_was_written_stays(tmp_path):
    journal = tmp_path / "answers.db"
    script = [sys.executable, "-c", textwrap.dedent(FULL), str(journal)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert "answers.db: cannot be written" in done.stdout, done.stderr
    assert "earlier answers are safe" in done.stdout
    n_stored = len(nearer.load_journal(journal))
    assert 0 < n_stored < 5000
    oracle = Counting()
    nearer.run(nearer.algorithms.rand_soe(24, budget=5000, random_state=0), oracle, journal=journal)
    assert len(oracle.asked) == 5000 - n_stored


SLOW = """
    import sys, time
    import numpy as np
    import nearer

    X = np.random.default_rng(0).normal(size=(24, 2))
    exact = nearer.PointOracle(X)

    def oracle(questions):
        time.sleep(0.002)
        answers = exact(questions)
        with open(sys.argv[2], "a") as log:  # one line for each answer, as it is given
            log.write("".join(f"{h} {a} {b}\\n" for h, a, b in questions.tolist()))
        return answers

    embedding = nearer.embed(oracle, 24, budget=700, random_state=5, workers=4, journal=sys.argv[1],
                         progress=False)
    np.save(sys.argv[3], embedding.positions)
"""


@pytest.mark.slow
def test_killed_again_and_again_loses_at_most_what_is_in_flight(tmp_path):
    journal, log, out = (tmp_path / name for name in ("answers.db", "log.txt", "out.npy"))
    script = [sys.executable, "-c", textwrap.dedent(SLOW), str(journal), str(log), str(out)]
    kills = 0
    for kept_by_then in (40, 150, 300):
        process = subprocess.Popen(script, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if log.exists() and log.read_text().count("\n") >= kept_by_then:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.01)
        process.communicate()
    assert kills == 3
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = nearer.embed(EXACT, 24, budget=700, random_state=5, progress=False)
    np.testing.assert_array_equal(np.load(out), wanted.positions)
    answers = log.read_text().count("\n")
    assert wanted.n_comparisons <= answers <= wanted.n_comparisons + 4 * kills
    np.testing.assert_array_equal(
        np.sort(np.asarray(nearer.load_journal(journal)), axis=0), np.sort(wanted.triplets, axis=0)
    )


def test_what_was_spent_before_counts(tmp_path):
    journal = tmp_path / "answers.db"
    call = {"journal": journal, "block_size": 1, "cost": lambda block: 0.01 * len(block)}

    def make():
        return nearer.algorithms.rand_soe(24, budget=100, random_state=0)

    first = nearer.run(make(), EXACT, max_cost=0.3, **call)
    assert first.n_comparisons == 30
    oracle = Counting()
    assert nearer.run(make(), oracle, max_cost=0.3, **call).n_comparisons == 30
    assert not oracle.asked
    assert nearer.run(make(), oracle, max_cost=0.5, **call).n_comparisons == 50
    assert len(oracle.asked) == 20
    whole = nearer.run(make(), oracle, **call)
    np.testing.assert_array_equal(whole.positions, nearer.run(make(), EXACT).positions)
    assert len(oracle.asked) == 70


def test_the_oracle_that_says_too_little_is_named_and_nothing_is_lost(tmp_path):
    journal = tmp_path / "answers.db"
    calls = []

    def oracle(questions):
        calls.append(len(questions))
        answers = EXACT(questions)
        return answers[:-1] if len(calls) == 4 else answers

    def make():
        return nearer.algorithms.rand_soe(24, budget=100, random_state=0)

    with pytest.raises(nearer.errors.OracleError, match=r"shape \(9,\) for 10 questions"):
        nearer.run(make(), oracle, journal=journal, block_size=10)
    assert len(nearer.load_journal(journal)) == 30
    nearer.run(make(), oracle, journal=journal, block_size=10)
    assert sum(calls) == 110


def test_the_triplets_of_a_journal_are_those_of_the_run(tmp_path):
    journal = tmp_path / "answers.db"
    oracle = Counting()
    nearer.embed(oracle, 24, random_state=0, journal=journal, progress=False)
    asked = np.array(oracle.asked)
    np.testing.assert_array_equal(nearer.load_journal(journal), answered(asked, EXACT(asked)))


def test_the_command_keeps_a_journal(tmp_path):
    from click.testing import CliRunner

    from nearer.cli import main

    np.save(tmp_path / "x.npy", X)
    command = ["embed", str(tmp_path / "x.npy"), "--method", "basis", "--out", str(tmp_path / "o")]
    command += ["--journal", str(tmp_path / "answers.db"), "--json"]
    first, second = (CliRunner().invoke(main, command) for _ in range(2))
    assert first.exit_code == second.exit_code == 0, first.output
    outputs, again = (json.loads(done.stdout) for done in (first, second))
    assert outputs["seed"] == again["seed"]
    assert outputs["tau"] == again["tau"]
    assert len(nearer.load_journal(tmp_path / "answers.db")) == outputs["n_comparisons"]
    np.save(tmp_path / "x.npy", X + 1)
    other = CliRunner().invoke(main, command)
    assert other.exit_code == 2
    assert "another run: data was" in other.output


def test_a_journal_and_its_log_are_read_by_their_owner_alone(tmp_path):
    seen = []

    def oracle(questions):
        seen.append({f.name: f.stat().st_mode & 0o777 for f in tmp_path.glob("answers.db*")})
        return np.ones(len(questions), dtype=bool)

    nearer.run(nearer.rank_objects(0, 20), oracle, journal=tmp_path / "answers.db")
    assert len(seen[-1]) == 3
    assert {*seen[0].values(), *seen[-1].values()} == {0o600}
