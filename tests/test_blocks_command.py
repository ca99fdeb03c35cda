"""Very many answers: interrupted, taken up again, and on the command line."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from blockskit import N, shrink, triplets, write
from click.testing import CliRunner

import nearer
from nearer._fit import Goal
from nearer.cli import main
from nearer.errors import InvalidInput
from nearer.scale.blocks import BlockPasses, Stored, as_source, store
from nearer.scale.fit_in_blocks import Checkpoint, fit_many, in_blocks

# --- interrupted ---------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    shrink(monkeypatch)


class Stop(Exception):
    pass


@pytest.mark.parametrize("flip", [0.0, 0.1])
def test_interrupted_anywhere_it_goes_on_from_there(small, tmp_path, flip):
    stored, file = store(as_source(triplets(flip=flip))), tmp_path / "point.npz"
    goal = Goal("auto", 2, 5, 300, 1e-7)
    whole = fit_many(stored, goal, np.random.default_rng(0))
    finished, begun = set(), []
    for attempt in range(200):
        said = []

        def stop(text, said=said):
            said.append(text)
            if len(said) == 40:
                raise Stop

        point = Checkpoint(file, stop)
        assert point.take_up(stored, goal) == (attempt > 0)
        try:
            embedding = fit_many(stored, goal, np.random.default_rng(attempt), checkpoint=point)
            break
        except Stop:
            stages = {text.split(":")[0] for text in said}
            # What a finished stage reached is looked at again; nothing before it is.
            again = [text for text in said if text.split(":")[0] in finished]
            assert len(again) < 10
            assert not any("dimensions" in text for text in again)
            finished |= {stage for stage in stages if stage != said[-1].split(":")[0]}
            begun.append(said[-1])
    assert attempt > 1
    assert len(begun) == attempt
    assert embedding.details["method"] == whole.details["method"]
    assert embedding.error_rate == pytest.approx(whole.error_rate, abs=0.01)
    point.remove()
    assert not file.exists()


def test_a_checkpoint_of_another_fit_is_left_alone(small, tmp_path):
    stored, file = store(as_source(triplets())), tmp_path / "point.npz"
    goal = Goal("soe", 2, 5, 3, 1e-7)
    first = Checkpoint(file)
    first.take_up(stored, goal)
    fit_many(stored, goal, np.random.default_rng(0), checkpoint=first)
    assert Checkpoint(file).take_up(stored, goal)
    assert not Checkpoint(file).take_up(stored, Goal("soe", 3, 5, 3, 1e-7))
    assert not Checkpoint(file).take_up(store(as_source(triplets(seed=1))), goal)
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    unknown = bytearray(whole)
    unknown[8] = unknown[whole.index(b"PK\1\2") + 10] = 77  # packed in no known way
    for damaged in (b"no", whole[:-100], flipped, unknown):
        file.write_bytes(damaged)
        with pytest.raises(
            InvalidInput, match=r"is not a NumPy file .*; remove it to begin again"
        ) as said:
            Checkpoint(file).take_up(stored, goal)
        assert "pickle" not in str(said.value)


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(a) for a in arguments])


def test_the_command_fits_in_blocks(small, call, tmp_path):
    names = np.array([f"p{i:02}" for i in range(N)])
    write(tmp_path / "t.parquet", names[triplets()], when=np.arange(6000))
    result = call("fit", "t.parquet", "--dim", 2, "--seed", 0, "--json", "--tol", 1e-6)
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert (summary["n_triplets"], summary["n_objects"], summary["method"]) == (6000, N, "soe")
    assert summary["contradictions"] is None
    assert (
        "6,000 triplets over 40 objects, fitted in blocks\ncolumns not used: when" in result.stderr
    )
    files = {p.name for p in (tmp_path / "out/fit").iterdir()}
    assert files == {"embedding.csv", "fit.json", "map.png"}
    assert "p07" in (tmp_path / "out/fit/embedding.csv").read_text()
    said = call("fit", "t.parquet", "--dim", 2, "--seed", 0, "--tol", 1e-3).stdout
    assert "in out/fit: embedding.csv, fit.json, map.png\n" in said


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--kind", "odd-one-out"), "is read in blocks"),
        (("--dim", 99), "--dim 99: 40 objects span at most 39"),
    ],
)
def test_what_blocks_cannot_do_is_refused(small, call, tmp_path, option, message):
    write(tmp_path / "t.parquet", triplets(m=3000))
    result = call("fit", "t.parquet", *option)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_and_the_same_command_goes_on(tmp_path):
    write(tmp_path / "t.parquet", triplets(m=20000, flip=0.2))
    code = textwrap.dedent("""
        import sys
        from nearer import _fit
        from nearer.cli import main
        from nearer.scale import fit_in_blocks as _many
        _fit.MANY = 2000
        stage, seen = _many.Checkpoint.stage, []
        def staged(self, name, *rest, **how):
            print(name, file=sys.stderr, flush=True)
            return stage(self, name, *rest, **how)
        _many.Checkpoint.stage = staged
        main()
    """)
    arguments = [sys.executable, "-c", code, "fit", "t.parquet", "--dim", "2", "--seed", "0"]
    arguments += ["--json", "--max-iter", "100000", "--tol", "1e-300"]
    running = subprocess.Popen(
        arguments, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for line in running.stderr:
        if "without those held out" in line:
            break
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130, err
    assert "in out/fit/interrupted.npz; repeat the command" in err
    assert out == ""
    arguments[-1] = "1e-4"
    again = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "continuing from out/fit/interrupted.npz" in again.stderr
    assert json.loads(again.stdout)["method"] == "noisy"
    assert not (tmp_path / "out/fit/interrupted.npz").exists()


def test_ctrl_c_within_compiled_code_leaves_a_checkpoint_too(small, call, tmp_path, monkeypatch):
    from nearer.scale import fit_in_blocks as _many

    write(tmp_path / "t.parquet", triplets(m=3000, flip=0.2))
    arguments = ["fit", "t.parquet", "--dim", 2, "--seed", 0, "--tol", 1e-3, "--json"]
    stage, gone_through = _many.Checkpoint.stage, []

    def stop_at_the_second(self, name, *rest, **how):
        if gone_through:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        gone_through.append(name)
        return stage(self, name, *rest, **how)

    with monkeypatch.context() as patch:
        patch.setattr(_many.Checkpoint, "stage", stop_at_the_second)
        stopped = call(*arguments)
    assert stopped.exit_code == 130, stopped.output
    assert "in out/fit/interrupted.npz; repeat the command" in stopped.stderr
    again = call(*arguments)
    assert again.exit_code == 0, again.output
    assert "continuing from out/fit/interrupted.npz" in again.stderr


def test_several_processes_need_a_file_that_they_can_share(call, tmp_path, monkeypatch):
    nearer.write_triplets(tmp_path / "t.csv", triplets(m=100))
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "2")
    result = call("fit", "t.csv")
    assert result.exit_code == 2
    assert "several processes share .parquet and .npy files" in result.stderr


def test_stored_answers_are_no_objects_of_their_own(small):
    assert isinstance(in_blocks(triplets()), Stored)


@pytest.mark.usefixtures("small")
def test_the_last_fit_of_noisy_answers_has_those_held_out_too(monkeypatch):
    used, information = [], BlockPasses.information

    def noted(passes, *arguments):
        used.append(len(passes))
        return information(passes, *arguments)

    monkeypatch.setattr(BlockPasses, "information", noted)
    stored = store(as_source(triplets(flip=0.1)))
    fit_many(stored, Goal("noisy", 2, 5, 100, 1e-5), np.random.default_rng(0))
    assert used == [stored.n_seen, stored.n_rows]
    assert stored.n_seen < stored.n_rows
