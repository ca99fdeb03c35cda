"""Objects placed on a GPU: the processor's beliefs and questions, and maps as good."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import nearer
from nearer._kernels.torch_shells import Searches
from nearer.algorithms import slotting
from nearer.algorithms.slotting import Anchors, Slots, slot_objects, spread_heads
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting import device as devices
from nearer.fitting.device import placing_on


def scene(d, seed=0, heads=None, stretch=1.0):
    """Positions of 120 anchors and of 300 objects to be placed, some beyond them; the heads."""
    X = np.random.default_rng(seed).normal(size=(420, d))
    X[:, 0] *= stretch
    X[120:] *= 1.5
    return X, spread_heads(X[:120], d + 2 if heads is None else heads)


def both(X, heads):
    """The same searches on the processor and on the GPU."""
    anchors, new = Anchors(np.arange(120), X[:120], heads), np.arange(120, 420)
    here = Slots(anchors, new)
    with placing_on("cuda"):
        return here, Slots(anchors, new)


def places(slots, X, heads):
    """How many members of each head's chain are nearer to it than each object is."""
    r = np.linalg.norm(X[:, None] - heads, axis=2)
    return np.stack([np.searchsorted(slots.chain[h], r[:, h]) for h in range(len(heads))], axis=1)


def agree(here, there, rows, *, anew):
    """Both choose: nearly all questions and beliefs are the same, and what they tell."""
    head, member, told = here.choose(rows, anew=anew)
    head2, member2, told2 = there.choose(rows, anew=anew)
    same = (head == head2) & ((member == member2) | (head < 0))
    assert same.mean(axis=0).min() >= 0.95
    np.testing.assert_allclose(told2[same], told[same], atol=2e-3)
    scale = np.ptp(here.chain)
    off = np.linalg.norm(here.positions[rows] - there.positions[rows], axis=1)
    assert (off < 1e-4 * scale).mean() >= 0.99
    for slots, h, c in ((here, head, member), (there, head2, member2)):
        at, column = np.nonzero(h >= 0)
        chain, asked = (rows[at], h[at, column]), c[at, column]
        assert (slots.first[chain] <= asked).all()
        assert (asked < slots.last[chain]).all()
    return head, member, told


@pytest.mark.parametrize("heads", [None, 9])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("anew", [False, True])
def test_round_after_round_is_the_processors(d, heads, anew):
    """Both are told the answers to the processor's questions, of which some are of doubt."""
    X, at = scene(d, heads=heads, seed=d)
    here, there = both(X, at)
    oracle, rows = nearer.PointOracle(X), np.arange(300)
    ends = doubted = 0
    for _ in range(12 * d):
        head, member, told = (best[:, 0] for best in agree(here, there, rows, anew=anew))
        some = head >= 0
        rows, head, member = rows[some], head[some], member[some]
        if not len(rows):
            break
        ends += int((member == here.chain.shape[1] - 1).sum())
        doubted += int((told == 1.0).sum())
        is_nearer = oracle(here.questions(rows, head, member))
        for slots in (here, there):
            slots.learn(rows, head, member, is_nearer)
    assert ends + doubted
    off = [np.median(np.linalg.norm(s.positions - X[120:], axis=1)) for s in (here, there)]
    assert off[1] == pytest.approx(off[0], rel=0.01)


@pytest.mark.parametrize("d", [2, 3])
def test_those_outside_their_shells_look_elsewhere(d):
    """Shells drawn far from where all begin, most of which are hit only from another side."""
    X, at = scene(d, stretch=20.0, seed=d)
    (here, there), (stays, _) = both(X, at), both(X, at)
    place = places(here, X[120:], X[at])
    for slots in (here, there, stays):
        slots.first[:] = np.maximum(place - 2, 0)
        slots.last[:] = np.minimum(place + 2, slots.chain.shape[1])
    rows = np.arange(300)
    stays.choose(rows, anew=False)
    agree(here, there, rows, anew=True)
    assert (here.positions != stays.positions).any(axis=1).mean() > 0.1


def test_chains_with_one_place_left_or_none():
    X, at = scene(2)
    here, there = both(X, at)
    rows = np.arange(300)
    place = places(here, X[120:], X[at])
    for slots in (here, there):
        slots.first[:] = slots.last[:] = place
        slots.first[:100, 0], slots.last[:100, 0] = 0, slots.chain.shape[1]
    head, _, told = agree(here, there, rows, anew=True)
    assert (head[100:] == -1).all()
    assert (told[100:] == 0).all()
    assert set(np.unique(head[:100])) <= {-1, 0}


def test_small_blocks_give_the_same(monkeypatch):
    from nearer._kernels import torch_shells

    X, at = scene(3)
    _, whole = both(X, at)
    expected = whole.choose(np.arange(300))
    monkeypatch.setattr(torch_shells, "_CELLS", 5000)
    _, parts = both(X, at)
    for found, wanted in zip(parts.choose(np.arange(300)), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    np.testing.assert_allclose(parts.positions, whole.positions, rtol=1e-9)


def test_beliefs_of_some_are_those_of_others():
    X, at = scene(2)
    here, there = both(X, at)
    source, rows = np.array([0, 0, 7]), np.array([1, 2, 8])
    for slots in (here, there):
        slots.first[:] = np.arange(300)[:, None] % 50
        slots.choose(np.arange(300))
        slots.copy(source, rows)
        np.testing.assert_array_equal(slots.positions[rows], slots.positions[source])
        assert (slots.positions[3] != slots.positions[0]).any()
    agree(here, there, rows, anew=False)


@pytest.mark.parametrize("d", [1, 2])  # on a line most have the same answers for a while
@pytest.mark.parametrize("pairs", [False, True])
def test_searches_end_inside_their_shells(d, pairs):
    X, at = scene(d, seed=4)
    _, slots = both(X, at)
    nearer.run(slot_objects(slots, pairs=pairs), nearer.PointOracle(X))
    true = places(slots, X[120:], X[at])
    assert (slots.first <= true).all()
    assert (true <= slots.last).all()
    assert nearer.PointOracle(X)(slots.triplets()).all()


def tau(X, positions):
    return nearer.metrics.mean_kendall_tau(X, positions, n_heads=50, random_state=0)


def test_the_door_gives_a_map_as_good_for_as_many_questions():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    oracle = nearer.PointOracle(X)
    here, there = (
        nearer.embed(oracle, 4000, device=device, random_state=0, progress=False)
        for device in ("cpu", "cuda")
    )
    assert tau(X, there.positions) == pytest.approx(tau(X, here.positions), abs=0.002)
    assert there.n_comparisons == pytest.approx(here.n_comparisons, rel=0.01)
    assert oracle(there.triplets).all()
    new = np.arange(3500, 4000)
    old = nearer.embed(oracle, 3500, device="cpu", random_state=0, progress=False)
    placed = [old.place(oracle, new, device=device).positions for device in ("cpu", "cuda")]
    assert np.median(np.linalg.norm(placed[0] - placed[1], axis=1)) < 1e-3 * np.ptp(placed[0])


def test_a_budget_that_ends_a_round_in_the_middle():
    X = np.random.default_rng(0).normal(size=(3500, 2))
    old = nearer.embed(nearer.PointOracle(X), 3200, random_state=0, progress=False)
    oracle, new = nearer.PointOracle(X), np.arange(3200, 3500)
    for budget in (100, 2000, 5000):
        with placing_on("cuda"):
            placed = nearer.run(nearer.algorithms.place_objects(old, new), oracle, budget=budget)
        assert placed.n_comparisons == budget
        assert np.isfinite(placed.positions).all()


def test_a_budget_that_ends_between_two_rounds():
    """Then there is nothing new to be learnt."""
    X, at = scene(2)
    oracle = nearer.PointOracle(X)
    _, slots = both(X, at)
    budget = 3 * slots.first.size  # of the bisection
    with pytest.raises(BudgetSpent):
        nearer.run(slot_objects(slots), oracle, budget=budget)
    assert np.isfinite(slots.positions).all()


def test_searches_go_to_the_gpu_that_is_wanted(monkeypatch, tmp_path):
    began = []
    begin = slotting.gpu_searches

    def watched(*scene, **state):
        began.append(len(state["first"]))
        return begin(*scene, **state)

    monkeypatch.setattr(slotting, "gpu_searches", watched)
    X = np.random.default_rng(0).normal(size=(3600, 2))
    oracle = nearer.PointOracle(X)
    nearer.embed(oracle, 500, device="cuda", random_state=0, progress=False)
    assert began.pop() == 400  # among a hundred
    old = nearer.embed(oracle, 3300, random_state=0, progress=False)
    new = np.arange(3300, 3600)
    old.place(oracle, new)
    assert not began  # too few to gain
    monkeypatch.setattr(devices, "_BEGIN", 0.0)
    monkeypatch.setattr(devices.jobs, "cores", lambda: 64)
    old.place(oracle, new)
    assert not began  # so many cores are faster
    monkeypatch.setattr(devices.jobs, "cores", lambda: 2)
    old.place(oracle, new)
    assert began == [300]
    old.place(oracle, new, journal=tmp_path / "answers.db")  # another machine may go on with it
    old.place(oracle, new, device="cpu")
    assert began == [300]
    monkeypatch.setattr(devices, "_free_memory", lambda: 1e6)
    old.place(oracle, new)  # no room: on the processor
    assert began == [300]
    with pytest.raises(InvalidInput, match=r"300 objects to be placed.*GiB.*place fewer objects"):
        old.place(oracle, new, device="cuda")


def test_memory_that_runs_out_is_said_if_it_is_ours(monkeypatch):
    X, at = scene(2)
    _, slots = both(X, at)

    def full(self, *how):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    def oracle(questions):
        return full(questions)

    with placing_on("cuda"), pytest.raises(torch.OutOfMemoryError):  # the oracle's own affair
        nearer.run(slot_objects(slots), oracle)
    monkeypatch.setattr(Searches, "next_questions", full)
    message = r"too little memory after all .* place fewer objects"
    with placing_on("cuda"), pytest.raises(InvalidInput, match=message):
        slots.choose(np.arange(300))


def test_where_memory_runs_out_auto_goes_on_on_the_processor(monkeypatch):
    X, at = scene(2)
    oracle, twin = nearer.PointOracle(X), Searches.next_questions
    plain, slots = both(X, at)
    rounds = []

    def full(self, *how):
        rounds.append(how)
        if len(rounds) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return twin(self, *how)

    monkeypatch.setattr(Searches, "next_questions", full)
    with placing_on("auto"):
        nearer.run(slot_objects(slots), oracle)
    nearer.run(slot_objects(plain), oracle)
    assert len(rounds) == 4
    off = np.linalg.norm(slots.positions - plain.positions, axis=1)
    assert np.median(off) < 0.01 * np.linalg.norm(X.std(axis=0))


def test_a_journal_of_the_gpu_goes_on_there(tmp_path):
    X = np.random.default_rng(0).normal(size=(3400, 2))
    old = nearer.embed(nearer.PointOracle(X), 3200, random_state=0, progress=False)
    new, file, calls = np.arange(3200, 3400), tmp_path / "answers.db", []

    def stopping(questions):
        calls.append(len(questions))
        if len(calls) == 8:
            raise KeyboardInterrupt
        return nearer.PointOracle(X)(questions)

    whole = old.place(nearer.PointOracle(X), new, device="cuda")
    with pytest.raises(KeyboardInterrupt):
        old.place(stopping, new, device="cuda", journal=file)
    again = old.place(nearer.PointOracle(X), new, device="cuda", journal=file)
    np.testing.assert_array_equal(again.positions, whole.positions)


def test_searches_need_no_numba():
    code = """
import sys
sys.modules['numba'] = sys.modules['rich'] = None
import numpy as np
from benchmarks._gpu_placing import searched
from nearer.fitting.device import placing_on
rng = np.random.default_rng(0)
X, anchors = rng.normal(size=(200, 2)), rng.normal(size=(300, 2))
chain = np.sort(np.linalg.norm(anchors[:5, None] - anchors, axis=2), axis=1)[:, 1:]
away = np.linalg.norm(X[:, None] - anchors[:5], axis=2)
with placing_on('cuda'):
    searches, seconds, asked = searched(200, anchors, chain, away)
print(np.median(np.linalg.norm(searches.positions - X, axis=1)) < 0.1)
"""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
