"""People answer: one SQLite file a study, a web app that asks, and what is read out of it.

`store` keeps the file and its one writer; `rows` are what is written, and `board` is what they come
to; `actions` and `posing` are everything that may happen to a study; `worker` chooses questions and
draws the map in a process of its own; `app` is the web. Needs the extra ``nearer[study]``.
"""
