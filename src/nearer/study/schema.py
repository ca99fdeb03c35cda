"""The tables of a study file, and the rules that the file itself keeps.

`questions`, `leases`, `answers` and `events` are logs: rows are added in order and never change.
Triggers hold that for answers, with one exception that the law knows too: the answers of a person
who withdrew. `identities` alone knows who somebody is outside the study; dropping its row leaves
the answers pseudonymous, and then anonymous.
"""

FORMAT = 1

SCHEMA = """
CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE media (
  sha TEXT PRIMARY KEY, mime TEXT NOT NULL, bytes BLOB NOT NULL
);
CREATE TABLE items (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
  text TEXT NOT NULL, alt TEXT NOT NULL, media TEXT REFERENCES media (sha)
);

CREATE TABLE people (
  id INTEGER PRIMARY KEY, pseudonym TEXT NOT NULL UNIQUE, joined REAL NOT NULL,
  consent TEXT, consented REAL, ready REAL, finished REAL,
  excluded INTEGER NOT NULL DEFAULT 0, withdrawn INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE identities (
  person INTEGER PRIMARY KEY REFERENCES people (id),
  panel TEXT NOT NULL, external TEXT NOT NULL, details TEXT NOT NULL,
  UNIQUE (panel, external)
);
-- What people wrote on pages of a questionnaire, before and after the questions.
CREATE TABLE replies (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, person INTEGER NOT NULL REFERENCES people (id),
  page TEXT NOT NULL, reply TEXT NOT NULL
);
CREATE INDEX replies_person ON replies (person);

CREATE TABLE batches (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, person INTEGER REFERENCES people (id),
  method TEXT NOT NULL, seen INTEGER NOT NULL, seconds REAL NOT NULL, closes TEXT NOT NULL
);
CREATE TABLE questions (
  id INTEGER PRIMARY KEY, head INTEGER NOT NULL REFERENCES items (id),
  a INTEGER NOT NULL REFERENCES items (id), b INTEGER NOT NULL REFERENCES items (id),
  purpose TEXT NOT NULL CHECK (purpose IN ('main', 'holdout', 'repeat', 'catch')),
  person INTEGER REFERENCES people (id), batch INTEGER REFERENCES batches (id),
  repeats INTEGER REFERENCES questions (id)
);
-- A hold-out that a sort came to need is a real question from then on.
CREATE TABLE promoted (
  question INTEGER PRIMARY KEY REFERENCES questions (id), batch INTEGER REFERENCES batches (id)
);
CREATE VIEW posed AS
  SELECT q.id, q.head, q.a, q.b, q.person, q.repeats, coalesce(q.batch, p.batch) AS batch,
         CASE WHEN p.question IS NULL THEN q.purpose ELSE 'main' END AS purpose
  FROM questions q LEFT JOIN promoted p ON p.question = q.id;
CREATE TABLE leases (
  id INTEGER PRIMARY KEY, question INTEGER NOT NULL REFERENCES questions (id),
  person INTEGER NOT NULL REFERENCES people (id), a_left INTEGER NOT NULL,
  issued REAL NOT NULL, expires REAL NOT NULL
);
CREATE TABLE answers (
  id INTEGER PRIMARY KEY, lease INTEGER NOT NULL UNIQUE REFERENCES leases (id),
  question INTEGER NOT NULL REFERENCES questions (id),
  person INTEGER NOT NULL REFERENCES people (id),
  choice TEXT NOT NULL CHECK (choice IN ('left', 'right', 'undecided', 'skip')),
  near INTEGER, far INTEGER, response_ms REAL, received REAL NOT NULL,
  CHECK ((near IS NULL) = (choice IN ('undecided', 'skip')))
);
CREATE INDEX answers_person ON answers (person);
CREATE INDEX leases_person ON leases (person, question);

CREATE TABLE events (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL,
  person INTEGER REFERENCES people (id), detail TEXT NOT NULL
);
CREATE TABLE maps (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, seen INTEGER NOT NULL, n_triplets INTEGER NOT NULL,
  dimension INTEGER NOT NULL, accuracy REAL, n_holdout INTEGER NOT NULL, seconds REAL NOT NULL,
  positions TEXT NOT NULL
);

CREATE TABLE accounts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, password TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

CREATE TRIGGER answers_keep BEFORE UPDATE ON answers
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER answers_stay BEFORE DELETE ON answers
WHEN NOT (SELECT withdrawn FROM people WHERE id = OLD.person)
BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER questions_keep BEFORE UPDATE ON questions
BEGIN SELECT RAISE (ABORT, 'questions are append-only'); END;
CREATE TRIGGER leases_keep BEFORE UPDATE ON leases
BEGIN SELECT RAISE (ABORT, 'leases are append-only'); END;
"""
