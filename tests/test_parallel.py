"""Coarse work goes where joblib, or a scheduler, sends it, and comes out the same."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from benchmarks.cells import FinishedCells, compute_cells
from nearer._kernels import comparisons
from nearer.cli import main
from nearer.errors import InvalidInput
from nearer.fitting import heldout
from nearer.fitting.likelihood import Noise, as_answers
from nearer.parallel import parallel_map, scheduler
from paper.experiments import Experiment

distributed = pytest.importorskip("distributed")

X = np.random.default_rng(0).normal(size=(30, 2))
ASKED = nearer.questions.random_questions(30, 900, np.random.default_rng(1))
TRIPLETS = nearer.questions.answered(ASKED, nearer.PointOracle(X)(ASKED))


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as made:
        yield made


@pytest.mark.slow
def test_restarts_are_the_same_on_a_cluster(cluster):
    here = nearer.SOE(2, init="random", n_init=3, random_state=0).fit(TRIPLETS)
    with scheduler(cluster.scheduler_address):
        there = nearer.SOE(2, init="random", n_init=3, random_state=0).fit(TRIPLETS)
    assert np.array_equal(here.embedding_, there.embedding_)


@pytest.mark.slow
def test_a_bootstrap_is_the_same_under_a_dask_configuration(cluster):
    options = {"method": "soe", "n_components": 2, "bootstrap": 3, "random_state": 0}
    here = nearer.fit(TRIPLETS, **options)
    with distributed.Client(cluster), joblib.parallel_config("dask"):
        there = nearer.fit(TRIPLETS, **options)
    assert np.array_equal(here.covariances, there.covariances)


@pytest.mark.slow
def test_work_is_done_by_other_processes(cluster):
    with scheduler(cluster.scheduler_address):
        others = set(parallel_map(os.getpid, [()] * 8))
    assert os.getpid() not in others
    assert set(parallel_map(os.getpid, [()] * 2)) == {os.getpid()}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of newer Pythons
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_every_backend_takes_functions_made_inside_others(backend):
    held = np.arange(3)

    def inside(factor):
        return (factor * held).tolist()

    with joblib.parallel_config(backend, n_jobs=2):
        assert parallel_map(inside, [(2,), (3,)]) == [[0, 2, 4], [0, 3, 6]]


def test_folds_predict_the_same_on_any_number_of_cores(monkeypatch):
    evidence, results, threads = as_answers(TRIPLETS, len(X)), [], set()
    monkeypatch.setattr(comparisons, "_threads", lambda: ThreadPoolExecutor(3))
    fit = heldout.fit_posterior

    def slowly(*args, **options):
        threads.add(threading.get_ident())
        time.sleep(0.05)  # so that the other threads begin, too
        return fit(*args, **options)

    monkeypatch.setattr(heldout, "fit_posterior", slowly)
    for cores in (1, 3):
        monkeypatch.setattr(comparisons, "_CORES", cores)
        rng = np.random.default_rng(0)
        results.append(heldout.hold_out(evidence, 2, Noise(2.0), rng=rng, every=True))
    one, several = results
    assert len(threads) > 1
    assert np.array_equal(one.log_likelihood, several.log_likelihood)
    assert all(map(np.array_equal, one.fits, several.fits))


@pytest.mark.slow
def test_plan_prints_the_same(cluster):
    command = ["plan", "--objects", "12", "--dim", "1", "--noise", "0.1", "--answers", "60"]
    command += ["--repeats", "2", "--seed", "0", "--json"]
    here = CliRunner().invoke(main, command)
    there = CliRunner().invoke(main, [*command, "--scheduler", cluster.scheduler_address])
    assert here.exit_code == there.exit_code == 0, there.output
    assert here.output == there.output


@pytest.mark.slow
def test_cells_are_computed_by_a_cluster(cluster, tmp_path):
    cells = [Experiment("table1", "ball-2", "Basis", 60, seed) for seed in range(2)]
    figures = []
    for name, address in (("here", None), ("there", cluster.scheduler_address)):
        finished = FinishedCells(tmp_path / f"{name}.jsonl")
        compute_cells(cells, finished, jobs=1, scheduler=address)
        figures.append([finished.figures(cell) for cell in cells])
    times = {key for key in figures[0][0] if "second" in key}
    for one, other in zip(*figures, strict=True):
        assert {k: v for k, v in one.items() if k not in times} == {
            k: v for k, v in other.items() if k not in times
        }


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_one_message():
    command = [
        "plan",
        "--objects",
        "12",
        "--dim",
        "1",
        "--noise",
        "0.1",
        "--scheduler",
        "tcp://127.0.0.1:9",
    ]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert "no Dask scheduler answers there" in done.output


def die(parent):
    assert os.getpid() != parent
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_dies_is_named():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True
        ) as cluster,
        pytest.raises(InvalidInput, match="the worker at tcp://"),
        scheduler(cluster.scheduler_address),
    ):
        parallel_map(die, [(os.getpid(),)])


@pytest.mark.parametrize("address", ["nonsense", "http://here:80", "tcp://here"])
def test_what_is_no_address_is_one_message(address):
    with pytest.raises(InvalidInput, match=r"no Dask scheduler answers there; .dask scheduler"):
        scheduler(address).__enter__()


@pytest.mark.slow
def test_a_server_that_is_no_scheduler_is_one_message(tmp_path):
    """Nothing is printed after it, not even when the process ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply():
            with server.accept()[0] as peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                peer.recv(4096)

        threading.Thread(target=reply, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        (tmp_path / "t.csv").write_text("head,winner,loser\n0,1,2\n1,2,0\n")
        done = subprocess.run(
            [sys.executable, "-m", "nearer", "fit", "t.csv", "--dim", "1", "--scheduler", address],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 2
    assert "no Dask scheduler answers there" in done.stderr
    assert "Traceback" not in done.stderr
