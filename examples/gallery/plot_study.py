"""
A study simulated, end to end
=============================

Before people are asked, the whole study can be simulated, with its settings and its map. How many
answers will it need?
"""

# %%
# Sixteen words for the weather. All people compare how warm and how wet it is.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nearer
from nearer.study.simulate import Crowd, Simulation

WEATHER = {
    "drizzle": (0.3, 0.6), "downpour": (0.5, 1.0), "shower": (0.6, 0.8), "hail": (0.0, 0.7),
    "snow": (-0.6, 0.6), "sleet": (-0.3, 0.8), "frost": (-0.8, 0.0), "ice": (-1.0, 0.2),
    "heat": (1.0, -0.8), "drought": (0.9, -1.0), "sunshine": (0.7, -0.5), "breeze": (0.4, -0.2),
    "gale": (-0.1, 0.2), "fog": (-0.2, 0.45), "thunder": (0.8, 0.5), "haze": (0.6, 0.1),
}  # fmt: skip
folder = Path(tempfile.mkdtemp())
(folder / "words.txt").write_text("\n".join(WEATHER))
mind = np.array(list(WEATHER.values()))
np.save(folder / "mind.npy", mind)


def command(*words):
    """What one line at the terminal prints."""
    line = [sys.executable, "-m", "nearer", *words]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout


# %%
# Make the study, and plan it: simulated people who give one wrong answer in six take part in an
# empty copy.

command("study", "new", "weather.db", "--items", "words.txt", "--set", "questions=50")
plan = json.loads(command(
    "study", "simulate", "weather.db", "--answers", "900", "--people", "6", "--error", "0.16",
    "--positions", "mind.npy", "--json",
))  # fmt: skip
figure, ax = plt.subplots(figsize=(7, 3.6))
answers = [row["answers"] for row in plan["curve"]]
ax.plot(answers, [row["truth"] for row in plan["curve"]], "o-", label="the truth")
ax.axhline(1 - plan["error"], color="0.6", ls="--", lw=1)
ax.annotate("how often people themselves agree with the truth", (answers[-1], 1 - plan["error"]),
            xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
ax.set(xlabel="answers of people", ylabel="agreement of the map with the truth")
ax.spines[["top", "right"]].set_visible(False)

# %%
# The map soon predicts the truth better than any person answers. Now the study itself: answered and
# exported.

people = Crowd(mind, error=0.16, seconds=4.0)
outcome = Simulation(folder / "weather.db", people, 6, 900, seed=1)
command("study", "export", "weather.db", "--out", "answers.csv")
embedding = nearer.fit(folder / "answers.csv", random_state=0)
print(f"{outcome.people} people, {outcome.answers} answers; dimensions that they leave "
      f"possible: {embedding.dimension_low} to {embedding.dimension_high}")  # fmt: skip

# %%
# The true positions, and the map from the answers.

embedding = nearer.fit(folder / "answers.csv", n_components=2, random_state=0)
order = np.array(embedding.names, dtype=int)
words, mind = np.array(list(WEATHER))[order], mind[order]
laid = nearer.metrics.procrustes(mind, embedding.positions).aligned
figure, ax = plt.subplots(figsize=(7.5, 5))
for (x, y), (u, v), word in zip(mind, laid, words, strict=True):
    ax.plot([x, u], [y, v], color="#b9bec6", lw=1, zorder=1)
    ax.annotate(word, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=8)
ax.scatter(*mind.T, s=20, color="#2e6f9e", label="in people's minds")
ax.scatter(*laid.T, s=40, facecolors="none", edgecolors="#d1495b", label="found")
ax.set(xlabel="warm", ylabel="wet", xticks=[], yticks=[], aspect="equal")
ax.legend(frameon=False)
