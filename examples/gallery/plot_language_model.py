"""
A language model as the judge
=============================

`nearer.judges.ChatJudge` asks any endpoint with OpenAI's protocol. Here a simulated model answers
on this machine, slowly, with lapses and a preference for the first option, so that the example
costs nothing; with a key and a model's name the same code asks a real model.
"""

# %%
# The simulated model compares how large and how tame an animal is.

import nearer
from examples.stub_server import StubServer
from nearer.judges import ChatJudge

ANIMALS = {
    "ant": (0.0, 0.2), "bee": (0.1, 0.7), "beetle": (0.3, 0.0), "mouse": (1.0, 0.7),
    "squirrel": (1.3, 0.3), "rabbit": (1.8, 1.3), "cat": (2.0, 2.1), "fox": (2.4, 0.4),
    "dog": (2.6, 1.8), "goat": (3.1, 1.4), "wolf": (3.0, 0.0), "pig": (3.6, 1.7),
    "deer": (3.7, 0.6), "cow": (4.3, 1.5), "horse": (4.6, 2.0), "bear": (4.5, 0.0),
}  # fmt: skip

# %%
# Sixteen calls are under way at a time. `budget` and `max_cost` end the run, whichever comes
# first; with ``journal="animals.db"`` it could be stopped at any time, and no answer would be
# paid for twice.

with StubServer(ANIMALS, lapse=0.05, bias=0.05) as server:
    judge = ChatJudge(
        "stand-in",
        endpoint=server.url,
        key=None,
        question="Which animal is more like a {head}?",
        price=(0.15, 0.60),
    )
    embedding = nearer.embed(
        judge, list(ANIMALS), budget=500, max_in_flight=16, max_cost=1, random_state=0,
        progress=False,
    )  # fmt: skip
print(judge.report())

# %%
# The order of options is random for every question, so that a preference for the first adds noise,
# not bias.

embedding.plot()
