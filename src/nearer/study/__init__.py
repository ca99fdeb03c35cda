"""People answer: one SQLite file a study, a web app that asks, and what is read out of it."""
