"""`nearer judge`: a person at the terminal, and batches of a language model."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import nearer
from examples.stub_server import StubServer
from nearer.cli import main
from nearer.judges.outside import TerminalJudge

X = np.random.default_rng(0).normal(size=(8, 2))
WORDS = [f"word{i}" for i in range(8)]
AT = dict(zip(WORDS, X, strict=True))


@pytest.fixture
def objects(tmp_path):
    path = tmp_path / "objects.txt"
    path.write_text("\n".join(WORDS) + "\n\n")
    return path


def nearer_judge(*args, keys=None):
    return CliRunner().invoke(main, ["judge", *map(str, args)], input=keys)


def test_whoever_sits_there_can_leave_and_come_back(objects, tmp_path):
    first = nearer_judge("ask", objects, "--budget", 20, keys="1\n2\n?\nnonsense\n1\nq\n")
    assert first.exit_code == 130
    assert "objects.answers.db; repeat the command" in first.output
    journal = tmp_path / "objects.answers.db"
    assert nearer.load_journal(journal).weights.sum() == 4
    out = tmp_path / "map.csv"
    second = nearer_judge("ask", objects, "--budget", 20, "--out", out, keys="1\n" * 16)
    assert second.exit_code == 0, second.output
    assert second.output.count("Which is more like") == 16
    with out.open() as file:
        assert [row["label"] for row in csv.DictReader(file)] == WORDS
    third = nearer_judge("ask", objects, "--budget", 20)
    assert "Which is more like" not in third.output
    assert third.exit_code == 0


def test_arrow_keys_answer_for_the_side_that_is_shown():
    lines = []
    for key, side in (("\x1b[D", 0), ("\x1b[C", 1)):
        judge = TerminalJudge(read=lambda key=key: key, show=lines.append)
        for question in ([("ox", "gnu", "bee")], [("ox", "bee", "gnu")], [("bee", "ox", "gnu")]):
            (said,) = judge(question)
            left, right = lines[-1].split("←")[1].removesuffix("→").split()
            assert question[0][1 if said else 2] == (left, right)[side]
    forged = "b\r← cat\x1b[2K\nc"
    assert TerminalJudge(read=lambda: "\x1b[A", show=lines.append)([("a", forged, "c")]) == [None]
    assert "b ← cat [2K c" in lines[-1]


def batch_endpoint(requests, server):
    """Answer a file of requests as a batch endpoint does a day later."""
    lines = []
    for line in requests.read_text().splitlines():
        request = json.loads(line)
        _, body = server.reply(request["body"], None)
        lines.append({"custom_id": request["custom_id"], "response": {"body": body}})
    return lines


def test_batches_go_out_and_come_back_until_the_map_is_there(objects, tmp_path):
    requests, replies, out = (tmp_path / name for name in ("q.jsonl", "r.jsonl", "map.csv"))
    server, rounds = StubServer(AT), 0
    call = ["--budget", 60, "--seed", 3]
    while not out.exists():
        result = nearer_judge("export", objects, "--model", "m", "--out", requests, *call)
        assert result.exit_code == 0, result.output
        lines = batch_endpoint(requests, server)
        if rounds == 0:  # half of them come later, one says nothing that can be read
            lines[0]["response"]["body"] = {"choices": []}
            lines = lines[: len(lines) // 2]
        for line in lines:  # JSON lines end at a line feed alone
            line["request_id"] = "\u2028"
        texts = (json.dumps(line, ensure_ascii=False) for line in lines)
        replies.write_text("\n".join(texts), encoding="utf-8")
        result = nearer_judge("import", objects, replies, "--out", out, *call)
        assert result.exit_code == 0, result.output
        rounds += 1
        assert rounds < 60, "no import stores an answer"
    asked = server.n_questions
    answers = nearer.load_journal(tmp_path / "objects.answers.db")
    right = nearer.metrics.triplet_accuracy(np.asarray(answers)[answers.weights == 1], X)
    assert right == 1
    assert answers.weights.sum() == 60
    done = nearer_judge("export", objects, "--model", "m", "--out", requests, *call)
    assert "place 8 objects" in done.output
    assert server.n_questions == asked


def test_people_and_models_do_not_share_a_journal(objects, tmp_path):
    requests = tmp_path / "q.jsonl"
    assert nearer_judge("export", objects, "--model", "m", "--out", requests).exit_code == 0
    result = nearer_judge("ask", objects, keys="1\n")
    assert result.exit_code == 2
    assert 'judge was "batches"' in result.output
    result = nearer_judge("export", objects, "--model", "other", "--out", requests)
    assert 'model was "m" and is "other"' in result.output
    result = nearer_judge("import", objects, requests, "--question", "Is {head} this?")
    assert "question was" in result.output


def test_a_wrong_argument_begins_no_journal(objects, tmp_path):
    requests = tmp_path / "q.jsonl"
    result = nearer_judge("export", objects, "--model", "", "--out", requests)
    assert (result.exit_code, "Error: --model '': must be a text" in result.output) == (2, True)
    assert nearer_judge("export", objects, "--model", "m", "--out", requests).exit_code == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json\n", "line 1: is no reply"),
        ('{"custom_id": 7, "response": {}}\n', "line 1: is no reply"),
        ('{"custom_id": "0-1-2", "response": [1]}\n', "line 1: is no reply"),
        ('{"custom_id": "0-1-2", "body": {}}\n', "line 1: is no reply"),  # a request, no answer
    ],
)
def test_files_that_are_no_replies_are_named(content, message, objects, tmp_path):
    replies = tmp_path / "r.jsonl"
    replies.write_text(content)
    result = nearer_judge("import", objects, replies)
    assert result.exit_code == 2
    assert message in result.output


def test_too_few_objects_are_named(tmp_path):
    (tmp_path / "two.txt").write_text("a\nb\n")
    result = nearer_judge("ask", tmp_path / "two.txt")
    assert result.exit_code == 2
    assert "at least 3" in result.output
    (tmp_path / "two.txt").write_text("a\nb\na\nc\n")
    result = nearer_judge("ask", tmp_path / "two.txt")
    assert result.exit_code == 2
    assert "'a' is on several lines" in result.output
