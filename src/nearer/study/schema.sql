-- The tables of a study file, and the rules that the file itself keeps.
--
-- A study is a log. `people`, `batches`, `questions`, `leases`, `answers` and `events` get
-- rows in order; a row never changes. What the server knows is these rows applied one after the
-- other (see board.py). Whatever is decided later about an earlier row is a row of its
-- own: a person who is excluded, a setting that was changed, an answer that takes the place of the
-- one before it (`supersedes`).
--
-- A question is a *task* with what is shown: the query, if the task has one, and two or more things
-- of which some are chosen. An answer is the list of those chosen, best first. That holds "which of
-- the two", "choose k of m" and "the odd one out" alike.
--
-- There is one exception to rows that stay, which the law knows too: a person who withdrew. Their
-- answers, leases, replies, browser keys and identity are deleted and overwritten. `identities`
-- alone knows who somebody is outside the study; without its row the answers are pseudonymous.

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
  language TEXT NOT NULL DEFAULT ''
);
CREATE TABLE identities (
  person INTEGER PRIMARY KEY REFERENCES people (id),
  panel TEXT NOT NULL, external TEXT NOT NULL, details TEXT NOT NULL,
  UNIQUE (panel, external)
);
-- Which browser a person began in: a hash of a key that only that browser has.
CREATE TABLE browsers (
  key TEXT PRIMARY KEY, person INTEGER NOT NULL REFERENCES people (id)
) WITHOUT ROWID;
CREATE INDEX browsers_person ON browsers (person);
-- What people wrote on pages of a questionnaire, before and after the questions.
CREATE TABLE replies (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, person INTEGER NOT NULL REFERENCES people (id),
  page TEXT NOT NULL, reply TEXT NOT NULL
);
CREATE INDEX replies_person ON replies (person);

CREATE TABLE batches (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, person INTEGER REFERENCES people (id),
  method TEXT NOT NULL, seen INTEGER NOT NULL, seconds REAL NOT NULL
);
CREATE TABLE questions (
  id INTEGER PRIMARY KEY, task TEXT NOT NULL, query INTEGER REFERENCES items (id),
  shown TEXT NOT NULL CHECK (json_array_length(shown) >= 2),
  choose INTEGER NOT NULL DEFAULT 1, -- how many of them are to be chosen
  purpose TEXT NOT NULL
    CHECK (purpose IN ('main', 'extra', 'own', 'holdout', 'repeat', 'catch')),
  person INTEGER REFERENCES people (id), batch INTEGER REFERENCES batches (id),
  repeats INTEGER REFERENCES questions (id),
  position INTEGER, -- an own question: the trial in which everybody gets it
  expected INTEGER, -- the item a careful person chooses, where there is a right answer
  odds REAL         -- how much likelier than at random a method was to choose it
);
CREATE TABLE leases (
  id INTEGER PRIMARY KEY, question INTEGER NOT NULL REFERENCES questions (id),
  person INTEGER NOT NULL REFERENCES people (id),
  shown TEXT NOT NULL, -- the things in the order of the screen
  issued REAL NOT NULL, expires REAL NOT NULL
);
CREATE INDEX leases_person ON leases (person, question);
CREATE TABLE answers (
  id INTEGER PRIMARY KEY, lease INTEGER NOT NULL REFERENCES leases (id),
  question INTEGER NOT NULL REFERENCES questions (id),
  person INTEGER NOT NULL REFERENCES people (id),
  choice TEXT NOT NULL CHECK (choice IN ('chosen', 'undecided', 'skip')),
  chosen TEXT, -- best first
  response_ms REAL, -- by the browser's clock, from all visible to the choice
  elapsed_ms REAL,  -- by the server's, since the answer before or since it was handed out
  received REAL NOT NULL,
  supersedes INTEGER UNIQUE REFERENCES answers (id),
  CHECK ((chosen IS NULL) = (choice != 'chosen'))
);
CREATE INDEX answers_person ON answers (person);
CREATE INDEX answers_lease ON answers (lease);
CREATE UNIQUE INDEX answers_first ON answers (lease) WHERE supersedes IS NULL;
CREATE VIEW standing AS -- answers that nobody has taken back
  SELECT * FROM answers a WHERE NOT EXISTS (SELECT 1 FROM answers b WHERE b.supersedes = a.id);

CREATE TABLE events (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL,
  person INTEGER REFERENCES people (id), detail TEXT NOT NULL
);
CREATE INDEX events_person ON events (person, kind) WHERE person IS NOT NULL;
CREATE VIEW excluded AS
  SELECT DISTINCT e.person FROM events e WHERE e.kind IN ('exclude', 'withdraw')
  AND NOT EXISTS (SELECT 1 FROM events f
                  WHERE f.person = e.person AND f.kind = 'include' AND f.id > e.id);
CREATE VIEW persons AS
  SELECT p.id, p.pseudonym, p.joined, p.language,
    (SELECT min(at) FROM events e WHERE e.person = p.id AND e.kind = 'finish') AS finished,
    p.id IN (SELECT person FROM excluded) AS excluded,
    EXISTS (SELECT 1 FROM events e WHERE e.person = p.id AND e.kind = 'withdraw') AS withdrawn
  FROM people p;

CREATE TABLE maps (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, seen INTEGER NOT NULL, n_triplets INTEGER NOT NULL,
  dimension INTEGER NOT NULL, accuracy REAL, n_holdout INTEGER NOT NULL, seconds REAL NOT NULL,
  positions TEXT NOT NULL
);

CREATE TABLE accounts (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, password TEXT NOT NULL
);
-- Who is logged in: a hash of what the cookie holds.
CREATE TABLE sessions (
  key TEXT PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts (id), until REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

-- Rows of a log stay as they are; only of somebody who withdrew are they deleted.
CREATE TRIGGER people_keep BEFORE UPDATE ON people
  BEGIN SELECT RAISE (ABORT, 'people are append-only'); END;
CREATE TRIGGER people_stay BEFORE DELETE ON people
  BEGIN SELECT RAISE (ABORT, 'people are append-only'); END;
CREATE TRIGGER batches_keep BEFORE UPDATE ON batches
  BEGIN SELECT RAISE (ABORT, 'batches are append-only'); END;
CREATE TRIGGER batches_stay BEFORE DELETE ON batches
  BEGIN SELECT RAISE (ABORT, 'batches are append-only'); END;
CREATE TRIGGER questions_keep BEFORE UPDATE ON questions
  BEGIN SELECT RAISE (ABORT, 'questions are append-only'); END;
CREATE TRIGGER questions_stay BEFORE DELETE ON questions
  BEGIN SELECT RAISE (ABORT, 'questions are append-only'); END;
CREATE TRIGGER leases_keep BEFORE UPDATE ON leases
  BEGIN SELECT RAISE (ABORT, 'leases are append-only'); END;
CREATE TRIGGER leases_stay BEFORE DELETE ON leases
  WHEN NOT EXISTS (SELECT 1 FROM events WHERE person = OLD.person AND kind = 'withdraw')
  BEGIN SELECT RAISE (ABORT, 'leases are append-only'); END;
CREATE TRIGGER answers_keep BEFORE UPDATE ON answers
  BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER answers_stay BEFORE DELETE ON answers
  WHEN NOT EXISTS (SELECT 1 FROM events WHERE person = OLD.person AND kind = 'withdraw')
  BEGIN SELECT RAISE (ABORT, 'answers are append-only'); END;
CREATE TRIGGER events_keep BEFORE UPDATE ON events
  BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events
  BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;
