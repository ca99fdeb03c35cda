"""
From a Salmon file to a figure for a paper
==========================================

Salmon collects comparisons on the web and lets you download a table of responses. Here is the way
from that table to a figure: read it, look at the people, leave out those who guessed, fit, draw,
and save as vector graphics.
"""

# %%
# No table of a real study is shipped, so we make one with Salmon's columns: 24 faces that differ
# in how glad and how awake they look, and 20 people, two of whom press buttons at random.

import csv
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import nearer

rng = np.random.default_rng(7)
mood = rng.uniform(-1, 1, size=(24, 2))
names = [
    ("glad" if glad > 0 else "sad") + (", awake " if awake > 0 else ", tired ") + str(number)
    for number, (glad, awake) in enumerate(mood)
]
people = [nearer.asking.Person()] * 18 + [nearer.asking.Person(lapse=1.0)] * 2
crowd = nearer.asking.CrowdOracle(mood, people, scale=0.15, random_state=1)
questions = np.array([rng.choice(24, 3, replace=False) for _ in range(3000)])
answers = crowd(questions)

file = Path(tempfile.mkdtemp()) / "responses.csv"
with file.open("w", newline="") as stream:
    table = csv.writer(stream)
    table.writerow(["head", "winner", "loser", "puid"])
    for (head, a, b), first, who in zip(questions, answers, crowd.answered_by, strict=True):
        near, far = (a, b) if first else (b, a)
        table.writerow([names[head], names[near], names[far], f"P{who + 1:02d}"])

# %%
# The report shows what is in the file.

responses = nearer.read_triplets(file)
print(responses.report)

# %%
# The first fit rates each person by held-out answers. Two people agree with the others as often as
# a coin does.

first = nearer.fit(responses, random_state=0)
columns = ["id", "agreement", "low", "high", "flag"]
print(first.people.sort_values("agreement")[columns].head(4).round(2).to_string(index=False))

# %%
# Their estimated sensitivity is small, so that they have little influence. For a paper it is
# simpler to leave them out, and to say so.

guessed = set(first.people.query("high < 0.6")["id"])
table = pd.read_csv(file)
careful = table[~table["puid"].isin(guessed)]
embedding = nearer.fit(careful, random_state=0)
print(f"left out: {', '.join(sorted(guessed))}; {len(careful)} of {len(table)} answers are fitted")
print(f"{embedding.dimension} dimensions, held-out accuracy {embedding.held_out.accuracy:.1%}")

# %%
# The axes are labelled with the share of the variance along each, and an ellipse has 95 % of the
# probability of a position. The same figure goes into the paper as vector graphics.

colour = [name.split()[0].rstrip(",") for name in embedding.names]
ax = embedding.plot(colour=colour)
ax.get_figure().savefig(file.with_name("faces.pdf"))
ax
