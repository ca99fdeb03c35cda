"""People answer: one SQLite file a study, a web app that asks, and its exports."""
