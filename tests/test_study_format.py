"""A study file of format 1 opens: brought up to date once, with the old one kept beside it."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from studykit import Web

from nearer.errors import InvalidInput
from nearer.study.exports import export_csv
from nearer.study.log import read_config, replay, triplets
from nearer.study.migrate import migrate
from nearer.study.store import Store, connect, serving

KEPT = Path(__file__).parent / "data" / "study-0.1.db"


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "s.db"
    shutil.copy(KEPT, path)
    return path


def plain(path, sql):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_everything_in_it_is_there_afterwards(old, tmp_path):
    before = {
        "triplets": plain(
            old,
            "SELECT q.head, a.near, a.far FROM answers a JOIN posed q ON q.id = a.question"
            " JOIN people p ON p.id = a.person"
            " WHERE q.purpose = 'main' AND near IS NOT NULL AND NOT excluded ORDER BY a.id",
        ),
        "answers": plain(old, "SELECT count(*) FROM answers"),
        "people": plain(old, "SELECT id, excluded, withdrawn FROM people ORDER BY id"),
        "sides": plain(
            old,
            "SELECT a.id, iif(l.a_left, q.a, q.b) FROM answers a JOIN leases l ON l.id = a.lease"
            " JOIN questions q ON q.id = l.question ORDER BY a.id",
        ),
    }
    db = connect(old, read_only=True)
    assert triplets(db).tolist() == [list(row) for row in before["triplets"]]
    assert db.execute("SELECT count(*) FROM standing").fetchall() == before["answers"]
    persons = db.execute("SELECT id, excluded, withdrawn FROM persons ORDER BY id").fetchall()
    assert persons == before["people"]
    sides = db.execute(
        "SELECT a.id, json_extract(l.shown, '$[0]') FROM answers a JOIN leases l ON l.id = a.lease"
        " ORDER BY a.id"
    ).fetchall()
    assert sides == before["sides"]
    config = read_config(db)
    assert (config.title, config.method, config.quota) == ("A kept study", "basis", 250)
    assert db.execute("SELECT count(*) FROM identities").fetchone() == (5,)
    assert export_csv(db, "answers").count("\n") == before["answers"][0][0] + 1


def test_it_is_done_once_and_the_old_file_is_kept_beside_it(old, tmp_path):
    content = old.read_bytes()
    connect(old).close()
    copy = tmp_path / "s.db.format-1"
    assert plain(copy, "SELECT value FROM header WHERE key = 'format'") == [("1",)]
    assert plain(copy, "SELECT count(*) FROM answers") == [(47,)]
    changed = copy.stat().st_mtime_ns
    connect(old).close()
    assert copy.stat().st_mtime_ns == changed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.db", "s.db.format-1"]
    assert KEPT.read_bytes() == content


def test_the_study_goes_on(old):
    store = Store(old, rng=np.random.default_rng(0))
    assert store.facts.state == "running"
    before = store.write(lambda ledger: len(ledger.board.leases))
    store.close()
    web = Web(old, start=False)
    who = {"name": "ada", "password": "correct horse"}
    assert web.setup is None, "the account is there"
    assert web.client.post("/login", data=who).status_code == 303
    taken = {"consent_version": "1", "parameters": {"PROLIFIC_PID": "panel-1"}}
    assert web.client.post("/api/join", json=taken).status_code == 409
    headers = web.join(PROLIFIC_PID="new")
    assert web.answer(headers).status_code == 200
    assert web.study.store.write(lambda ledger: len(ledger.board.leases)) > before
    answered = "SELECT count(*) FROM answers"
    assert web.study.store.reader().execute(answered).fetchone()[0] == 48
    web.close()


def test_a_person_goes_on_with_the_token_they_had(old):
    web = Web(old, start=False)
    token = web.study.signer.sign("person", {"id": 2})  # as format 1 signed it
    reply = web.client.get("/api/me", headers={"authorization": f"Bearer {token}"})
    assert reply.json()["answered"] > 0
    web.close()


def test_nothing_changes_while_somebody_serves_it_or_a_copy_is_in_the_way(old, tmp_path):
    other = sqlite3.connect(old, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InvalidInput, match="cannot be brought up to date: database is locked"):
        connect(old)
    other.execute("ROLLBACK")
    other.close()
    (tmp_path / "s.db.format-1").write_text("an older copy")
    with pytest.raises(InvalidInput, match="move the older copy away"):
        connect(old)
    assert plain(old, "SELECT value FROM header WHERE key = 'format'") == [("1",)]


def test_a_server_of_the_file_may_bring_it_up_to_date_itself(old):
    with serving(old):
        connect(old).close()
    assert plain(old, "SELECT value FROM header WHERE key = 'format'") == [("3",)]


def test_replaying_it_gives_what_its_columns_said(old):
    before = plain(old, "SELECT id FROM people WHERE finished IS NOT NULL AND NOT withdrawn")
    migrate(old, "1")
    board = replay(connect(old))
    assert [(p.id,) for p in board.people.values() if p.finished] == before
