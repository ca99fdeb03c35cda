"""Where passes run, on a machine without PyTorch: what is said, and what is done instead."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from nearer.cli import main
from nearer.errors import InvalidInput
from nearer.fitting import solver as devices
from nearer.fitting.solver import using, wants_gpu

ROWS = np.array([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 1], [0, 2, 3]] * 10)


class Missing:
    """PyTorch cannot be imported."""

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
    room = SimpleNamespace(free_memory=lambda: 1000.0)
    monkeypatch.setattr(devices, "gpu", lambda: room)


def test_a_gpu_that_is_not_there_is_said(without, tmp_path):
    for fit in (
        lambda: nearer.fit(ROWS, n_components=1, device="cuda"),
        lambda: nearer.SOE(1, device="cuda").fit(ROWS),
        lambda: nearer.fit(nearer.Trials.from_triplets(ROWS), n_components=1, device="cuda"),
    ):
        with pytest.raises(InvalidInput, match=r"device='cuda' needs PyTorch .* install nearer"):
            fit()
    nearer.write_triplets(tmp_path / "t.csv", ROWS)
    out = ["--device", "cuda", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, ["fit", str(tmp_path / "t.csv"), *out])
    assert done.exit_code == 2
    assert "use --device 'cpu'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_auto_does_without(without):
    with using("auto"):
        assert not wants_gpu(10**9, 10**6)
    assert nearer.fit(ROWS, n_components=1, device="auto", bootstrap=0).positions.shape == (4, 1)


def test_auto_does_without_one_that_cannot_be_loaded(monkeypatch):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                raise OSError("libcudart.so.12: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with using("auto"):
        assert not wants_gpu(10**9, 10**6)
    with pytest.raises(InvalidInput, match=r"libcudart.* install nearer"), using("cuda"):
        pass


def test_an_unknown_device_is_refused():
    with pytest.raises(InvalidInput, match="device='gpu': must be one of 'auto', 'cpu', 'cuda'"):
        nearer.fit(ROWS, n_components=1, device="gpu")


def test_too_little_memory_says_how_much_is_needed(roomless):
    with using("cuda"), pytest.raises(InvalidInput, match=r"need about 21\.2 GiB and the GPU has"):
        wants_gpu(10**9, 7_000_000)
    with using("auto"):
        assert not wants_gpu(10**9, 7_000_000)


def test_memory_that_runs_out_in_the_middle_is_said():
    class OutOfMemoryError(RuntimeError):
        """As PyTorch calls it."""

    with (
        pytest.raises(InvalidInput, match="too little memory"),
        using("auto"),
    ):
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB\nmore")
    with pytest.raises(RuntimeError, match="another"), using("auto"):
        raise RuntimeError("another")
