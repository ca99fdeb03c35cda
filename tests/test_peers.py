"""Round trips through the loaders of others: `make test-peers`, outside CI, it installs them.

Each peer lives in an environment of its own, below ``out/peers``; one that cannot be installed is
skipped and named. psiz's JSON brings TensorFlow, Salmon brings PyTorch.
"""

import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import nearer
from nearer.questions import answered, random_questions
from nearer.trials import Trials

pytestmark = pytest.mark.skipif(
    not os.environ.get("NEARER_PEERS"), reason="make test-peers installs other people's packages"
)
HOME = Path(__file__).parent.parent / "out" / "peers"


def peer(name, *installs):
    """Run a script in the environment of a peer, with arguments, and take the JSON it prints."""
    python = HOME / name / "bin" / "python"
    ready = HOME / name / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", HOME / name], check=True)
        for wanted in installs:
            pip = [python, "-m", "pip", "install", "--quiet", *wanted]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{name} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        ready.touch()

    def run(script, *arguments):
        done = subprocess.run(
            [python, "-c", script, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def cblearn():
    return peer("cblearn", ["cblearn==0.4.0", "numpy<2"])


@pytest.fixture(scope="module")
def old_psiz():
    # the newest on the index that reads HDF5; its module of trials needs no TensorFlow
    return peer("psiz-0.2.2", ["numpy<1.24", "pandas<2", "h5py<3.9"], ["--no-deps", "psiz==0.2.2"])


@pytest.fixture(scope="module")
def psiz():
    return peer("psiz", ["psiz==0.13.1", "psiz-datasets==0.2.1"])


@pytest.fixture(scope="module")
def salmon():
    return peer("salmon", ["salmon-triplets==1.0.3"])


def comparisons():
    questions = random_questions(10, 50, np.random.default_rng(0))
    return answered(questions, nearer.PointOracle(np.arange(10.0))(questions))


def screens():
    """Ranked ones, since psiz never came to the others."""
    rng = np.random.default_rng(1)
    rows = np.array([rng.choice(60, 6, replace=False) for _ in range(30)])
    return Trials.near(
        rows[:, 0],
        rows[:, 1:],
        [row[rng.permutation(5)[:2] + 1] for row in rows],
        ranked=True,
        people=np.array(["Ann", "Bea"])[np.arange(30) % 2],
        seconds=rng.uniform(1, 9, 30),
    )


CBLEARN = """
import json, sys
import numpy as np
from cblearn.preprocessing import triplets_from_oddoneout
from cblearn.utils import check_query_response
rows = np.load(sys.argv[1])
if sys.argv[2] == "odd":
    rows = triplets_from_oddoneout(rows, np.full(len(rows), 2))
query, response = check_query_response(rows, result_format="list-count")
print(json.dumps([query.tolist(), (response > 0).tolist()]))
"""


def test_cblearn_reads_our_triplets(cblearn, tmp_path):
    nearer.write_triplets(tmp_path / "t.npy", comparisons())
    query, response = map(np.array, cblearn(CBLEARN, tmp_path / "t.npy", "triplets"))
    assert sorted(answered(query, response).tolist()) == sorted(comparisons().tolist())


def test_cblearn_reads_our_odd_one_out(cblearn, tmp_path):
    rng = np.random.default_rng(0)
    shown = np.array([rng.choice(10, 3, replace=False) for _ in range(40)])
    trials = Trials.odd_one_out(shown, shown[:, 1])
    nearer.write_trials(tmp_path / "odd.npy", trials)
    query, response = map(np.array, cblearn(CBLEARN, tmp_path / "odd.npy", "odd"))
    assert sorted(answered(query, response).tolist()) == sorted(trials.triplets()[0].tolist())


OLD_PSIZ = """
import json, sys
import numpy as np
import psiz.trials
Observations = getattr(psiz.trials, "RankObservations", None) or psiz.trials.Observations
trials = Observations(np.array([[4, 1, 2, 3], [0, 3, 2, 1]]), n_select=np.array([2, 2]))
trials.save(sys.argv[1])
print(json.dumps(int(trials.n_select.max())))
"""


def test_we_read_the_hdf5_of_psiz(old_psiz, tmp_path):
    file = tmp_path / "theirs.h5"
    assert old_psiz(OLD_PSIZ, file) == 2
    trials = nearer.read_trials(file)
    assert trials.ranked
    assert trials.triplets()[0].tolist()[:3] == [[4, 1, 2], [4, 1, 3], [4, 2, 3]]


PSIZ = """
import json, sys
from psiz_datasets.utils import parse_rank_timestep
found = []
for sequence in json.load(open(sys.argv[1]))["data"]:
    for step in sequence["sequence"]:
        stimuli, outcome, times = parse_rank_timestep(step)
        found.append([stimuli.tolist(), int(outcome), times["total"]])
print(json.dumps(found))
"""


def test_psiz_reads_our_json(psiz, tmp_path):
    trials = screens()
    nearer.write_trials(tmp_path / "p.json", trials, form="psiz")
    outcomes = list(permutations(range(5), 2))
    for t, (stimuli, outcome, ms) in enumerate(psiz(PSIZ, tmp_path / "p.json")):
        assert stimuli == [trials.query[t], *trials.shown[t].tolist()]
        chosen = [int(np.flatnonzero(trials.chosen[t] == place)[0]) for place in (1, 2)]
        assert outcomes[outcome] == tuple(chosen)
        assert ms == pytest.approx(1e3 * trials.seconds[t])


SALMON = """
import json, sys
import pandas
from salmon.triplets.offline import OfflineEmbedding
rows = pandas.read_csv(sys.argv[1])[["head", "winner", "loser"]].to_numpy()
fitted = OfflineEmbedding(n=10, d=1, max_epochs=2, verbose=1000).fit(rows, rows[:10])
print(json.dumps([rows.tolist(), list(fitted.embedding_.shape)]))
"""


def test_salmon_fits_our_triplets(salmon, tmp_path):
    nearer.write_triplets(tmp_path / "t.csv", comparisons(), labels=[f"o{i}" for i in range(10)])
    rows, shape = salmon(SALMON, tmp_path / "t.csv")
    assert rows == comparisons().tolist()
    assert shape == [10, 1]
