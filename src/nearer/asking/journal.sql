-- The tables of a journal, see journal.py. The application id is the text "near".
PRAGMA application_id = 1852137842;
CREATE TABLE header (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE calls (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, tries INTEGER NOT NULL, cost REAL NOT NULL
);
CREATE TABLE answers (
  round INTEGER NOT NULL, row INTEGER NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL,
  said_by TEXT, call INTEGER NOT NULL REFERENCES calls (id), PRIMARY KEY (round, row)
) WITHOUT ROWID;
