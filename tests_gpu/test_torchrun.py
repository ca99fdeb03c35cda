"""Several processes fit together: the result of one, and an error that names who died."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import nearer
from nearer.questions import answered, random_questions

N = 30


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    q = random_questions(N, 12000, rng)
    rows = answered(q, nearer.PointOracle(np.random.default_rng(1).normal(size=(N, 2)))(q))
    np.save(tmp_path / "t.npy", rows.astype(np.int32))
    return tmp_path / "t.npy"


def environment(**more):
    """Shares are passed over by processors, one thread each, and travel inside this machine."""
    own = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    own |= {"CUDA_VISIBLE_DEVICES": "", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        own["GLOO_SOCKET_IFNAME"] = "lo"  # whatever the name of this machine leads to
    return own | more


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


# blocks of a few rows, so that a small file has some for everybody
SMALL = """
    import sys
    from nearer.scale import blocks
    from nearer.scale import blocks as passes
    from nearer import _fit
    from nearer.cli import main
    from nearer.scale import fit_in_blocks as _many
    blocks.BLOCK = 500
    blocks.READ = 800
    _fit.MANY = 1000
"""


def processes(file, size, more="", options=(), **env):
    code = textwrap.dedent(SMALL) + textwrap.dedent(more) + "\nmain()\n"
    command = [sys.executable, "-c", code, "fit", str(file), "--dim", "2", "--seed", "0", "--json"]
    command += ["--device", "cpu", *options]
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": str(size)}
    return [
        subprocess.Popen(
            [*command, "--out", str(file.parent / f"out{rank}")],
            env=environment(**address, RANK=str(rank), LOCAL_RANK=str(rank), **env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


def positions(folder):
    return np.loadtxt(folder / "embedding.csv", delimiter=",", skiprows=1, usecols=(2, 3))


def test_two_processes_give_the_map_of_one(file):
    (one,) = processes(file, 1)
    alone, said = one.communicate(timeout=300)
    assert one.returncode == 0, said
    alone_at = positions(file.parent / "out0")
    two = processes(file, 2)
    (first, err), (second, err2) = (p.communicate(timeout=300) for p in two)
    assert [p.returncode for p in two] == [0, 0], err + err2
    assert (second, err2) == ("", "")
    here, there = json.loads(alone), json.loads(first)
    assert there["n_triplets"] == here["n_triplets"] == 12000
    assert there["method"] == here["method"] == "soe"
    assert there["held_out_accuracy"] == pytest.approx(here["held_out_accuracy"], abs=0.01)
    assert there["noise"] == pytest.approx(here["noise"], abs=0.002)
    together = positions(file.parent / "out0")
    assert nearer.metrics.procrustes(alone_at, together).disparity < 0.01
    assert not (file.parent / "out1").exists()


def test_one_pass_is_the_sum_over_the_shares(file):
    """From the same start, value, gradient, share and information are those of one process."""
    code = textwrap.dedent(SMALL) + textwrap.dedent("""
        import numpy as np, json
        from nearer.scale.blocks import Processes
        from nearer.scale.blocks import as_source, store
        from nearer.fitting.solver import Loss
        group = Processes()
        stored = store(as_source(sys.argv[1]), share=group.share)
        if group.rank:
            group.serve(stored)
        else:
            seen, every = group.layout(stored)
            X = np.random.default_rng(0).normal(size=(stored.n_objects, 3))
            value, gradient = every.sums(Loss("logistic", 0.1), X)
            blocks = every.information(X, 0.1, 0.0)
            few = every.few(2000, np.random.default_rng(0))
            some = few.sums(Loss("soe"), X)[0] / few.total
            print(json.dumps([value, gradient.tolist(), every.share_violated(X), blocks.tolist(),
                              [len(seen), len(every), len(few)], some]))
            group.dismiss()
    """)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": "3"}
    three = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(file)],
            env=environment(**address, RANK=str(rank)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    out = [p.communicate(timeout=300)[0] for p in three]
    assert [p.returncode for p in three] == [0, 0, 0]
    value, gradient, wrong, information, sizes, some = json.loads(out[0])
    from nearer.fitting.solver import Loss, Passes

    whole = Passes(np.load(file), None, N)
    X = np.random.default_rng(0).normal(size=(N, 3))
    there, slope = whole.sums(Loss("logistic", 0.1), X)
    assert value == pytest.approx(there)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9)
    assert wrong == pytest.approx(whole.share_violated(X))
    np.testing.assert_allclose(information, whole.information(X, 0.1, 0.0), rtol=1e-9, atol=1e-9)
    assert sizes[1] == 12000
    assert sizes[0] < 12000
    assert 2000 <= sizes[2] < 2100
    assert some == pytest.approx(whole.sums(Loss("soe"), X)[0] / whole.total, rel=0.1)


# process 1 says when it is in the middle of the fit
SLOW = """
    from nearer.scale import blocks as blockwise
    passed, count = blockwise.BlockPasses.sums, [0]
    def sums(self, loss, X):
        count[0] += 1
        if count[0] == 5:
            print("fitting", file=sys.stderr, flush=True)
        return passed(self, loss, X)
    blockwise.BlockPasses.sums = sums
    passes._PATIENCE = 20.0
"""
LONG = ("--max-iter", "1000000", "--tol", "1e-300", "--method", "ste")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_is_named(file, how):
    first, second = processes(file, 2, SLOW, LONG)
    for line in second.stderr:
        if "fitting" in line:
            break
    begun = time.monotonic()
    second.send_signal(how)
    try:
        _, err = first.communicate(timeout=200)
    finally:
        second.kill()
        second.communicate()
    assert first.returncode == 2, err
    assert re.search(rf"process 1 of 2 \(.*process {second.pid}\) died or hangs", err), err
    assert "Traceback" not in err
    assert time.monotonic() - begun < 150
    assert (file.parent / "out0" / "interrupted.npz").exists()


def test_process_0_that_dies_takes_no_other_with_it_forever(file):
    first, second = processes(file, 2, SLOW, LONG)
    for line in first.stderr:
        if "fitting" in line:
            break
    first.kill()
    first.communicate()
    _, err = second.communicate(timeout=200)
    assert second.returncode == 2
    assert "process 0 of 2" in err


# a machine with one GPU, as far as PyTorch says
ONE_GPU = """
    import os, torch
    torch.cuda.is_available = lambda: os.environ["CUDA_VISIBLE_DEVICES"] != ""
    torch.cuda.device_count = lambda: int(torch.cuda.is_available())
    def set_device(which):
        if which >= torch.cuda.device_count():
            raise RuntimeError("invalid device ordinal")
    torch.cuda.set_device = set_device
"""


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_processes_that_would_share_a_gpu_end_with_a_message(file, device):
    one_gpu = {"CUDA_VISIBLE_DEVICES": "0", "LOCAL_WORLD_SIZE": "2"}
    two = processes(file, 2, ONE_GPU, ("--device", device), **one_gpu)
    for one in two:
        _, err = one.communicate(timeout=200)
        assert one.returncode == 2, err
        assert f"--device {device}: 2 processes for 1 GPU of this machine" in err
        assert "--nproc-per-node=1, or take --device cpu" in err
        assert "Traceback" not in err


def test_processors_fit_together_beside_a_gpu(file):
    two = processes(file, 2, ONE_GPU, CUDA_VISIBLE_DEVICES="0", LOCAL_WORLD_SIZE="2")
    (first, err), (_, err2) = (p.communicate(timeout=300) for p in two)
    assert [p.returncode for p in two] == [0, 0], err + err2
    assert json.loads(first)["held_out_accuracy"] > 0.95


def test_torchrun_starts_it(file):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    command += ["-m", "nearer", "fit", str(file), "--dim", "2", "--seed", "0", "--json"]
    command += ["--device", "cpu", "--out", str(file.parent / "out")]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["held_out_accuracy"] > 0.95
