"""People answer: one SQLite file a study, a web app that asks, and what is read out of it.

`store` has the file and its one writer; `board` the rows that are written, and what they come to;
`actions` is everything that may happen to a study; `worker` chooses questions and draws the map in
a process of its own; `app` is the web. Needs the extra ``nearer[study]``.
"""
