"""Round trips through the loaders of others: `make test-peers`, outside CI, it installs them."""

import json
import os
import subprocess

import numpy as np
import pytest

import nearer
from nearer.questions import answered, random_questions
from nearer.trials import Trials

pytestmark = pytest.mark.skipif(
    not os.environ.get("NEARER_PEERS"), reason="make test-peers installs other people's packages"
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
json.dump({"query": query.tolist(), "response": (response > 0).tolist()}, sys.stdout)
"""


@pytest.fixture(scope="module")
def cblearn():
    from benchmarks.soe import cblearn_environment

    python = cblearn_environment()

    def load(path, what):
        done = subprocess.run(
            [str(python), "-c", CBLEARN, str(path), what],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return np.array(told["query"]), np.array(told["response"], dtype=bool)

    return load


def test_cblearn_reads_our_triplets(cblearn, tmp_path):
    questions = random_questions(10, 50, np.random.default_rng(0))
    triplets = answered(questions, nearer.PointOracle(np.arange(10.0))(questions))
    nearer.write_triplets(tmp_path / "t.npy", triplets)
    query, response = cblearn(tmp_path / "t.npy", "triplets")
    assert sorted(answered(query, response).tolist()) == sorted(triplets.tolist())


def test_cblearn_reads_our_odd_one_out(cblearn, tmp_path):
    rng = np.random.default_rng(0)
    shown = np.array([rng.choice(10, 3, replace=False) for _ in range(40)])
    trials = Trials.odd_one_out(shown, shown[:, 1])
    nearer.write_trials(tmp_path / "odd.npy", trials)
    query, response = cblearn(tmp_path / "odd.npy", "odd")
    assert sorted(answered(query, response).tolist()) == sorted(trials.triplets()[0].tolist())
