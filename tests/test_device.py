"""Where passes run, on a machine without PyTorch: what is said, and what is done instead."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from nearer.cli import main
from nearer.errors import InvalidInput
from nearer.fitting import device as devices
from nearer.fitting.device import places_on_gpu, placing_on, using, wants_gpu

ROWS = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 1], [0, 2, 3]] * 10)
POINTS = nearer.PointOracle(np.random.default_rng(0).normal(size=(60, 2)))


def embedded():
    return nearer.embed(POINTS, 58, random_state=0, progress=False)


class Missing:
    """Nobody finds PyTorch."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")


@pytest.fixture
def without(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])


@pytest.fixture
def roomless(monkeypatch):
    """A GPU that is there and has a kilobyte left."""
    monkeypatch.setattr(devices, "_torch", lambda: None)
    monkeypatch.setattr(devices, "_free_memory", lambda: 1000.0)


def test_a_gpu_that_is_not_there_is_said(without, tmp_path):
    for fit in (
        lambda: nearer.fit(ROWS, n_components=1, device="cuda"),
        lambda: nearer.SOE(1, device="cuda").fit(ROWS),
        lambda: nearer.fit(nearer.Trials.from_triplets(ROWS), n_components=1, device="cuda"),
        lambda: nearer.embed(POINTS, 60, device="cuda", progress=False),
        lambda: embedded().place(POINTS, [58, 59], device="cuda"),
    ):
        with pytest.raises(InvalidInput, match=r"device='cuda' needs PyTorch .* install nearer"):
            fit()
    nearer.write_triplets(tmp_path / "t.csv", ROWS)
    out = ["--device", "cuda", "--out", str(tmp_path / "out")]
    for command in (["fit", str(tmp_path / "t.csv")], ["embed", "cities"]):
        done = CliRunner().invoke(main, [*command, *out])
        assert done.exit_code == 2
        assert "use device='cpu'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_auto_does_without(without):
    with using("auto"):
        assert not wants_gpu(10**9, 10**6)
    assert nearer.fit(ROWS, n_components=1, device="auto", bootstrap=0).positions.shape == (4, 1)
    with placing_on("auto"):
        assert not places_on_gpu(10**6, 5, 3)
    assert embedded().place(POINTS, [58, 59], device="auto").positions.shape == (2, 2)


def test_auto_does_without_one_that_cannot_be_loaded(monkeypatch):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                raise OSError("libcudart.so.12: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    monkeypatch.setattr(devices.jobs, "cores", lambda: 1)
    with placing_on("auto"):
        assert not places_on_gpu(10**6, 5, 3)
    with pytest.raises(InvalidInput, match=r"libcudart.* install nearer"), placing_on("cuda"):
        pass


def test_cores_that_this_process_may_not_use_do_not_count(monkeypatch):
    """On a node of 64 cores a job that has two of them gains from the GPU it was given."""
    monkeypatch.setattr(devices, "_torch", lambda: None)
    monkeypatch.setattr(devices, "_free_memory", lambda: 1e12)
    monkeypatch.setattr(devices.jobs.os, "cpu_count", lambda: 64)
    gained = []
    for own in (2, 64):
        monkeypatch.setattr(
            devices.jobs.os, "sched_getaffinity", lambda _, c=own: range(c), raising=False
        )
        with placing_on("auto"):
            gained.append(places_on_gpu(10**6, 5, 3))
    assert gained == [True, False]


def test_an_unknown_device_is_refused():
    with pytest.raises(InvalidInput, match="device='gpu': must be one of 'auto', 'cpu', 'cuda'"):
        nearer.fit(ROWS, n_components=1, device="gpu")
    with pytest.raises(InvalidInput, match="device='gpu': must be one of"):
        nearer.embed(POINTS, 60, device="gpu", progress=False)


def test_a_method_that_does_nothing_on_a_gpu_says_so(tmp_path):
    given = ["embed", "cities", "--method", "basis", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, [*given, "--device", "cuda"])
    assert done.exit_code == 2
    assert "--device cuda: the method 'basis' does nothing on a GPU" in done.stderr


def test_fits_stay_on_the_processor_where_objects_are_placed_elsewhere(roomless):
    with placing_on("cuda"):
        assert not wants_gpu(10**9, 7_000_000)
    with using("cuda"):
        assert not places_on_gpu(10**6, 5, 3)


def test_a_journal_may_go_on_on_another_machine(monkeypatch):
    monkeypatch.setattr(devices, "_is_chosen", lambda work, *_: work.get() != "cpu")
    with placing_on("auto"):
        assert places_on_gpu(10**6, 5, 3)
    with placing_on("auto", "answers.db"):
        assert not places_on_gpu(10**6, 5, 3)
    monkeypatch.setattr(devices, "_torch", lambda: None)
    with placing_on("cuda", "answers.db"):
        assert places_on_gpu(10**6, 5, 3)


def test_too_little_memory_says_how_much_is_needed(roomless):
    with using("cuda"), pytest.raises(InvalidInput, match=r"need about 21\.2 GiB and the GPU has"):
        wants_gpu(10**9, 7_000_000)
    with using("auto"):
        assert not wants_gpu(10**9, 7_000_000)


def test_memory_that_runs_out_in_the_middle_is_said():
    class OutOfMemoryError(RuntimeError):
        """As PyTorch calls it."""

    with (
        pytest.raises(InvalidInput, match="too little memory after all"),
        using("auto"),
    ):
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB\nmore")
    with pytest.raises(RuntimeError, match="another"), using("auto"):
        raise RuntimeError("another")
